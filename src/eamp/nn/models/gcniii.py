"""GCNIII: GCNII beside a linear model of the features."""

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Identity, Linear

from eamp.graph import Adjacency
from eamp.nn.checks import check_share
from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.nn.entropic import Entropy
from eamp.nn.models.gcnii import GCNII


class GCNIII(GCNII):
    r""":class:`GCNII`, mixed with a wide branch: one propagation of a linear model.

    From `"Wide & Deep Learning for Node Classification" <https://arxiv.org/abs/2505.02020>`_ (Chen
    et al., 2025).

    .. math::
        \mathbf{Y} = (1 - \gamma) \, \mathrm{GCNII}(\mathbf{X})
            + \gamma \, \hat{A} \, \mathrm{BatchNorm}(\mathbf{X} W)

    The propagation is what the paper calls intersect memory. The batch normalisation stands in the
    authors' code, where its scale and shift are not trained. The linear model sees the features
    without dropout, and has a bias where no batch normalisation would cancel it. An entropy step is
    taken in the layers of GCNII. See :class:`NodeClassifier` for the other arguments.

    Args:
        alpha: See :class:`GCNIIConv`.
        theta: See :class:`GCNIIConv`.
        gamma: :math:`\gamma`, the share of the wide branch, between 0 and 1.
        intersect_memory: Propagate the linear model.
        batch_norm: Normalise the linear model.

    Example:
        >>> model = GCNIII(16, 64, 7, num_layers=64, dropout=0.6, gamma=0.02)
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
        gamma: float = 0.02,
        intersect_memory: bool = True,
        batch_norm: bool = True,
        checkpoint: bool = False,
    ) -> None:
        check_share("gamma", gamma)
        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            num_layers,
            dropout=dropout,
            entropy=entropy,
            alpha=alpha,
            theta=theta,
            checkpoint=checkpoint,
        )
        self.gamma, self.intersect_memory = gamma, intersect_memory
        self.wide = Linear(in_channels, out_channels, bias=not batch_norm)
        self.norm = BatchNorm1d(out_channels, affine=False) if batch_norm else Identity()

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        wide = self.norm(self.wide(x))
        if self.intersect_memory:
            wide = gcn_propagate(wide, graph)
        return torch.lerp(super().forward(x, graph), wide, self.gamma)
