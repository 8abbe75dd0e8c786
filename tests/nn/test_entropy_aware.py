import copy
import inspect
import io
import math
import shutil
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor
from torch.autograd import gradcheck
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, PointNetConv, SAGEConv

import eamp
from eamp.ops import Variant, reference
from problems import irregular_graph, random_graph

GRAPH = irregular_graph()
EDGES = GRAPH.edge_index


class Identity(torch.nn.Module):
    """A layer that leaves the features as they are, so that only the step is seen."""

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        return x.clone()


def features(width: int = 4) -> Tensor:
    return torch.randn(10, width)


def test_it_adds_the_step_at_the_output() -> None:
    conv, x = GCNConv(4, 6), features()
    out = conv(x, EDGES)
    layer = eamp.EntropyAware(conv, weight=0.5, temperature=2.0)
    torch.testing.assert_close(
        layer(x, EDGES), out + 0.5 * 2.0 * eamp.entropy_gradient(out, EDGES, 2.0)
    )


@pytest.mark.parametrize("variant", ["exact", "paper"])
@pytest.mark.parametrize("normalize", [False, True])
def test_it_adds_the_step_at_the_input_with_the_papers_residual(
    variant: Variant, normalize: bool
) -> None:
    conv, x = GCNConv(4, 4), features()
    layer = eamp.EntropyAware(
        conv, 0.5, 2.0, placement="input", residual=True, variant=variant, normalize=normalize
    )
    step = 0.5 * 2.0 * eamp.entropy_gradient(x, EDGES, 2.0, variant=variant, normalize=normalize)
    torch.testing.assert_close(layer(x, EDGES), x + conv(x, EDGES) + step)


def candidates() -> dict[str, torch.nn.Module]:
    """Every convolution of PyG that is built with (in, out) and called with (x, edge_index)."""
    found = {}
    for name in sorted(pyg.conv.__all__):
        try:
            conv = getattr(pyg.conv, name)(4, 4).eval()
            conv(features(), EDGES)
        except Exception:
            continue
        found[name] = conv
    return found


CANDIDATES = candidates()


def test_most_of_pyg_is_covered() -> None:
    assert len(CANDIDATES) >= 20
    assert {"GCNConv", "GATConv", "GATv2Conv", "SAGEConv", "GraphConv", "TransformerConv"} <= set(
        CANDIDATES
    )


@pytest.mark.parametrize("name", CANDIDATES)
def test_weight_zero_is_the_base_layer_bit_for_bit(name: str) -> None:
    conv, x = CANDIDATES[name], features()
    torch.manual_seed(1)
    expected = conv(x, EDGES)
    torch.manual_seed(1)
    assert torch.equal(eamp.EntropyAware(conv, weight=0.0)(x, EDGES), expected)
    x = x.requires_grad_()
    torch.manual_seed(1)
    conv(x, EDGES).sum().backward()
    expected_grad, x.grad = x.grad, None
    torch.manual_seed(1)
    eamp.EntropyAware(conv, weight=0)(x, EDGES).sum().backward()
    assert torch.equal(x.grad, expected_grad)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CANDIDATES)
def test_every_layer_takes_the_step(name: str) -> None:
    if name == "HypergraphConv":
        pytest.skip("its second argument joins nodes to hyperedges and is no graph on the nodes")
    conv, x = CANDIDATES[name], features()
    torch.manual_seed(1)
    bare = conv(x, EDGES)
    torch.manual_seed(1)
    out = eamp.EntropyAware(conv, weight=0.7, temperature=1.3)(x, EDGES)
    step = 0.7 * 1.3 * eamp.entropy_gradient(bare, EDGES, 1.3)
    assert step.abs().max() > 0
    torch.testing.assert_close(out, bare + step)


