import pytest
import torch
from torch.autograd import gradcheck
from torch_geometric.nn import GCNConv as PyGConv

import eamp
from eamp.nn.conv.gcn_conv import GCNConv, gcn_propagate
from problems import random_graph

GRAPH = random_graph(12, 20)


@pytest.mark.parametrize(("inward", "outward"), [(4, 6), (6, 4), (5, 5)])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_pygs_layer_with_the_same_weights(inward: int, outward: int, bias: bool) -> None:
    ours, theirs = GCNConv(inward, outward, bias=bias), PyGConv(inward, outward, bias=bias)
    ours.load_state_dict(theirs.state_dict())
    x, y = (
        torch.randn(12, inward, generator=torch.Generator().manual_seed(1)).requires_grad_()
        for _ in range(2)
    )
    out, expected = ours(x, GRAPH), theirs(y, GRAPH.edge_index)
    torch.testing.assert_close(out, expected)
    out.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_the_order_of_propagation_and_transformation_does_not_matter() -> None:
    one, other = GCNConv(5, 5, propagate_first=True), GCNConv(5, 5)
    other.load_state_dict(one.state_dict())
    x = torch.randn(12, 5)
    torch.testing.assert_close(one(x, GRAPH), other(x, GRAPH))


def test_weighted_graphs_match_too() -> None:
    g = random_graph(12, 20, weighted=True)
    ours, theirs = GCNConv(4, 4), PyGConv(4, 4)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(12, 4)
    torch.testing.assert_close(ours(x, g), theirs(x, g.edge_index, g.edge_weight))


def test_propagation_is_symmetric_and_differentiable() -> None:
    x = torch.randn(12, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: gcn_propagate(x, GRAPH), (x,))
    matrix = gcn_propagate(torch.eye(12, dtype=torch.float64), GRAPH)
    torch.testing.assert_close(matrix, matrix.t())
    assert float(torch.linalg.eigvalsh(matrix).max()) == pytest.approx(1.0)


def test_reset_and_repr() -> None:
    conv = GCNConv(4, 6)
    assert repr(conv) == "GCNConv(4, 6)"
    torch.nn.init.ones_(conv.bias)
    before = conv.lin.weight.clone()
    conv.reset_parameters()
    assert not conv.bias.any()
    assert not torch.equal(conv.lin.weight, before)


def test_the_graph_is_made_once_and_wrap_knows_the_layer() -> None:
    x = torch.randn(12, 4)
    assert eamp.graph.as_graph(GRAPH, 12) is GRAPH
    edge_index = GRAPH.edge_index
    assert eamp.graph.as_graph(edge_index, 12) is eamp.graph.as_graph(edge_index, 12)
    layer = eamp.wrap(GCNConv(4, 4))
    assert isinstance(layer, eamp.EntropyAware)
    torch.testing.assert_close(layer(x, GRAPH), layer(x, edge_index))


@pytest.mark.parametrize(("inward", "outward"), [(4, 6), (6, 4)])
def test_vmap_over_the_bias(inward: int, outward: int) -> None:
    conv, x, biases = GCNConv(inward, outward), torch.randn(12, inward), torch.randn(3, outward)

    def run(bias: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(conv, {"bias": bias}, (x, GRAPH))

    torch.testing.assert_close(torch.func.vmap(run)(biases), torch.stack([*map(run, biases)]))


@pytest.mark.parametrize(("inward", "outward"), [(4, 6), (6, 4)])
def test_autocast_gives_its_dtype(inward: int, outward: int) -> None:
    conv, x = GCNConv(inward, outward), torch.randn(12, inward)
    with torch.autocast("cpu", torch.bfloat16):
        assert conv(x, GRAPH).dtype == torch.bfloat16
