import torch

from eamp.nn.conv.egnn_conv import EGNNConv, SReLU
from eamp.nn.conv.gcn_conv import gcn_propagate
from problems import random_graph


def test_layer_is_the_published_equation() -> None:
    graph = random_graph(20, 40)
    x, x_0 = torch.randn(2, 20, 4, dtype=torch.float64)
    conv = EGNNConv(4, c_min=0.3, initial_residual=0.1).double()
    torch.nn.init.normal_(conv.weight)
    expected = (0.7 * gcn_propagate(x, graph) + 0.2 * x + 0.1 * x_0) @ conv.weight
    torch.testing.assert_close(conv(x, graph, x_0), expected)


def test_srelu_bends_at_its_shift_and_learns_it_from_what_falls_below() -> None:
    bend = SReLU(2, shift=-1.0)
    x = torch.tensor([[-3.0, 0.5], [-0.5, 2.0]])
    out = bend(x)
    assert torch.equal(out, torch.tensor([[-1.0, 0.5], [-0.5, 2.0]]))
    out.sum().backward()
    assert torch.equal(bend.shift.grad, torch.tensor([1.0, 0.0]))
