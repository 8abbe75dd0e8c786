import torch
from torch_geometric.nn import GAT, GATConv

import eamp
from eamp.nn.from_pyg import FromPyG
from eamp.nn.models import from_pyg
from problems import irregular_graph, random_graph


def test_a_graph_is_its_edge_list() -> None:
    conv, x, graph = FromPyG(GATConv(4, 3)), torch.randn(10, 4), irregular_graph()
    assert torch.equal(conv(x, graph), conv.conv(x, graph.edge_index))
    assert torch.equal(conv(x, graph.edge_index), conv.conv(x, graph.edge_index))


def test_is_recognised_as_one_layer() -> None:
    layer = eamp.wrap(FromPyG(GATConv(4, 3)), weight=1.0)
    assert isinstance(layer, eamp.EntropyAware)
    assert isinstance(layer.conv, FromPyG)


def test_pygs_model_computes_what_it_computes_in_pyg() -> None:
    graph, x = random_graph(12, 20), torch.randn(12, 4)
    torch.manual_seed(0)
    theirs = GAT(4, 8, 3, 5, heads=2)
    torch.manual_seed(0)
    ours = from_pyg(GAT, 4, 8, 5, 2, heads=2)  # two hidden layers and the output layer: three of PyG's
    torch.testing.assert_close(ours(x, graph), theirs(x, graph.edge_index))


def test_the_step_sees_the_weights_of_a_graph() -> None:
    torch.manual_seed(0)
    weighted, x = random_graph(12, 20, weighted=True), torch.randn(12, 4)
    bare = eamp.Graph(weighted.edge_index, 12)
    with_step, without = (from_pyg(GAT, 4, 8, 5, 2, entropy=entropy) for entropy in ({"weight": 1.0, "temperature": 1.0}, None))
    assert not torch.equal(with_step(x, weighted), with_step(x, bare))
    assert torch.equal(without(x, weighted), without(x, bare))
