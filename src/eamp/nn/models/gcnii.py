"""GCNII, a preset of :class:`DeepGCN` with initial residual and identity mapping."""

from torch import Tensor

from eamp.graph import Graph
from eamp.nn.conv.deep_conv import GCNIIConv
from eamp.nn.entropic import Entropy
from eamp.nn.models.deep_gcn import DeepGCN


class GCNII(DeepGCN):
    r"""GCNII: :class:`DeepGCN` with layers of :class:`GCNIIConv`.

    From `"Simple and Deep Graph Convolutional Networks" <https://arxiv.org/abs/2007.02133>`_ (Chen
    et al., 2020).

    .. math::
        \mathbf{X}' = \mathrm{ReLU}(\mathrm{GCNIIConv}(\mathbf{X}, \mathbf{X}^{(0)}))

    The default ``placement`` of the entropy step is ``"output"``; with ``"input"``, the step sees
    the features after dropout. See :class:`NodeClassifier` for the other arguments.

    Args:
        alpha: See :class:`GCNIIConv`.
        theta: See :class:`GCNIIConv`.

    Example:
        >>> model = GCNII(16, 64, 7, num_layers=64, dropout=0.6)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        dropout: float = 0.0,
        entropy: Entropy = None,
        alpha: float = 0.1,
        theta: float = 0.5,
        checkpoint: bool = False,
    ) -> None:
        sizes = (in_channels, hidden_channels, out_channels, num_layers)
        super().__init__(
            *sizes,
            dropout=dropout,
            entropy=entropy,
            placement="output",
            conv=lambda layer: GCNIIConv(hidden_channels, alpha, theta, layer),
            checkpoint=checkpoint,
        )

    def layer(self, x: Tensor, number: int, x_0: Tensor, graph: Graph) -> Tensor:
        """Apply the layer of the given number, counted from 0."""
        return self.convs[number](self.drop(x, graph), x_0, graph).relu()
