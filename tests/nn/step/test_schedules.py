import copy
import json
import math
from typing import Any

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GraphSAGE

import eamp
from eamp.functional import energy_on
from eamp.nn import GCN, MODELS, Cap, Feedback, Gain, Ramp, collapse_threshold, number_layers
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.step import threshold
from eamp.nn.step.layer_state import LayerState, Position
from eamp.nn.step.weight import SCHEDULES, Schedule, as_weight
from problems import irregular_graph, problems

GRAPH = irregular_graph()
EDGES = GRAPH.edge_index

# One of each and some of their compositions, as they stand in a recipe.
DESCRIBED: dict[str, dict[str, Any]] = {
    "ramp": {"schedule": "ramp", "start": 0.5, "end": 2.0, "curve": "geometric"},
    "feedback": {"schedule": "feedback", "lowest": 0, "highest": 5},
    "feedback of entropy per node": {
        "schedule": "feedback",
        "lowest": 0,
        "highest": 5,
        "measure": "entropy",
        "per": "node",
    },
    "gain": {"schedule": "gain", "of": 1.3},
    "hops": {"schedule": "hops", "of": 0.3},
    "cap": {"schedule": "cap", "of": 3.0, "fraction": 0.3},
    "cap per graph": {
        "schedule": "cap",
        "of": 3.0,
        "fraction": 0.3,
        "reach": "neighbours",
        "per": "graph",
    },
    "ramp of gains": {"schedule": "gain", "of": {"schedule": "ramp", "start": 0.5, "end": 1.5}},
    "capped feedback in gains": {
        "schedule": "cap",
        "of": {
            "schedule": "gain",
            "of": {"schedule": "feedback", "lowest": 0.5, "highest": 2, "detach": False},
        },
        "fraction": 0.5,
    },
}
every_schedule = pytest.mark.parametrize("described", DESCRIBED.values(), ids=DESCRIBED)


class Same(torch.nn.Module):
    """A layer that leaves the features as they are, so that only the step is seen."""

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        return x.clone()


def state_of(
    x: Tensor, graph: eamp.Graph, temperature: float | Tensor = 1.0, **changes: Any
) -> LayerState:
    energy = energy_on(x, graph)
    return LayerState(Position(1, 1), x, energy, temperature, graph)._replace(**changes)


def layer_of(weight: Any, **options: Any) -> eamp.EntropyAware:
    return number_layers(
        eamp.EntropyAware(Same(), weight, options.pop("temperature", 1.0), **options)
    )


# --- Ramp -----------------------------------------------------------------------------------


@given(
    st.floats(0.01, 10),
    st.floats(0.01, 10),
    st.integers(2, 100),
    st.sampled_from(["linear", "geometric"]),
)
def test_a_ramp_starts_ends_and_steps_evenly(
    start: float, end: float, layers: int, curve: Any
) -> None:
    ramp = Ramp(start, end, curve)
    values = [ramp.at(Position(layer, layers)) for layer in range(1, layers + 1)]
    assert (values[0], values[-1]) == (pytest.approx(start), pytest.approx(end))
    steps = torch.tensor(values, dtype=torch.float64)
    steps = steps.diff() if curve == "linear" else steps.log().diff()
    torch.testing.assert_close(steps, steps[:1].expand_as(steps), rtol=1e-6, atol=1e-9)
    assert ramp.at(Position(1, 1)) == pytest.approx(start)


@pytest.mark.parametrize(
    "name", [name for name in MODELS if "grand" not in name and name != "acmp"]
)
def test_every_model_tells_its_layers_their_number(name: str) -> None:
    model, calls = (
        MODELS[name](4, 8, 3, 3, entropy={"weight": DESCRIBED["ramp"], "temperature": 1.0}),
        [],
    )
    for layer in model.modules():
        if isinstance(layer, eamp.EntropyAware):
            layer.register_forward_pre_hook(
                lambda layer, _, given: calls.append(given.get("position") or layer.position),
                with_kwargs=True,
            )
    model(torch.randn(10, 4), GRAPH)
    assert calls == [Position(layer, len(calls)) for layer in range(1, len(calls) + 1)]
    assert len(calls) >= 2


