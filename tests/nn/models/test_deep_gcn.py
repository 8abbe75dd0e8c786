"""The deep family: every option gives the network that it describes."""

from typing import Any

import pytest
import torch
from torch import Tensor

from eamp.nn import GCNII, DeepConv, DeepGCN
from eamp.nn.conv.gcn_conv import gcn_propagate
from problems import irregular_graph

GRAPH = irregular_graph()
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


def test_the_step_slows_smoothing_down() -> None:
    """Far below the temperature, gain g makes a random walk stay where it is with probability g."""
    model = network(linear=True, entropy={**STEP, "temperature": 1e9})
    x = model.encoder(X).relu()
    for _ in range(6):
        x = 0.2 * gcn_propagate(x, GRAPH) + 0.8 * x
    torch.testing.assert_close(model(X, GRAPH), decoded(model, x))


def test_a_budget_of_hops_is_the_same_at_any_depth() -> None:
    """Many small steps and few large ones both approximate exp(-t (I - Â))."""
    entropy = {**STEP, "weight": {"schedule": "hops", "of": 3}, "temperature": 1e9}
    shallow, deep, deeper = (
        network(layers, linear=True, entropy=entropy)(X, GRAPH) for layers in (3, 300, 1000)
    )
    torch.testing.assert_close(deep, deeper, rtol=0.05, atol=0.005)
    bare = network(3, linear=True)(X, GRAPH)
    torch.testing.assert_close(shallow, bare)
    assert not torch.allclose(deep, network(300, linear=True)(X, GRAPH), rtol=0.05, atol=0.005)


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
