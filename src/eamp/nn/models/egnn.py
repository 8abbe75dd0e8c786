"""Energetic graph networks, which keep the Dirichlet energy between two limits."""

import math

import torch
from torch import Tensor
from torch.nn import Module, ModuleList

from eamp.graph import Adjacency
from eamp.nn.conv.egnn_conv import EGNNConv, SReLU
from eamp.nn.conv.gcn_conv import glorot_linear
from eamp.nn.entropic import Entropy
from eamp.nn.models.node_classifier import NodeClassifier, entropic_layers


class EGNN(NodeClassifier):
    r"""An energetic graph network: a linear encoder, *L* layers, and a linear decoder.

    From `"Dirichlet Energy Constrained Learning for Deep Graph Neural Networks"
    <https://arxiv.org/abs/2107.02392>`_ (Zhou et al., 2021).

    .. math::
        \mathbf{X}_k = \sigma\left(\left[(1 - c_{min})\, \hat{A} \mathbf{X}_{k-1}
            + \alpha \mathbf{X}_{k-1} + \beta \mathbf{X}_0\right] W_k\right),
        \qquad \alpha + \beta = c_{min}

    The method aims at :math:`c_{min} E(\mathbf{X}_{k-1}) \le E(\mathbf{X}_k) \le c_{max}
    E(\mathbf{X}_0)` for :math:`E(\mathbf{X}) = \operatorname{tr}(\mathbf{X}^\top (I - \hat{A})
    \mathbf{X})`. Weights start as :math:`W_1 = \sqrt{c_{max}} I` and :math:`W_k = I`, and
    :meth:`auxiliary_loss` draws them there. In :math:`\sigma(x) = \max(x, b)`, :math:`b` is learned
    per layer and channel, and so low at first that the network is linear.

    At initialisation, the upper limit holds if :math:`c_{max} \ge 1` or :math:`\beta = 0`; else the
    initial residual raises it to :math:`E(\mathbf{X}_0)`. The lower limit holds with
    :math:`c_{max} = 1` for features in the eigenspaces of :math:`\hat{A}` with eigenvalues
    :math:`\mu \ge \sqrt{c_{min}} / (1 + \sqrt{c_{min}})`. In those with :math:`\mu \ge 0` it holds
    with :math:`c_{min}^2` in place of :math:`c_{min}`, and the energy never falls below
    :math:`\beta^2` times its first value. Other features may lose more in the first layers.

    Add :meth:`auxiliary_loss` to the loss. See :class:`NodeClassifier` for the other arguments.

    Args:
        c_min: Lower limit, in (0, 1).
        c_max: Upper limit.
        initial_residual: :math:`\beta`, at most ``c_min``. Default: half of ``c_min``.
        shift: Initial value of :math:`b`.
        penalty_weight: Factor of :meth:`auxiliary_loss`.

    Example:
        >>> model = EGNN(16, 32, 7, num_layers=4)
        >>> model.auxiliary_loss()
        tensor(0., grad_fn=<MulBackward0>)
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
        c_min: float = 0.2,
        c_max: float = 1.0,
        initial_residual: float | None = None,
        shift: float = -10.0,
        penalty_weight: float = 20.0,
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        beta = c_min / 2 if initial_residual is None else initial_residual
        if not (0 < c_min < 1 and 0 <= beta <= c_min <= c_max):
            raise ValueError(
                "0 < c_min < 1 and 0 <= initial_residual <= c_min <= c_max are needed, but "
                f"c_min is {c_min}, initial_residual {beta} and c_max {c_max}."
            )
        self.penalty_weight = penalty_weight
        self.encoder = glorot_linear(in_channels, hidden_channels)
        self.decoder = glorot_linear(hidden_channels, out_channels)
        scales = ([math.sqrt(c_max)] + [1.0] * num_layers)[:num_layers]
        self.convs = entropic_layers(
            (EGNNConv(hidden_channels, c_min, beta, scale) for scale in scales), entropy
        )
        self.activations = ModuleList(SReLU(hidden_channels, shift) for _ in range(num_layers))

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        initial = self.encoder(self.drop(x, graph)).relu()

        def layer(x: Tensor, parts: tuple[Module, Module]) -> Tensor:
            conv, activation = parts
            return activation(conv(self.drop(x, graph), graph, initial))

        x = self.run(layer, zip(self.convs, self.activations, strict=True), initial)
        return self.decoder(self.drop(x, graph))

    def auxiliary_loss(self) -> Tensor:
        """Return ``penalty_weight`` times the distances of all weights from their first values."""
        convs = (conv for conv in self.convs.modules() if isinstance(conv, EGNNConv))
        zero = torch.zeros((), device="cpu")
        return self.penalty_weight * sum((conv.distance() for conv in convs), zero)
