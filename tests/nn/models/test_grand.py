"""Graph neural diffusion: conserved quantities, energies, solvers, and the entropy term."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

import eamp
from eamp.nn.models.grand import GRAND
from problems import irregular_graph, random_graph, undirected

ATTENTIONS = ("linear", "nonlinear", "constant")
every_attention = pytest.mark.parametrize("attention", ATTENTIONS)


def ring(n: int) -> eamp.Graph:
    return eamp.Graph(undirected(*((i, (i + 1) % n) for i in range(n))))


def total_difference(x: Tensor, graph: eamp.Graph) -> float:
    """Σ_ij a_ij ‖x_i − x_j‖², edge by edge."""
    row, col = graph.edge_index
    weight = 1.0 if graph.edge_weight is None else graph.edge_weight
    return float((weight * (x[row] - x[col]).square().sum(1)).sum())


def states(model: GRAND, x: Tensor, graph: eamp.Graph) -> list[Tensor]:
    """The encoded state and the one after every unit of time."""
    with torch.no_grad():
        trajectory = [model.encoder(x)]
        frozen = model.field.at_start(trajectory[0], graph)
        for _ in range(model.num_layers):
            trajectory.append(model.flow(trajectory[-1], graph, model.field, *frozen))
    return trajectory


@pytest.mark.parametrize(("method", "steps"), [("euler", 1), ("rk4", 4), ("dopri5", 1)])
def test_constant_diffusion_on_a_regular_graph_conserves_the_mean(method: str, steps: int) -> None:
    model = GRAND(5, 4, 2, 6, attention="constant", method=method, steps_per_layer=steps).double()
    start, *later = states(model, torch.randn(9, 5, dtype=torch.float64), ring(9))
    assert not torch.allclose(later[-1], start)
    for state in later:
        torch.testing.assert_close(state.mean(0), start.mean(0))


@pytest.mark.parametrize("weighted", [False, True])
def test_linear_diffusion_lowers_the_energy_at_every_unit_of_time(weighted: bool) -> None:
    graph = random_graph(40, 80, weighted=weighted)
    model = GRAND(5, 8, 2, 12, attention="constant", method="rk4", steps_per_layer=4).double()
    energies = [
        total_difference(state, graph)
        for state in states(model, torch.randn(40, 5, dtype=torch.float64), graph)
    ]
    assert all(later < earlier for earlier, later in itertools.pairwise(energies))


@pytest.mark.parametrize("attention", ["linear", "nonlinear"])
def test_attention_keeps_every_feature_within_its_first_range(attention: Any) -> None:
    # Rows of A are convex combinations, so nothing ever leaves the box it started in.
    graph = random_graph(40, 80)
    start, *later = states(GRAND(5, 8, 2, 8, attention=attention), torch.randn(40, 5), graph)
    for state in later:
        assert (state <= start.amax(0) + 1e-5).all()
        assert (state >= start.amin(0) - 1e-5).all()
    assert total_difference(later[-1], graph) < 0.5 * total_difference(start, graph)


def test_entropy_keeps_up_the_energy_that_diffusion_takes() -> None:
    graph = random_graph(40, 80)
    x = torch.randn(40, 5)
    final = []
    for entropy in (None, {"weight": 20.0, "temperature": 1.0}):
        torch.manual_seed(0)
        model = GRAND(
            5, 8, 2, 100, attention="constant", entropy=entropy, method="rk4", steps_per_layer=4
        )
        final.append(float(eamp.dirichlet_energy(states(model, x, graph)[-1], graph).mean()))
    assert final[0] < 1e-3
    assert final[1] > 0.1


@every_attention
@pytest.mark.parametrize(
    "entropy", [None, {"weight": 0.5, "temperature": 2.0}], ids=["bare", "entropy"]
)
def test_euler_with_one_step_per_layer_is_the_hand_written_loop(
    attention: Any, entropy: dict[str, float] | None
) -> None:
    graph = irregular_graph()
    model = GRAND(5, 4, 3, 3, attention=attention, entropy=entropy).double()
    x = torch.randn(10, 5, dtype=torch.float64)

    h = model.encoder(x)
    frozen = model.field.at_start(h, graph)
    for _ in range(3):
        push = 0.0 if entropy is None else 0.5 * eamp.entropy_gradient(h, graph, temperature=2.0)
        h = h + model.field(h, graph, *frozen) + push
    torch.testing.assert_close(model(x, graph), model.decoder(h.relu()))


@every_attention
@pytest.mark.parametrize(
    "entropy", [None, {"weight": 0.5, "temperature": 2.0}], ids=["bare", "entropy"]
)
def test_adaptive_and_fixed_step_solvers_agree(
    attention: Any, entropy: dict[str, float] | None
) -> None:
    graph, x = irregular_graph(), torch.randn(10, 5, dtype=torch.float64)
    solvers: tuple[dict[str, Any], ...] = (
        {"method": "rk4", "steps_per_layer": 20},
        {"method": "dopri5", "rtol": 1e-8, "atol": 1e-8},
    )
    logits = []
    for solver in solvers:
        torch.manual_seed(0)
        logits.append(
            GRAND(5, 4, 3, 3, attention=attention, entropy=entropy, **solver).double()(x, graph)
        )
    torch.testing.assert_close(logits[0], logits[1], rtol=1e-5, atol=1e-6)


@every_attention
@pytest.mark.parametrize("detach", [True, False])
def test_adjoint_and_stored_gradients_agree(attention: Any, detach: bool) -> None:
    graph, x = irregular_graph(), torch.randn(10, 5, dtype=torch.float64)
    entropy = {"weight": 0.5, "temperature": 2.0, "detach": detach}
    gradients = []
    for adjoint in (False, True):
        torch.manual_seed(0)
        model = GRAND(
            5,
            4,
            3,
            3,
            attention=attention,
            entropy=entropy,
            method="rk4",
            steps_per_layer=20,
            adjoint=adjoint,
        ).double()
        model(x, graph).square().sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "rk4"},
        {"method": "dopri5"},
        {"method": "dopri5", "adjoint": True},
        {"attention": "nonlinear"},
    ],
)
def test_gradient_reaches_every_parameter_with_every_solver(options: dict[str, Any]) -> None:
    model = GRAND(5, 4, 3, 2, entropy={"weight": 0.5, "temperature": 2.0}, **options)
    model(torch.randn(10, 5), irregular_graph()).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_attention_is_taken_once_or_at_every_evaluation() -> None:
    calls = []
    for attention, expected in (("linear", 1), ("nonlinear", 3 * 2)):
        model = GRAND(5, 4, 3, 3, attention=attention, steps_per_layer=2)  # type: ignore[arg-type]
        model.field.query.register_forward_hook(lambda *_: calls.append(1))  # type: ignore[operator, union-attr]
        calls.clear()
        model(torch.randn(10, 5), irregular_graph())
        assert len(calls) == expected


def test_isolated_nodes_stay_where_they_are() -> None:
    for attention in ATTENTIONS:
        start, *later = states(
            GRAND(5, 4, 2, 3, attention=attention), torch.randn(10, 5), irregular_graph()
        )  # type: ignore[arg-type]
        torch.testing.assert_close(later[-1][9], start[9])


def test_every_unit_of_time_is_a_layer_to_wrap_and_watch() -> None:
    seen = []
    model = GRAND(5, 4, 2, 7)
    model.flow.register_forward_hook(lambda module, inputs, output: seen.append(output))
    model(torch.randn(10, 5), irregular_graph())
    assert len(seen) == 7
    wrapped = eamp.wrap(GRAND(5, 4, 2, 7), weight=1.0, temperature=1.0)
    assert isinstance(wrapped.flow, eamp.EntropyAware)
    assert wrapped(torch.randn(10, 5), irregular_graph()).shape == (10, 2)


def test_compiled_is_the_same_though_edges_repeat_and_nodes_loop() -> None:
    # Such edges leave padding at the end of a compiled graph's CSR, which no softmax may see.
    edge_index = torch.cat([irregular_graph().edge_index, torch.tensor([[0, 1, 3], [1, 0, 3]])], 1)
    x = torch.randn(10, 5)
    model = GRAND(5, 4, 2, 3, attention="nonlinear")
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    gradients = []
    for run in (model, compiled):
        model.zero_grad()
        logits = run(x, edge_index)
        logits.square().sum().backward()
        gradients.append([logits.detach(), *(parameter.grad for parameter in model.parameters())])
    torch.testing.assert_close(gradients[1], gradients[0])


def test_unknown_attention_and_options_are_refused() -> None:
    with pytest.raises(ValueError, match="'linear', 'nonlinear' or 'constant'"):
        GRAND(5, 4, 2, 3, attention="gat")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="learn_temperature"):
        GRAND(5, 4, 2, 3, entropy={"learn_temperature": True})
