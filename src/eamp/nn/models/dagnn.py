"""DAGNN: a perceptron, many propagations, and a learned gate for every node and hop."""

import torch
from torch import Tensor
from torch.nn import Linear, Module

from eamp.graph import Adjacency
from eamp.nn.conv.deep_conv import DeepConv
from eamp.nn.entropic import Entropy
from eamp.nn.models.node_classifier import NodeClassifier, entropic_layers


class DAGNN(NodeClassifier):
    r"""A perceptron whose logits are propagated, and gated at every hop.

    From `"Towards Deeper Graph Neural Networks" <https://arxiv.org/abs/2007.09296>`_ (Liu et al.,
    2020).

    .. math::
        \mathbf{X}^{(0)} = \mathrm{MLP}(\mathbf{X}), \qquad
        \mathbf{X}^{(k)} = \hat{A} \mathbf{X}^{(k - 1)}, \qquad
        \mathbf{Y} = \sum_{k = 0}^{L} \sigma(\mathbf{X}^{(k)} s + b) \odot \mathbf{X}^{(k)}

    The perceptron has one hidden layer. All hops share the gate's vector :math:`s` and, as in the
    authors' code but not in their equation, a bias :math:`b`. See :class:`NodeClassifier` for the
    other arguments.

    Args:
        dropout: Probability of dropping a feature before both layers of the perceptron.

    Example:
        >>> model = DAGNN(16, 64, 7, num_layers=10, dropout=0.8)
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
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        self.encoder = Linear(in_channels, hidden_channels)
        self.decoder = Linear(hidden_channels, out_channels)
        numbers = range(1, num_layers + 1)
        self.steps = entropic_layers(
            (DeepConv(out_channels, k, num_layers, initial_residual=0.0) for k in numbers), entropy
        )
        self.gate = Linear(out_channels, 1)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        h = self.encoder(self.drop(x, graph)).relu()
        h = self.decoder(self.drop(h, graph))

        def hop(state: Tensor, step: Module) -> Tensor:
            h, total = state.chunk(2, dim=1)
            h = step(h, h, graph)
            return torch.cat([h, total + self.gated(h)], dim=1)

        state = torch.cat([h, self.gated(h)], dim=1)
        return self.run(hop, self.steps, state).chunk(2, dim=1)[1]

    def gated(self, h: Tensor) -> Tensor:
        """Return the share of a hop in the logits."""
        return self.gate(h).sigmoid() * h
