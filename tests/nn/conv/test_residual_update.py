import torch
from torch_geometric.nn import GCNConv

import eamp
from eamp.graph import Rows
from eamp.nn.conv.residual_update import ResidualUpdate
from eamp.ops import dropout
from problems import irregular_graph


def test_is_the_input_and_pygs_convolution() -> None:
    graph, x = irregular_graph(), torch.randn(10, 4)
    ours, theirs = ResidualUpdate(4), GCNConv(4, 4)
    ours.conv.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours(x, graph), x + theirs(x, graph.edge_index).relu())


def test_dropout_leaves_the_residual_alone() -> None:
    x = torch.randn(10, 4)
    assert torch.equal(ResidualUpdate(4, dropout=1.0)(x, irregular_graph()), x)


def test_a_part_of_a_graph_drops_what_the_whole_graph_drops() -> None:
    class Part(eamp.Graph):
        """Rows 20, 21, ... of a larger graph."""

        @property
        def rows(self) -> Rows:
            return Rows(torch.arange(20, 30))

    whole, x, update = irregular_graph(), torch.randn(10, 4), ResidualUpdate(4, dropout=0.5)
    part = Part._of(whole.csr, whole.degree)
    torch.manual_seed(0)
    out = update(x, part)
    torch.manual_seed(0)
    dropped = dropout(x, 0.5, rows=part.rows)
    torch.testing.assert_close(out, x + update.conv(dropped, whole).relu())


def test_resets_its_convolution() -> None:
    update = ResidualUpdate(4)
    before = update.conv.lin.weight.clone()
    torch.nn.init.ones_(update.conv.bias)
    update.reset_parameters()
    assert not torch.equal(update.conv.lin.weight, before)
    assert not update.conv.bias.any()
