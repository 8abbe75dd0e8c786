import math
from typing import Any

import pytest
import torch
from torch_geometric.nn import GCN2Conv

from eamp.nn.conv.deep_conv import DeepConv, GCNIIConv
from eamp.nn.conv.gcn_conv import gcn_propagate
from problems import random_graph

GRAPH = random_graph(20, 40)


@pytest.mark.parametrize("skip", [0.0, 0.6])
@pytest.mark.parametrize("weights", ["glorot", "orthogonal", "identity", "mapping", "none"])
def test_is_the_equation(weights: Any, skip: float) -> None:
    x, x_0 = torch.randn(2, 20, 6, dtype=torch.float64)
    conv = DeepConv(6, 2, 5, weights, initial_residual=0.3, theta=0.7, skip=skip).double()
    identity, v = torch.eye(6, dtype=torch.float64), conv.weight
    beta = math.log(0.7 / 2 + 1)
    if v is None:
        matrix = identity
    else:
        torch.nn.init.normal_(v)
        matrix = {
            "identity": identity + v / 5,
            "mapping": (1 - beta) * identity + beta * v,
        }.get(weights, v)
    walked = (1 - skip) * gcn_propagate(x, GRAPH) + skip * x
    torch.testing.assert_close(conv(x, x_0, GRAPH), (0.7 * walked + 0.3 * x_0) @ matrix)


def test_weights_start_as_they_are_called() -> None:
    orthogonal = DeepConv(8, 1, 1, weights="orthogonal").weight
    torch.testing.assert_close(orthogonal @ orthogonal.t(), torch.eye(8), atol=1e-5, rtol=0)
    assert torch.equal(DeepConv(8, 3, 7, weights="identity").matrix(), torch.eye(8))
    largest = DeepConv(8, 1, 1, weights="glorot").weight.detach().abs().max()
    assert 0.9 < float(largest) / math.sqrt(6 / (8 + 8)) <= 1
    assert not list(DeepConv(8, 1, 1).parameters())


def test_dropout_leaves_the_initial_features_alone() -> None:
    x, x_0 = torch.ones(20, 6), torch.randn(20, 6)
    conv = DeepConv(6, 1, 1, initial_residual=0.4, dropout=1.0)
    torch.testing.assert_close(conv(x, x_0, GRAPH), 0.4 * x_0)
    torch.testing.assert_close(
        conv.eval()(x, x_0, GRAPH), 0.6 * gcn_propagate(x, GRAPH) + 0.4 * x_0
    )


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match="weights must be one of glorot"):
        DeepConv(8, 1, 1, weights="unit")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="initial_residual must be a number between 0 and 1"):
        DeepConv(8, 1, 1, initial_residual=1.5)
    with pytest.raises(ValueError, match="skip must be a number between 0 and 1"):
        DeepConv(8, 1, 1, skip=-0.5)


@pytest.mark.parametrize("layer", [1, 2, 64])
@pytest.mark.parametrize("weighted", [False, True])
def test_gcnii_is_pygs_layer_and_they_exchange_weights(layer: int, weighted: bool) -> None:
    graph = random_graph(20, 40, weighted=weighted)
    x, x_0 = torch.randn(2, 20, 6, dtype=torch.float64)
    weight = None if graph.edge_weight is None else graph.edge_weight.double()
    theirs = GCN2Conv(6, alpha=0.2, theta=0.7, layer=layer, shared_weights=True).double()
    ours = GCNIIConv(6, alpha=0.2, theta=0.7, layer=layer).double()
    for source, target in ((ours, theirs), (theirs, ours)):
        torch.nn.init.normal_(source.weight1)
        target.load_state_dict(source.state_dict())
        torch.testing.assert_close(ours(x, x_0, graph), theirs(x, x_0, graph.edge_index, weight))


def test_gcnii_starts_as_pygs_layer() -> None:
    weights = []
    for conv in (GCNIIConv(6, 0.1, 0.5, 1), GCN2Conv(6, 0.1, 0.5, 1, shared_weights=True)):
        torch.manual_seed(3)
        conv.reset_parameters()
        weights.append(conv.weight1)
    assert torch.equal(*weights)
