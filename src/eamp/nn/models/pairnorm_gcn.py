"""A graph convolutional network with pair normalisation."""

from itertools import pairwise

from torch import Tensor
from torch.nn import Module

from eamp.graph import Adjacency
from eamp.nn.checks import check_count
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.conv.pair_norm import PairNorm
from eamp.nn.entropic import Entropy
from eamp.nn.models.initial_weights import (
    InitialWeights,
    check_initial_weights,
    mirror_weights,
    scale_weights,
)
from eamp.nn.models.node_classifier import NodeClassifier, entropic_layers


class PairNormGCN(NodeClassifier):
    r"""*L* graph convolutions, each followed by :class:`PairNorm`, and an output convolution.

    .. math::
        \mathbf{X}' = \mathrm{ReLU}(\mathrm{PairNorm}(\mathrm{GCNConv}(\mathbf{X})))

    The entropy step comes before the normalisation. See :class:`NodeClassifier` for the other
    arguments.

    Args:
        scale: See :class:`PairNorm`.
        scale_individually: See :class:`PairNorm`.
        initial_weights: As in :class:`GCN`. Pair normalisation preserves the mirror symmetry.
        output_gain: Factor on the initial weights of the output convolution.
        count_output: Count the output convolution among ``num_layers``, as the paper's authors did.

    Example:
        >>> model = PairNormGCN(16, 64, 7, num_layers=4, scale=3.0, scale_individually=True)
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
        scale: float = 1.0,
        scale_individually: bool = False,
        initial_weights: InitialWeights = "glorot",
        output_gain: float = 1.0,
        count_output: bool = False,
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        check_count("num_layers", num_layers, lowest=int(count_output))
        widths = [in_channels] + [hidden_channels] * (num_layers - count_output)
        self.convs = entropic_layers((GCNConv(*pair) for pair in pairwise(widths)), entropy)
        self.norm = PairNorm(scale, scale_individually)
        self.output = GCNConv(widths[-1], out_channels)
        check_initial_weights(initial_weights)
        self.initial_weights, self.output_gain = initial_weights, output_gain
        self.prepare_weights()

    def reset_parameters(self) -> None:
        """Reset every layer, and prepare the initial weights anew."""
        super().reset_parameters()
        self.prepare_weights()

    def prepare_weights(self) -> None:
        """Mirror the initial weights if asked to, and scale those of the output convolution."""
        if self.initial_weights == "mirrored" and len(self.convs):
            mirror_weights([*self.convs, self.output])
        scale_weights(self.output, self.output_gain, "output_gain")

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)

        def layer(x: Tensor, conv: Module) -> Tensor:
            return self.norm(conv(self.drop(x, graph), graph), graph).relu()

        return self.output(self.drop(self.run(layer, self.convs, x), graph), graph)
