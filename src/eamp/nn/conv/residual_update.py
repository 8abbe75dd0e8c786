"""The residual layer of the paper on entropy-aware message passing."""

from torch import Tensor

from eamp.graph import Adjacency, as_graph
from eamp.nn.conv.gcn_conv import GCNConv, MessagePassingLayer
from eamp.ops import dropout


class ResidualUpdate(MessagePassingLayer):
    r"""A graph convolution with a residual connection.

    .. math::
        \mathbf{X}' = \mathbf{X} + \phi(\mathbf{X}), \qquad
        \phi(\mathbf{X}) = \mathrm{ReLU}(\mathrm{GCNConv}(\mathbf{X}))

    Args:
        channels: Size of each input and output sample.
        dropout: Probability of dropping a feature before :math:`\phi`, but not in the residual.
    """

    def __init__(self, channels: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = GCNConv(channels, channels)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Add the layer's input to the output of the convolution."""
        graph = as_graph(edge_index, x.size(0))
        return x + self.conv(dropout(x, self.dropout, self.training, graph.rows), graph).relu()
