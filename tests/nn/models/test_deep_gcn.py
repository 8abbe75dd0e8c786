"""The deep family: every option gives the network that it describes."""

from typing import Any

import pytest
import torch
from torch import Tensor

import eamp
from eamp.nn import GCNII, MODELS, DeepConv, DeepGCN
from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.nn.models.registry import DEEP_STEP
from problems import irregular_graph, undirected

GRAPH = irregular_graph()
BIPARTITE = eamp.Graph(undirected(*((i, 4 + j) for i in range(4) for j in range(4))), 8)
X = torch.randn(GRAPH.num_nodes, 5, generator=torch.Generator().manual_seed(0))
STEP: dict[str, Any] = {
    "weight": {"schedule": "gain", "of": 0.8},
    "temperature": 0.5,
    "energy": "propagation",
    "scale_free": True,
}


def network(num_layers: int = 6, **options: Any) -> DeepGCN:
    torch.manual_seed(0)
    return DeepGCN(
        5, 8, 3, num_layers, **{"weights": "identity", "initial_residual": 0.0, **options}
    )


def decoded(model: DeepGCN, x: Tensor) -> Tensor:
    return model.decoder(x)


def adjacency(graph: eamp.Graph) -> Tensor:
    return gcn_propagate(torch.eye(graph.num_nodes, dtype=torch.float64), graph)


def test_mapping_is_gcnii() -> None:
    ours = network(weights="mapping", initial_residual=0.1, theta=0.4)
    theirs = GCNII(5, 8, 3, 6, alpha=0.1, theta=0.4)
    ours.load_state_dict(
        {name.replace("weight1", "weight"): tensor for name, tensor in theirs.state_dict().items()}
    )
    torch.testing.assert_close(ours(X, GRAPH), theirs(X, GRAPH))


@pytest.mark.parametrize("weights", ["glorot", "orthogonal"])
def test_without_ingredients_it_is_a_stack_of_convolutions(weights: Any) -> None:
    model = network(weights=weights)
    x = model.encoder(X).relu()
    for conv in model.convs:
        x = (gcn_propagate(x, GRAPH) @ conv.weight).relu()
    torch.testing.assert_close(model(X, GRAPH), decoded(model, x))


@pytest.mark.parametrize("weights", ["identity", "none"])
def test_at_first_only_the_graph_transforms(weights: Any) -> None:
    model = network(weights=weights, linear=True)
    x = model.encoder(X).relu()
    for _ in range(6):
        x = gcn_propagate(x, GRAPH)
    torch.testing.assert_close(model(X, GRAPH), decoded(model, x))


def test_the_step_is_a_lazy_walk() -> None:
    """Far below the temperature, gain g makes a random walk stay where it is with probability g."""
    model = network(linear=True, entropy={**STEP, "temperature": 1e9})
    torch.testing.assert_close(model(X, GRAPH), network(linear=True, skip=0.8)(X, GRAPH))


@pytest.mark.parametrize("gain", [0.3, 0.6])
def test_the_lazy_walk_keeps_slow_modes_and_loses_the_fast_ones_sooner(gain: float) -> None:
    """|g + (1 - g) a| lies below |a| for the eigenvalues a of Â below -g / (2 - g), and only there.

    Above 0 the walk keeps more of a mode than the bare layer, and nothing ever grows.
    """
    a, modes = torch.linalg.eigh(adjacency(BIPARTITE))
    conv = DeepConv(len(a), 1, 1, initial_residual=0.0, skip=gain).double()
    kept = (modes.t() @ conv(modes, modes, BIPARTITE)).diagonal()
    torch.testing.assert_close(kept, gain + (1 - gain) * a)
    faster, border = kept.abs() < a.abs() - 1e-12, -gain / (2 - gain)
    assert faster.any()
    assert torch.equal(faster, a < border)
    assert (kept.abs() <= 1 + 1e-12).all()