@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
@pytest.mark.parametrize("energy", ["paper", "propagation"])
@pytest.mark.parametrize("scale_free", [False, True])
@pytest.mark.parametrize("detach", [False, True])
def test_every_energy_is_the_reference_on_every_backend(
    backend: str, energy: Any, scale_free: bool, detach: bool
) -> None:
    graph, x = random_graph(10, 20, weighted=True), features().double()
    layer = eamp.EntropyAware(
        Identity(), 1.5, 0.8, energy=energy, scale_free=scale_free, detach=detach
    )
    with eamp.backend(backend):
        out = layer(x, graph)
    temperature = 0.8 * (float(x.square().mean()) * math.sqrt(4) if scale_free else 1.0)
    if energy == "paper":
        step = temperature * reference.entropy_gradient(x, graph.csr, temperature)
    else:
        u = (graph.degree + 1).rsqrt().unsqueeze(1)
        seen = (u * x).requires_grad_()
        squares = reference.squared_differences(seen.detach(), graph.csr)
        energies = squares / 2 / math.sqrt(4)
        q = torch.exp(-energies / temperature) * (1 - energies / temperature) / math.sqrt(4)
        step = u * reference.weighted_differences(q, seen.detach(), graph.csr)
    torch.testing.assert_close(out, x + 1.5 * step)


def test_other_arguments_reach_the_layer() -> None:
    weights = torch.rand(EDGES.size(1))
    conv, x = GCNConv(4, 4), features()
    layer = eamp.EntropyAware(conv, weight=0.0)
    assert torch.equal(layer(x, EDGES, weights), conv(x, EDGES, weights))
    assert torch.equal(layer(x, edge_index=EDGES, edge_weight=weights), conv(x, EDGES, weights))
    attention = GATConv(4, 4, edge_dim=2)
    attributes = torch.randn(EDGES.size(1), 2)
    assert eamp.EntropyAware(attention)(x, EDGES, edge_attr=attributes).shape == (10, 4)


def test_the_adjacency_is_found_by_its_name() -> None:
    conv = PointNetConv()
    x, positions = features(), torch.randn(10, 3)
    out = conv(x, positions, EDGES)
    layer = eamp.EntropyAware(conv, weight=1.0, temperature=2.0)
    torch.testing.assert_close(
        layer(x, positions, EDGES), out + 2.0 * eamp.entropy_gradient(out, EDGES, 2.0)
    )


def test_a_graph_may_stand_in_for_the_edge_index() -> None:
    layer, x = eamp.EntropyAware(SAGEConv(4, 4)), features()
    torch.testing.assert_close(layer(x, GRAPH), layer(x, EDGES))
    torch.testing.assert_close(layer(x, edge_index=GRAPH), layer(x, EDGES))


def test_a_sparse_adjacency_works() -> None:
    adjacency = torch.sparse_coo_tensor(EDGES, torch.ones(EDGES.size(1)), (10, 10)).to_sparse_csr()
    layer, x = eamp.EntropyAware(SAGEConv(4, 4)), features()
    torch.testing.assert_close(layer(x, adjacency), layer(x, EDGES))


def test_a_directed_graph_needs_symmetrize_and_the_layer_still_sees_it_directed() -> None:
    directed, x, conv = torch.tensor([[0, 1, 2], [1, 2, 3]]), features(), SAGEConv(4, 4)
    with pytest.raises(eamp.GraphError, match=r"EntropyAware\(conv, symmetrize=True\)"):
        eamp.EntropyAware(conv)(x, directed)
    out = conv(x, directed)
    step = 10.0 * eamp.entropy_gradient(out, eamp.Graph(directed, 10, symmetrize=True))
    layer = eamp.EntropyAware(conv, 1.0, 10.0, symmetrize=True)
    torch.testing.assert_close(layer(x, directed), out + step)


# --- Derivatives ----------------------------------------------------------------------------


def test_detached_the_step_is_a_constant_and_otherwise_it_is_differentiated() -> None:
    conv, x = GCNConv(4, 4), features().requires_grad_()
    (bare,) = torch.autograd.grad(conv(x, EDGES).square().sum(), x, retain_graph=True)

    def grad(detach: bool) -> Tensor:
        out = eamp.EntropyAware(conv, 1.0, 1.0, detach=detach)(x, EDGES)
        return torch.autograd.grad((out * conv(x, EDGES).detach()).sum(), x)[0] * 2

    torch.testing.assert_close(grad(detach=True), bare)
    assert not torch.allclose(grad(detach=False), bare, rtol=1e-2)


