"""Gradient gating, which slows a node down where it has become similar to its neighbours."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric.nn import GATConv

from eamp.graph import Adjacency, graph_for
from eamp.nn.conv.from_pyg import FromPyG
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.conv.neighbour_powers import mean_powers
from eamp.nn.entropic import Entropy, applied, entropic
from eamp.nn.models.node_classifier import NodeClassifier


class G2(NodeClassifier):
    r"""A linear encoder with ReLU, one gated convolution applied *L* times, and a linear decoder.

    From `"Gradient Gating for Deep Multi-Rate Learning on Graphs"
    <https://arxiv.org/abs/2210.00513>`_ (Rusch et al., 2023).

    .. math::
        \mathbf{X}' &= (1 - \tau) \odot \mathbf{X} + \tau \odot \sigma(\mathrm{conv}(\mathbf{X})) \\
        \tau_{ic} &= \tanh \left( \frac{1}{k_i} \sum_{j \in \mathcal{N}_i}
            \lvert y_{ic} - y_{jc} \rvert^p \right), \qquad
        \mathbf{Y} = \sigma(\mathrm{gate}(\mathbf{X}))

    All layers share the two convolutions. With edge weights the mean over the neighbours is
    weighted. An isolated node has :math:`\tau = 0` and does not change. See
    :class:`NodeClassifier` for the other arguments.

    Args:
        dropout: Probability of dropping a feature before the encoder and before the decoder.
        entropy: See :class:`NodeClassifier`; the convolution of the gate does not get the step.
        conv: ``"gcn"`` with :math:`\sigma = \mathrm{ReLU}`, or ``"gat"``, the mean of four
            attention heads, with :math:`\sigma = \mathrm{ELU}`.
        p: :math:`p \ge 1`. For :math:`p = 2` no tensor is larger than the features of the nodes.
        relu_logits: Apply a ReLU to the logits, as in the experiments of the paper on entropy-aware
            message passing; only to reproduce them.

    Example:
        >>> model = G2(16, 64, 7, num_layers=8)
    """

    probed_layers = "conv"  # not the convolution of the gate

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        dropout: float = 0.0,
        entropy: Entropy = None,
        conv: Literal["gcn", "gat"] = "gcn",
        p: float = 2.0,
        relu_logits: bool = False,
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        if conv not in ("gcn", "gat"):
            raise ValueError(f"conv must be 'gcn' or 'gat', but is {conv!r}.")
        if not p >= 1:
            raise ValueError(
                f"p must be >= 1, but is {p}: below 1 the gate has no derivative where two "
                "neighbours are equal."
            )
        self.p, self.relu_logits = p, relu_logits
        self.activation = F.relu if conv == "gcn" else F.elu

        def convolution() -> Module:
            if conv == "gcn":
                return GCNConv(hidden_channels, hidden_channels)
            return FromPyG(GATConv(hidden_channels, hidden_channels, heads=4, concat=False))

        self.encoder = Linear(in_channels, hidden_channels)
        self.conv = entropic(convolution(), entropy)
        self.gate = convolution()
        self.decoder = Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        x = self.encoder(self.drop(x, graph)).relu()

        def layer(x: Tensor, number: int) -> Tensor:
            gate, conv = self.gating(x, graph), applied(self.conv, number, self.num_layers)
            return (1 - gate) * x + gate * self.activation(conv(x, graph))

        x = self.run(layer, range(1, self.num_layers + 1), x)
        logits = self.decoder(self.drop(x, graph))
        return logits.relu() if self.relu_logits else logits

    def gating(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return τ, the rate of change of every node and channel, in [0, 1]; ``[n, F]``."""
        y = self.activation(self.gate(x, edge_index))
        return torch.tanh(mean_powers(y, graph_for(y, edge_index), self.p))