def test_wrap_numbers_what_it_wraps_and_a_ramp_without_a_number_is_an_error() -> None:
    model = eamp.wrap(GraphSAGE(4, 4, 4), skip="convs.1", weight=Ramp(1, 2), temperature=1.0)
    assert [model.convs[i].position for i in (0, 2, 3)] == [
        Position(1, 3),
        Position(2, 3),
        Position(3, 3),
    ]
    assert copy.deepcopy(model).convs[3].position == Position(3, 3)
    with pytest.raises(ValueError, match=r"needs the number of its layer.*number_layers\(model\)"):
        eamp.EntropyAware(GCNConv(4, 4), Ramp(1, 2))(torch.randn(10, 4), EDGES)


def test_a_ramp_gives_each_layer_its_constant() -> None:
    x = torch.randn(10, 4)
    layer = layer_of(Ramp(0.5, 1.5))
    for number, weight in ((1, 0.5), (2, 1.0), (3, 1.5)):
        torch.testing.assert_close(
            layer(x, GRAPH, position=Position(number, 3)), layer_of(weight)(x, GRAPH)
        )


# --- Feedback -------------------------------------------------------------------------------


@given(
    problems(min_nodes=2),
    st.sampled_from(["energy", "entropy"]),
    st.sampled_from(["graph", "node"]),
    st.booleans(),
)
def test_feedback_is_bounded_and_falls_as_its_measure_grows(
    problem: Any, measure: Any, per: Any, normalize: bool
) -> None:
    x, graph = problem
    schedule = Feedback(0.5, 3.0, 0.7, measure=measure, per=per)
    small, large = (
        schedule(state_of(scale * x, graph, normalize=normalize)) for scale in (0.5, 0.6)
    )
    assert bool(((small >= 0.5 - 1e-9) & (small <= 3.0 + 1e-9)).all())
    if measure == "energy":
        assert bool((large <= small + 1e-12).all())


def test_feedback_is_halfway_at_its_target_highest_at_collapse_and_lowest_far_above() -> None:
    x = torch.randn(10, 4, dtype=torch.float64)
    mean = energy_on(x, GRAPH).mean().item()
    schedule = Feedback(1.0, 3.0, target=0.25)
    values = [schedule(state_of(scale * x, GRAPH, 4 * mean)).item() for scale in (1.0, 0.0, 1e3)]
    assert values == pytest.approx([2.0, 3.0, 1.0], abs=1e-6)
    top = Feedback(0.0, 2.0, target=1.0, measure="entropy")
    constant = torch.full((10,), 0.7, dtype=torch.float64)
    assert top(state_of(x, GRAPH, 0.7, energy=constant)).item() == pytest.approx(
        1.0
    )  # E = T: the largest entropy there is
    assert top(state_of(x, GRAPH, 0.7, energy=constant, normalize=True)).item() == pytest.approx(
        1.0
    )  # all nodes alike


def test_feedback_detached_or_not() -> None:
    x = torch.randn(10, 4, dtype=torch.float64, requires_grad=True)
    assert not Feedback(0, 2)(state_of(x, GRAPH)).requires_grad
    for per in ("graph", "node"):
        for measure in ("energy", "entropy"):
            schedule = Feedback(0, 2, per=per, measure=measure, detach=False)  # type: ignore[arg-type]
            assert gradcheck(lambda x, schedule=schedule: schedule(state_of(x, GRAPH)), x)
    collapsed = torch.zeros(10, 4, requires_grad=True)
    Feedback(0, 2, sharpness=1.0, detach=False)(state_of(collapsed, GRAPH)).backward()
    assert torch.isfinite(collapsed.grad).all()  # type: ignore[arg-type]


# --- Gain -----------------------------------------------------------------------------------