@pytest.mark.parametrize(
    "options",
    [{}, {"variant": "paper"}, {"normalize": True}, {"placement": "input", "residual": True}],
)
def test_gradcheck_through_the_layer(options: dict[str, Any]) -> None:
    layer = eamp.EntropyAware(
        GCNConv(3, 3), 0.7, 0.9, detach=False, learn_weight=True, learn_temperature=True, **options
    ).double()
    x = torch.randn(10, 3, dtype=torch.float64, requires_grad=True)
    parameters = dict(layer.named_parameters())

    def run(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(
            layer, dict(zip(parameters, values, strict=True)), (x, EDGES)
        )

    assert {"weight", "log_temperature"} <= set(parameters)
    assert gradcheck(run, (x, *parameters.values()))


def test_learned_weight_and_temperature_train_even_when_detached() -> None:
    layer = eamp.EntropyAware(GCNConv(4, 4), 0.5, 2.0, learn_weight=True, learn_temperature=True)
    layer(features(), EDGES).square().sum().backward()
    assert layer.weight.grad != 0
    assert layer.log_temperature.grad != 0
    layer.log_temperature.data.fill_(-3.0)  # any value of the parameter is a positive temperature
    assert torch.isfinite(layer(features(), EDGES)).all()


# --- Temperature "auto" and schedules -------------------------------------------------------


def test_auto_measures_the_first_training_batch_and_keeps_it() -> None:
    conv, x = GCNConv(4, 4), features()
    layer = eamp.EntropyAware(conv, 1.0, "auto")
    first = float(eamp.dirichlet_energy(conv(x, EDGES), EDGES).mean().detach())
    layer.eval()(x, EDGES)
    assert math.isnan(layer.calibrated)  # evaluation uses its own mean and keeps nothing
    layer.train()(x, EDGES)
    assert float(layer.calibrated) == pytest.approx(first, rel=1e-5)
    expected = conv(3 * x, EDGES) + first * eamp.entropy_gradient(conv(3 * x, EDGES), EDGES, first)
    torch.testing.assert_close(layer(3 * x, EDGES), expected)
    assert float(layer.calibrated) == pytest.approx(first, rel=1e-5)
    other = eamp.EntropyAware(GCNConv(4, 4), 1.0, "auto")
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.eval()(x, EDGES), layer.eval()(x, EDGES))
    layer.reset_parameters()
    assert math.isnan(layer.calibrated)


