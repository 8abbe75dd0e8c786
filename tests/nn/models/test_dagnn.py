import torch
from torch_geometric.nn import SGConv

from eamp.nn.models.dagnn import DAGNN
from problems import normalised_adjacency, random_graph


def test_is_a_gated_sum_over_the_hops() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(15, 30), torch.randn(15, 5, dtype=torch.float64)
    model = DAGNN(5, 8, 3, num_layers=4).double()
    z = model.decoder(model.encoder(x).relu())
    expected = torch.zeros_like(z)
    for k in range(5):
        hop = torch.linalg.matrix_power(normalised_adjacency(graph), k) @ z
        expected += torch.sigmoid(hop @ model.gate.weight.T + model.gate.bias) * hop
    torch.testing.assert_close(model(x, graph), expected)


def test_without_gates_the_hops_are_summed_by_halves() -> None:
    graph, x = random_graph(15, 30), torch.randn(15, 5, dtype=torch.float64)
    model = DAGNN(5, 8, 3, num_layers=2).double()
    torch.nn.init.zeros_(model.gate.weight)
    torch.nn.init.zeros_(model.gate.bias)
    z = model.decoder(model.encoder(x).relu())
    hop = SGConv(3, 3, K=1, bias=False).double()
    torch.nn.init.eye_(hop.lin.weight)
    once = hop(z, graph.edge_index)
    torch.testing.assert_close(model(x, graph), (z + once + hop(once, graph.edge_index)) / 2)


def test_all_hops_share_one_gate() -> None:
    shapes = {tuple(parameter.shape) for parameter in DAGNN(5, 8, 3, num_layers=64).parameters()}
    assert shapes == {(8, 5), (8,), (3, 8), (3,), (1, 3), (1,)}