@pytest.mark.parametrize("energy", ["paper", "propagation"])
@pytest.mark.parametrize("temperature", [0.1, 100.0])
def test_a_negative_gain_descends_the_entropy(energy: Any, temperature: float) -> None:
    x = torch.randn(10, 4, dtype=torch.float64)
    options = {"temperature": temperature, "energy": energy}
    up = layer_of({"schedule": "gain", "of": 0.3}, **options)(x, GRAPH) - x
    down = layer_of({"schedule": "gain", "of": -0.3}, **options)(x, GRAPH) - x
    assert up.norm() > 0
    torch.testing.assert_close(down, -up)


def hidden_energy(graph: eamp.Graph, width: int, weight: Any) -> float:
    torch.manual_seed(0)
    model, reached = GCN(1, width, 2, 60, entropy={"weight": weight, "temperature": 1.0}), []
    model.output.register_forward_pre_hook(lambda _, given: reached.append(given[0]))
    with torch.no_grad():
        model(torch.rand(graph.num_nodes, 1), graph)
    return float(eamp.dirichlet_energy(reached[0], graph).mean())


@pytest.mark.parametrize("width", [64, 256])
@pytest.mark.parametrize(
    "graph",
    [nx.grid_2d_graph(6, 6), nx.random_regular_graph(8, 40, seed=0)],
    ids=["grid", "degree 8"],
)
def test_a_gain_means_the_same_at_any_width_and_degree(graph: nx.Graph, width: int) -> None:
    assert hidden_energy(eamp.Graph(graph), width, Gain(0.8)) < 1e-3
    assert hidden_energy(eamp.Graph(graph), width, Gain(1.3)) > 0.2


def test_gain_is_a_multiple_of_the_threshold_one_per_graph() -> None:
    x = torch.randn(10, 4, dtype=torch.float64)
    assert Gain(1.5)(state_of(x, GRAPH)) == pytest.approx(1.5 * collapse_threshold(GRAPH, 4).item())
    batch = eamp.Graph(
        Batch.from_data_list(
            [Data(edge_index=EDGES, num_nodes=10), Data(edge_index=EDGES[:, :0], num_nodes=3)]
        )
    )
    values = Gain(1.5)(state_of(torch.randn(13, 4, dtype=torch.float64), batch))
    torch.testing.assert_close(values[:10], Gain(1.5)(state_of(x, GRAPH)).expand(10))  # type: ignore[index, union-attr]
    assert not values[10:].any()  # type: ignore[index]


# --- Cap ------------------------------------------------------------------------------------


@given(
    problems(weighted=False, min_nodes=2),
    st.floats(0.1, 3),
    st.floats(0.1, 10),
    st.sampled_from(["graph", "node"]),
)
def test_a_capped_step_moves_no_node_further_than_allowed(
    problem: Any, fraction: float, temperature: float, per: Any
) -> None:
    x, graph = problem
    row, col = graph.edge_index
    farthest = x.new_zeros(graph.num_nodes).scatter_reduce(
        0, row, (x[row] - x[col]).norm(dim=1), "amax"
    )
    reach = math.sqrt(2 * temperature) * (graph.degree * x.size(1)) ** 0.25
    for variant in ("exact", "paper"):
        for normalize in (False, True):
            given_options = {"temperature": temperature, "variant": variant, "normalize": normalize}
            by_neighbours, by_temperature = (
                (layer_of(Cap(1e6, fraction, which, per), **given_options)(x, graph) - x).norm(
                    dim=1
                )  # type: ignore[arg-type]
                for which in ("neighbours", "temperature")
            )
            assert bool((by_neighbours <= fraction * farthest * (1 + 1e-6) + 1e-9).all())
            assert bool((by_temperature <= fraction * reach * (1 + 1e-6) + 1e-9).all())