def test_auto_waits_for_a_batch_with_edges() -> None:
    layer = eamp.EntropyAware(GCNConv(4, 4), 1.0, "auto")
    layer(torch.randn(3, 4), torch.zeros(2, 0, dtype=torch.long))
    assert layer.calibrated.isnan()
    layer(torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    assert layer.calibrated > 1e-3


def test_auto_on_a_constant_embedding_stays_finite() -> None:
    layer = eamp.EntropyAware(GCNConv(4, 4), temperature="auto")
    assert torch.isfinite(layer(torch.zeros(10, 4), EDGES)).all()


def test_a_schedule_is_called_with_energies_and_temperature() -> None:
    class Feedback(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.strength = torch.nn.Parameter(torch.tensor(0.3))

        def forward(self, energy: Tensor, temperature: float) -> Tensor:
            return self.strength * (energy.mean() < temperature)

    conv, x = GCNConv(4, 4), features()
    layer = eamp.EntropyAware(conv, weight=Feedback(), temperature=2.0)
    assert "weight.strength" in dict(layer.named_parameters())
    out = conv(x, EDGES)
    torch.testing.assert_close(
        layer(x, EDGES), out + 0.3 * 2.0 * eamp.entropy_gradient(out, EDGES, 2.0)
    )


# --- A good citizen -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be > 0"),
        ({"temperature": "hot"}, "number > 0 or 'auto', but is 'hot'"),
        ({"temperature": "auto", "learn_temperature": True}, "choose one"),
        ({"weight": math.inf}, "weight must be finite"),
        (
            {"weight": lambda energy, temperature: 1.0, "learn_weight": True},
            "needs a number to start from",
        ),
        ({"placement": "middle"}, "'output' or 'input', but is 'middle'"),
        ({"variant": "approximate"}, "one of 'exact', 'paper', 'permuted', but is 'approximate'"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        eamp.EntropyAware(GCNConv(4, 4), **options)


def test_tuples_in_and_out_are_refused() -> None:
    with pytest.raises(TypeError, match=r"one feature tensor .* but got a tuple for SAGEConv"):
        eamp.EntropyAware(SAGEConv((4, 4), 4))((features(), features()), EDGES)
    with pytest.raises(TypeError, match="returns one tensor, but GATConv returned a tuple"):
        eamp.EntropyAware(GATConv(4, 4))(features(), EDGES, return_attention_weights=True)


@pytest.mark.parametrize("options", [{"residual": True}, {"placement": "input"}])
def test_shapes_that_cannot_be_added_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"GCNConv turned \[10, 4\] into \[10, 6\]"):
        eamp.EntropyAware(GCNConv(4, 6), **options)(features(), EDGES)


def test_copies_and_state_dicts() -> None:
    layer = eamp.EntropyAware(GCNConv(4, 4), 1.0, learn_weight=True, learn_temperature=True)
    layer.weight.data.fill_(0.25)
    x = features()
    assert torch.equal(copy.deepcopy(layer)(x, EDGES), layer(x, EDGES))
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    other = eamp.EntropyAware(GCNConv(4, 4), 1.0, learn_weight=True, learn_temperature=True)
    other.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(other(x, EDGES), layer(x, EDGES))
    layer.reset_parameters()
    assert layer.weight.item() == 1.0


def test_repr_shows_what_is_not_the_default() -> None:
    text = repr(eamp.EntropyAware(GCNConv(4, 4), 2.0, "auto", detach=True))
    assert "weight=2.0, temperature='auto', detach=True" in text
    assert "(conv): GCNConv(4, 4)" in text


def test_autocast_to_bfloat16() -> None:
    layer, x = eamp.EntropyAware(SAGEConv(4, 4), detach=False, learn_temperature=True), features()
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(x, EDGES)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), layer(x, EDGES), rtol=0.1, atol=0.1)
    out.float().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in layer.parameters())


# One for every way in which the step is put together.
WAYS: dict[str, dict[str, Any]] = {
    "fused": {"weight": 0.5, "detach": True},
    "fused, scale free": {
        "weight": 0.5,
        "detach": True,
        "scale_free": True,
        "energy": "propagation",
    },
    "number": {"weight": 0.5, "detach": False},
    "scale free": {"weight": 0.5, "detach": False, "scale_free": True},
    "propagation": {
        "weight": 0.5,
        "detach": False,
        "energy": "propagation",
        "scale_free": True,
    },
    "schedule": {
        "weight": {"schedule": "feedback", "lowest": 0.1, "highest": 0.5},
        "detach": False,
    },
    "learned": {"weight": 0.5, "learn_weight": True},
    "learned, propagation": {"weight": 0.5, "learn_weight": True, "energy": "propagation"},
    "function": {"weight": lambda energy, temperature: 0.5, "detach": False},
    "measured": {"weight": 0.5, "temperature": "auto", "scale_free": True},
    "normalised": {"weight": 0.5, "normalize": True},
}
ways = pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)


@ways
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_the_result_alone(
    dtype: torch.dtype, options: dict[str, Any]
) -> None:
    """The squares of these features, and their sum over channels, overflow float16."""
    torch.manual_seed(0)
    x = (300 + 100 * features(64)).to(dtype)
    layer = eamp.EntropyAware(Identity(), **options)
    found, expected = layer(x, GRAPH), layer(x.float(), GRAPH)
    assert found.dtype == dtype
    rounding = torch.finfo(dtype).eps
    torch.testing.assert_close(found.float(), expected, rtol=rounding, atol=rounding)


