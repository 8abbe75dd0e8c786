"""A graph network as a state space: fixed rotations carry the state from layer to layer."""

import math

import torch
from torch import Tensor
from torch.nn import Linear, Module

from eamp.graph import Adjacency
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.entropic import Entropy
from eamp.nn.models.node_classifier import NodeClassifier, entropic_layers


class StateSpaceGCN(NodeClassifier):
    r"""A linear encoder, *L* steps of a state whose input is a graph convolution, a linear decoder.

    From `"On Vanishing Gradients, Over-Smoothing, and Over-Squashing in GNNs: Bridging Recurrent
    and Graph Learning" <https://arxiv.org/abs/2502.10818>`_ (Arroyo et al., 2025):

    .. math::
        \mathbf{X}' = \mathbf{X} \Lambda + \mathrm{ReLU}(\mathrm{GCNConv}(\mathbf{X}))\, \mathbf{B}

    :math:`\Lambda` and :math:`\mathbf{B}` are not learned. All eigenvalues of :math:`\Lambda` have
    modulus 1 and :math:`\mathbf{B}` is small, so that signals and gradients neither vanish nor
    explode. Which matrices these are is a choice of this implementation: :math:`\Lambda` rotates
    every pair of features by an angle of its own, so that a state also tells how many layers ago a
    signal came, and :math:`\mathbf{B}` is a number. Without rotation the network is a residual one,
    whose branch has that number as its weight.

    See :class:`NodeClassifier` for the other arguments. There is no dropout before the encoder.

    Args:
        rotation: The largest of the angles per layer, in radians; the others are spread evenly
            between 0 and it. 0 leaves the state as it is.
        input_scale: :math:`\mathbf{B}`.

    Example:
        >>> model = StateSpaceGCN(16, 64, 7, num_layers=32)
    """

    angles: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        dropout: float = 0.0,
        entropy: Entropy = None,
        rotation: float = 0.5,
        input_scale: float = 0.5,
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        for name, value in (("rotation", rotation), ("input_scale", input_scale)):
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a finite number >= 0, but is {value!r}.")
        self.rotation, self.input_scale = rotation, input_scale
        self.encoder = Linear(in_channels, hidden_channels)
        self.convs = entropic_layers(
            (GCNConv(hidden_channels, hidden_channels) for _ in range(num_layers)), entropy
        )
        self.decoder = Linear(hidden_channels, out_channels)
        angles = torch.linspace(rotation, 0, hidden_channels // 2).flip(0)  # one is the largest
        self.register_buffer("angles", angles, persistent=False)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)

        def layer(x: Tensor, conv: Module) -> Tensor:
            change = conv(self.drop(x, graph), graph).relu()
            return torch.add(rotated(x, self.angles), change, alpha=self.input_scale)

        x = self.run(layer, self.convs, self.encoder(x))
        return self.decoder(self.drop(x, graph))

    def extra_repr(self) -> str:
        """Return what is not learned."""
        return f"rotation={self.rotation}, input_scale={self.input_scale}"


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate feature k and feature k + m by angle k of m; the last of an odd number stays.

    Example:
        >>> rotated(torch.tensor([[1.0, 0.0, 7.0]]), torch.tensor([math.pi / 2])).round()
        tensor([[-0.,  1.,  7.]])
    """
    m = angles.numel()
    first, second, rest = x.split([m, m, x.size(1) - 2 * m], dim=1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, first * sin + second * cos, rest], dim=1)
