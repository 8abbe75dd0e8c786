"""The graph convolution of energetic graph networks, and their activation."""

import torch
from torch import Tensor
from torch.nn import Module, Parameter

from eamp.graph import Adjacency
from eamp.nn.conv.gcn_conv import MessagePassingLayer, gcn_propagate


class EGNNConv(MessagePassingLayer):
    r"""The layer of :class:`eamp.nn.EGNN` before its activation.

    .. math::
        \mathbf{X}' = \left[(1 - c_{min})\, \hat{A} \mathbf{X} + \alpha \mathbf{X}
            + \beta \mathbf{X}_0\right] W, \qquad \alpha + \beta = c_{min}

    Args:
        channels: Size of each input and output sample.
        c_min: Weight of the two residual connections together.
        initial_residual: :math:`\beta`, the part of ``c_min`` for the initial features.
        scale: The weight matrix starts as ``scale`` times the identity, and :meth:`distance` is
            measured from there.
    """

    def __init__(
        self, channels: int, c_min: float, initial_residual: float, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.channels, self.c_min, self.scale = channels, c_min, scale
        self.initial_residual = initial_residual
        self.weight = Parameter(torch.empty(channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weight matrix to ``scale`` times the identity."""
        with torch.no_grad():
            self.weight.copy_(torch.eye(self.channels) * self.scale)

    def forward(self, x: Tensor, edge_index: Adjacency, initial: Tensor) -> Tensor:
        """Propagate, add both residual connections, transform."""
        alpha, beta = self.c_min - self.initial_residual, self.initial_residual
        mixed = (1 - self.c_min) * gcn_propagate(x, edge_index) + alpha * x + beta * initial
        return mixed @ self.weight

    def distance(self) -> Tensor:
        """Return ‖W − scale · I‖_F."""
        eye = torch.eye(self.channels, dtype=self.weight.dtype, device=self.weight.device)
        return torch.linalg.matrix_norm(self.weight - self.scale * eye)

    def extra_repr(self) -> str:
        """Return the sizes and weights."""
        limits = f"c_min={self.c_min}, initial_residual={self.initial_residual}"
        return f"{self.channels}, {limits}, scale={self.scale:.4g}"


class SReLU(Module):
    """The shifted ReLU max(x, b) with a learned b per channel.

    Args:
        channels: Size of each input and output sample.
        shift: Initial value of b.
    """

    def __init__(self, channels: int, shift: float) -> None:
        super().__init__()
        self.initial_shift = shift
        self.shift = Parameter(torch.full((channels,), shift))

    def reset_parameters(self) -> None:
        """Reset the shift to its initial value."""
        torch.nn.init.constant_(self.shift, self.initial_shift)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation to every element."""
        return torch.maximum(x, self.shift)