@ways
@pytest.mark.parametrize(
    ("given", "returned"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.bfloat16),
        (torch.float32, torch.float64),
        (torch.float64, torch.float32),
    ],
)
def test_the_result_has_the_dtype_of_the_layers_output(
    given: torch.dtype, returned: torch.dtype, options: dict[str, Any]
) -> None:
    class Converting(torch.nn.Module):
        def forward(self, x: Tensor, edge_index: Any) -> Tensor:
            return x.to(returned)

    torch.manual_seed(0)
    x = features().to(given)
    layer = eamp.EntropyAware(Converting(), placement="input", **options)
    out = layer(x, GRAPH)
    assert out.dtype == returned
    expected = eamp.EntropyAware(Identity(), placement="input", **options)(x.float(), GRAPH)
    torch.testing.assert_close(out.float(), expected, rtol=1e-2, atol=1e-2)


@ways
def test_vmap_over_the_parameters_of_a_layer_with_the_step_at_its_input(
    options: dict[str, Any],
) -> None:
    torch.manual_seed(0)
    layer, x = eamp.EntropyAware(eamp.nn.GCNConv(4, 4), placement="input", **options), features()
    layer(x, GRAPH)  # measures the temperature
    layer.eval()
    weights = torch.randn(3, 4, 4)

    def run(weight: Tensor) -> Tensor:
        return torch.func.functional_call(layer, {"conv.lin.weight": weight}, (x, GRAPH))

    found = torch.func.vmap(run)(weights)
    torch.testing.assert_close(found, torch.stack([run(weight) for weight in weights]))


@pytest.mark.parametrize("normalize", [False, True])
def test_two_copies_in_a_batch_are_one_copy_alone(normalize: bool) -> None:
    x = features()
    data = Data(x=x, edge_index=EDGES)
    batch = Batch.from_data_list([data, data])
    layer = eamp.EntropyAware(GCNConv(4, 4), temperature=1.0, normalize=normalize)
    alone = layer(x, EDGES)
    together = layer(batch.x, eamp.Graph(batch) if normalize else batch.edge_index)
    torch.testing.assert_close(together, torch.cat([alone, alone]))


@pytest.mark.parametrize("temperature", [1.0, "auto"])
@pytest.mark.parametrize("detach", [True, False])
@pytest.mark.parametrize("adjacency", ["edge_index", "graph"])
@pytest.mark.usefixtures("_pyg_compiles")
def test_torch_compile_in_one_graph(temperature: Any, detach: bool, adjacency: str) -> None:
    torch._dynamo.reset()
    layer = eamp.EntropyAware(GCNConv(4, 4), 1.0, temperature, detach=detach, symmetrize=True)
    twin = copy.deepcopy(layer)
    compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
    given = EDGES if adjacency == "edge_index" else GRAPH
    for _ in range(2):
        x = features().requires_grad_()
        out, expected = compiled(x, given), layer(x, given)
        torch.testing.assert_close(out, expected)
        gradients = (torch.autograd.grad(y.square().sum(), x)[0] for y in (out, expected))
        torch.testing.assert_close(*gradients)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch.compile's own imports
@pytest.mark.skipif(
    shutil.which("c++") is None, reason="torch.compile's default backend needs a C++ compiler"
)
def test_torch_compile_with_inductor() -> None:
    torch._dynamo.reset()
    g = random_graph(30, 60)
    layer = eamp.EntropyAware(GCNConv(4, 4), detach=False)
    compiled = torch.compile(layer, fullgraph=True)
    for n in (30, 31):  # a second size compiles dynamic shapes
        x = torch.randn(n, 4, requires_grad=True)
        torch.testing.assert_close(compiled(x, g.edge_index), layer(x, g.edge_index))
        compiled(x, g.edge_index).sum().backward()
        assert torch.isfinite(x.grad).all()  # type: ignore[arg-type]


def test_every_option_is_documented() -> None:
    text = inspect.getdoc(eamp.EntropyAware) or ""
    for name in inspect.signature(eamp.EntropyAware).parameters:
        assert f"{name}:" in text, name
