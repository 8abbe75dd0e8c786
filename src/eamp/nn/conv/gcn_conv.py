"""The graph convolution, and the propagation that other layers share with it."""

from functools import partial

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.nn.inits import reset

from eamp.graph import Adjacency, graph_for
from eamp.nn.checks import check_count
from eamp.ops import accumulate_dtype, added, in_dtype, neighbour_sums, propagation_scale

# A linear layer that also takes sparse features, with PyG's usual initialisation in layers.
glorot_linear = partial(Linear, weight_initializer="glorot", bias_initializer="zeros")


class MessagePassingLayer(Module):
    r"""Base class of eamp's layers, which :func:`eamp.wrap` and :func:`eamp.probe` recognise.

    ``forward`` takes the features first, and the graph in an argument named ``edge_index``.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices
          :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`, and, in layers with an initial
          residual connection, initial features :math:`(|\mathcal{V}|, F_{in})`.
        - **output:** features :math:`(|\mathcal{V}|, F_{out})`.
    """

    def reset_parameters(self) -> None:
        """Reset every layer inside this one."""
        for child in self.children():
            reset(child)


def gcn_propagate(
    x: Tensor,
    edge_index: Adjacency,
    mixed_in: Tensor | None = None,
    share: float = 0.0,
    bias: Tensor | None = None,
) -> Tensor:
    r"""Return :math:`(1 - \alpha) \hat{A} \mathbf{X} + \alpha \mathbf{Y} + b`.

    :math:`\hat{A} = \tilde{D}^{-1/2} (A + I) \tilde{D}^{-1/2}` with :math:`\tilde{D} = D + I` is
    symmetric and never built: forward and backward are the same pass over the edges.

    Args:
        x: Features :math:`\mathbf{X}` of shape ``[n, F]``.
        edge_index: The graph.
        mixed_in: :math:`\mathbf{Y}` of shape ``[n, F]``, or ``None`` for :math:`\alpha = 0`.
        share: :math:`\alpha`.
        bias: :math:`b` of shape ``[F]``, or ``None`` for 0.
    """
    graph = graph_for(x, edge_index)
    scale = propagation_scale(graph, accumulate_dtype(x))
    return neighbour_sums(scale, x, scale, graph, True, mixed_in, share, bias)


class GCNConv(MessagePassingLayer):
    r"""The graph convolution, for undirected graphs.

    From `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_ (Kipf & Welling, 2017).

    .. math::
        \mathbf{X}' = \tilde{D}^{-1/2} (A + I) \tilde{D}^{-1/2} \mathbf{X} W + b

    Parameters, their names and their initialisation are those of PyG's ``GCNConv``, so each loads
    the other's state dict. For edge weights, pass an :class:`eamp.Graph` that has them.

    Args:
        in_channels: Size of each input sample.
        out_channels: Size of each output sample.
        bias: Add a bias.
        propagate_first: Propagate before the transformation. Default: where it is cheaper, i.e. if
            ``in_channels < out_channels``. If they are equal, it is cheaper in a first layer, whose
            input has no gradient: nothing is then propagated in the backward pass.

    Example:
        >>> import torch
        >>> GCNConv(4, 2)(torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 2])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        bias: bool = True,
        propagate_first: bool | None = None,
    ) -> None:
        super().__init__()
        check_count("in_channels", in_channels)
        check_count("out_channels", out_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        cheaper = in_channels < out_channels
        self.propagate_first = cheaper if propagate_first is None else propagate_first
        self.lin = glorot_linear(in_channels, out_channels, bias=False)
        self.bias = Parameter(torch.zeros(out_channels)) if bias else None

    def reset_parameters(self) -> None:
        """Reset the weights (Glorot) and the bias (zero)."""
        super().reset_parameters()
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Transform and propagate, in the cheaper order; sparse features are transformed first."""
        if not self.propagate_first or x.layout != torch.strided:
            return gcn_propagate(self.lin(x), edge_index, bias=self.bias)
        out: Tensor = self.lin(gcn_propagate(x, edge_index))
        # In place, because autograd does not need the sum.
        return out if self.bias is None else in_dtype(added(out, self.bias), out.dtype)

    def __repr__(self) -> str:
        return f"GCNConv({self.in_channels}, {self.out_channels})"