@given(
    problems(weighted=False, min_nodes=2),
    st.floats(0.1, 1),
    st.floats(0.1, 10),
    st.floats(0.1, 100),
)
def test_the_stability_bound_adds_a_constant_at_most(
    problem: Any, fraction: float, temperature: float, scale: float
) -> None:
    x, graph = problem
    x = scale * x
    out = layer_of(Cap(1e6, fraction, "neighbours"), temperature=temperature)(x, graph)
    room = fraction * math.sqrt(2 * temperature) * (graph.degree.max().item() * x.size(1)) ** 0.25
    assert out.norm(dim=1).max() <= x.norm(dim=1).max() * (1 + 1e-6) + room + 1e-9


def test_a_cap_that_does_not_bind_changes_nothing() -> None:
    x = torch.randn(10, 4)
    torch.testing.assert_close(layer_of(Cap(0.01, 100.0))(x, GRAPH), layer_of(0.01)(x, GRAPH))
    torch.testing.assert_close(
        Cap(-1e6, 1.0)(state_of(x, GRAPH)), -Cap(1e6, 1.0)(state_of(x, GRAPH))
    )


@pytest.mark.parametrize("reach", ["temperature", "neighbours"])
def test_capped_a_deep_stack_with_an_absurd_gain_stays_small(reach: Any) -> None:
    star = eamp.Graph(nx.star_graph(20))
    assert hidden_energy(star, 64, Gain(1e6)) > 1e4
    assert hidden_energy(star, 64, Cap(Gain(1e6), 1.0, reach)) < 10


# --- All of them ----------------------------------------------------------------------------


@every_schedule
def test_plain_data_objects_and_json_are_the_same(described: dict[str, Any]) -> None:
    schedule = as_weight(json.loads(json.dumps(described)))
    assert isinstance(schedule, Schedule)
    assert schedule == as_weight(described) == as_weight(schedule) == copy.deepcopy(schedule)
    model = eamp.wrap(GCN(4, 4, 3, 2), weight=described, temperature=1.0)
    assert repr(schedule) in repr(model)
    before = dict(model.named_modules())
    assert dict(eamp.wrap(model, weight=schedule, temperature=1.0).named_modules()) == before
    with pytest.raises(ValueError, match="already wrapped"):
        eamp.wrap(model, weight=Gain(7), temperature=1.0)


@every_schedule
@given(problem=problems(min_nodes=2), seed=st.integers(0, 100))
def test_permutation_equivariance(described: dict[str, Any], problem: Any, seed: int) -> None:
    x, graph = problem
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))
    back = order.argsort()
    moved = eamp.Graph(back[graph.edge_index], graph.num_nodes, edge_weight=graph.edge_weight)
    layer = layer_of(described)
    torch.testing.assert_close(layer(x[order], moved), layer(x, graph)[order], rtol=1e-4, atol=1e-6)


@every_schedule
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": "auto"},
        {"learn_temperature": True},
        {"variant": "paper", "placement": "input", "residual": True},
        {"normalize": True, "symmetrize": True},
    ],
    ids=lambda options: ", ".join(options) or "plain",
)
@pytest.mark.parametrize("detach", [True, False])
def test_it_goes_with_every_option_in_training_and_evaluation(
    described: dict[str, Any], options: dict[str, Any], detach: bool
) -> None:
    model = GCN(
        4, 6, 3, 3, entropy={"temperature": 2.0, "weight": described, "detach": detach, **options}
    )
    if options.get("placement"):
        model = GCN(
            4,
            6,
            3,
            3,
            entropy={"temperature": 2.0, "weight": described, "detach": detach, "variant": "paper"},
            form="paper",
        )
    x = torch.randn(10, 4)
    out = model(x, EDGES)
    out.square().sum().backward()
    assert all(
        parameter.grad is not None and torch.isfinite(parameter.grad).all()
        for parameter in model.parameters()
    )
    other = copy.deepcopy(model).eval()
    torch.testing.assert_close(other(x, EDGES), out)
    for parameter in other.parameters():
        parameter.data.add_(1.0)
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(x, EDGES), out)