def test_a_budget_of_hops_tends_to_the_heat_kernel() -> None:
    """At L layers and t hops it is ((1 - t/L) I + (t/L) Â)^L, whose limit is exp(-t (I - Â))."""
    entropy = {**STEP, "weight": {"schedule": "hops", "of": 3}, "temperature": 1e9}
    models = {n: network(n, linear=True, entropy=entropy).double() for n in (3, 100, 1000)}
    outputs = {n: model(X.double(), GRAPH) for n, model in models.items()}
    a = adjacency(GRAPH)
    x = models[3].encoder(X.double()).relu()
    heat = torch.linalg.matrix_exp(-3 * (torch.eye(len(a)) - a)) @ x
    errors = {n: (out - decoded(models[3], heat)).abs().max() for n, out in outputs.items()}
    assert errors[1000] < 1e-2
    assert errors[1000] < 0.15 * errors[100]  # it falls with 1/L
    power = decoded(models[3], torch.linalg.matrix_power(a, 3) @ x)
    torch.testing.assert_close(outputs[3], power)  # as many layers as hops: bare layers
    assert (power - outputs[1000]).abs().max() > 20 * errors[1000]


def test_depth_and_gain_of_the_default_network_are_one_fixed_point() -> None:
    """With α = .1 and g = .3 it converges to personalised PageRank of restart α / (1 - g)."""
    torch.manual_seed(0)
    stepped = MODELS["entropic-deep-gcn"](5, 8, 3, 64, entropy={**DEEP_STEP, "temperature": 1e9})
    deeper = MODELS["entropic-deep-gcn"](5, 8, 3, 1000, entropy={**DEEP_STEP, "temperature": 1e9})
    restart = DeepGCN(5, 8, 3, 1000, initial_residual=0.1 / 0.7, linear=True)
    for model in (deeper, restart):
        model.load_state_dict(stepped.state_dict())  # no layer has a parameter
    torch.testing.assert_close(stepped(X, GRAPH), deeper(X, GRAPH), rtol=0, atol=1e-4)
    torch.testing.assert_close(deeper(X, GRAPH), restart(X, GRAPH), rtol=0, atol=1e-4)
    for depth in (64, 1000):
        cora = MODELS["entropic-deep-gcn"](1433, 64, 7, depth)
        assert sum(parameter.numel() for parameter in cora.parameters()) == 92_231


def test_shared_layers_are_one_layer() -> None:
    shared = network(weights="glorot", shared=True, entropy=STEP)
    assert sum(p.numel() for p in shared.parameters()) == sum(
        p.numel() for p in network(1, weights="glorot").parameters()
    )
    apart = network(weights="glorot", entropy=STEP)
    for conv in apart.convs:
        conv.load_state_dict(shared.convs[0].state_dict())
    apart.encoder, apart.decoder = shared.encoder, shared.decoder
    torch.testing.assert_close(apart(X, GRAPH), shared(X, GRAPH))


def test_residual_adds_the_input() -> None:
    model = network(2, residual=True)
    x = model.encoder(X).relu()
    for _ in range(2):
        x = x + gcn_propagate(x, GRAPH)
    torch.testing.assert_close(model(X, GRAPH), decoded(model, x))


def test_left_as_it_is_it_propagates_with_an_initial_residual() -> None:
    torch.manual_seed(0)
    model = DeepGCN(5, 8, 3, 6, dropout=0.4)
    assert all(conv.weight is None and conv.dropout == 0.4 for conv in model.convs)
    model.eval()
    x = x_0 = model.encoder(X).relu()
    for _ in range(6):
        x = 0.9 * gcn_propagate(x, GRAPH) + 0.1 * x_0
    torch.testing.assert_close(model(X, GRAPH), decoded(model, x))


def test_dropout_of_the_layers_may_differ() -> None:
    model = network(dropout=0.4, layer_dropout=0.0, entropy=STEP)
    assert all(layer.conv.dropout == 0.0 for layer in model.convs)
    assert all(layer.step.placement == "input" for layer in model.convs)


def test_takes_other_convolutions() -> None:
    model = network(3, conv=lambda layer: DeepConv(8, layer, 3, "none", 0.1 * layer))
    x = x_0 = model.encoder(X).relu()
    for alpha in (0.1, 0.2, 0.3):
        x = (1 - alpha) * gcn_propagate(x, GRAPH) + alpha * x_0
    torch.testing.assert_close(model(X, GRAPH), decoded(model, x))


def test_input_dropout_is_that_of_the_encoder_alone() -> None:
    model, seen = network(input_dropout=0.5), list[Tensor]()
    model.encoder.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model(torch.ones_like(X), GRAPH)
    assert set(seen[0].unique().tolist()) == {0.0, 2.0}
    x = torch.randn(GRAPH.num_nodes, 8)
    assert model.drop(x, GRAPH) is x
    assert network(dropout=0.3).input_dropout == 0.3
    with pytest.raises(ValueError, match="input_dropout must be a number between 0 and 1"):
        network(input_dropout=1.5)