@every_schedule
@pytest.mark.parametrize(
    "options", [{}, {"variant": "paper"}, {"normalize": True}], ids=["exact", "paper", "normalize"]
)
def test_gradients_are_exact(described: dict[str, Any], options: dict[str, Any]) -> None:
    described = copy.deepcopy(described)
    if described["schedule"] == "feedback":
        described["detach"] = False
    layer = layer_of(
        described, temperature=0.8, detach=False, learn_temperature=True, **options
    ).double()
    x = torch.randn(10, 3, dtype=torch.float64, requires_grad=True)

    def run(x: Tensor, log_temperature: Tensor) -> Tensor:
        return torch.func.functional_call(layer, {"log_temperature": log_temperature}, (x, GRAPH))

    assert gradcheck(run, (x, layer.log_temperature))


@every_schedule
@pytest.mark.parametrize("normalize", [False, True])
def test_a_graph_in_a_batch_is_the_graph_alone(described: dict[str, Any], normalize: bool) -> None:
    pair = [eamp.Graph(nx.cycle_graph(6)), GRAPH]
    features = [torch.randn(graph.num_nodes, 4) for graph in pair]
    batch = Batch.from_data_list(
        [Data(x=x, edge_index=graph.edge_index) for x, graph in zip(features, pair, strict=True)]
    )
    layer = layer_of(described, normalize=normalize)
    alone = torch.cat([layer(x, graph) for x, graph in zip(features, pair, strict=True)])
    torch.testing.assert_close(layer(batch.x, eamp.Graph(batch)), alone, rtol=1e-4, atol=1e-5)


@every_schedule
@pytest.mark.parametrize("adjacency", ["edge_index", "graph"])
def test_torch_compile_in_one_graph(described: dict[str, Any], adjacency: str) -> None:
    torch._dynamo.reset()
    layer = number_layers(eamp.EntropyAware(GCNConv(4, 4), described, 1.0, detach=False))
    compiled = torch.compile(copy.deepcopy(layer), fullgraph=True, backend="aot_eager")
    given_graph = EDGES if adjacency == "edge_index" else GRAPH
    x = torch.randn(10, 4, requires_grad=True)
    results = [run(x, given_graph) for run in (compiled, layer)]
    torch.testing.assert_close(*results)
    torch.testing.assert_close(*(torch.autograd.grad(out.square().sum(), x)[0] for out in results))


@pytest.mark.parametrize("adjacency", ["edge_index", "graph"])
def test_compiled_the_threshold_is_still_estimated_once(
    adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch._dynamo.reset()
    calls, estimate = [], threshold.estimate
    monkeypatch.setattr(threshold, "estimate", lambda *given: calls.append(1) or estimate(*given))
    model = torch.compile(
        GCN(4, 4, 3, 3, entropy={"weight": DESCRIBED["gain"]}), fullgraph=True, backend="aot_eager"
    )
    graph = irregular_graph()
    adjacency_given = graph.edge_index if adjacency == "edge_index" else graph
    for _ in range(3):
        model(torch.randn(10, 4), adjacency_given)
    assert len(calls) == 1


@every_schedule
def test_no_nodes_and_no_edges(described: dict[str, Any]) -> None:
    layer = layer_of(described)
    nothing = torch.empty(2, 0, dtype=torch.long)
    assert layer(torch.empty(0, 4), eamp.Graph(nothing, 0)).shape == (0, 4)
    x = torch.randn(3, 4)
    assert torch.equal(layer(x, eamp.Graph(nothing, 3)), x)


def test_half_precision_keeps_its_dtype() -> None:
    out = layer_of(Cap(Gain(Feedback(0, 2)), 1.0))(torch.randn(10, 4, dtype=torch.bfloat16), GRAPH)
    assert out.dtype == torch.bfloat16


def test_a_schedule_cannot_be_learned_and_every_one_has_an_example() -> None:
    with pytest.raises(ValueError, match="needs a number to start from"):
        eamp.EntropyAware(GCNConv(4, 4), Gain(1.0), learn_weight=True)
    assert all(">>>" in (kind.__doc__ or "") for kind in SCHEDULES.values())
