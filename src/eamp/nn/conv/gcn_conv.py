"""The graph convolution that most of our models are made of."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch_geometric.nn.dense.linear import Linear

from eamp.graph import Adjacency, graph_for
from eamp.ops import accumulate_dtype, neighbour_sums, propagation_scale


class MessagePassingLayer(Module):
    """A layer that :func:`eamp.wrap` and :func:`eamp.probe` recognise, as they do PyG's.

    Its ``forward`` takes features first, has an argument named ``edge_index`` that may be an
    :class:`eamp.Graph`, and returns a tensor.
    """


def gcn_propagate(
    x: Tensor,
    edge_index: Adjacency,
    mixed_in: Tensor | None = None,
    share: float = 0.0,
    bias: Tensor | None = None,
) -> Tensor:
    r"""Return :math:`\hat A \mathbf{X}`, the propagation of graph convolutions.

    :math:`\hat A = \tilde{D}^{-1/2} (A + I) \tilde{D}^{-1/2}` with :math:`\tilde{D} = D + I`. It is
    its own transpose and is never built: forward and backward are the same pass over the edges.

    Args:
        x: features :math:`\mathbf{X}`, ``[n, F]``.
        edge_index: the graph.
        mixed_in: features :math:`\mathbf{Y}`; the result is then
            :math:`(1 - \alpha) \hat A \mathbf{X} + \alpha \mathbf{Y}`.
        share: :math:`\alpha`.
        bias: ``[F]``, added to every row.

    Example:
        >>> import torch
        >>> gcn_propagate(torch.tensor([[1.0], [5.0]]), torch.tensor([[0, 1], [1, 0]])).round(decimals=3)
        tensor([[3.],
                [3.]])
    """
    graph = graph_for(x, edge_index)
    scale = propagation_scale(graph, accumulate_dtype(x))
    return neighbour_sums(scale, x, scale, graph, True, mixed_in, share, bias)


class GCNConv(MessagePassingLayer):
    r"""The graph convolution of Kipf & Welling, for undirected graphs.

    It comes from `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_ (2017).

    .. math::
        \mathbf{X}' = \tilde{D}^{-1/2} (A + I) \tilde{D}^{-1/2} \mathbf{X} W + b

    Parameters, names and initialisation are those of PyG's layer, so weights can be exchanged
    between the two. Weights of edges come with an :class:`eamp.Graph`.

    Args:
        in_channels: size of each input sample.
        out_channels: size of each output sample.
        bias: add a bias.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices
          :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** features :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``kipf2017semi``.

    Example:
        >>> import torch
        >>> GCNConv(4, 2)(torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 2])
    """

    def __init__(self, in_channels: int, out_channels: int, bias: bool = True) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin = Linear(in_channels, out_channels, bias=False, weight_initializer="glorot")
        self.bias = Parameter(torch.zeros(out_channels)) if bias else None

    def reset_parameters(self) -> None:
        """Reset the weights as Glorot does, and the bias to zero."""
        self.lin.reset_parameters()
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Transform and propagate, in the cheaper order."""
        # Sparse features are transformed first: the propagation takes dense ones.
        if self.in_channels >= self.out_channels or x.layout != torch.strided:
            return gcn_propagate(self.lin(x), edge_index, bias=self.bias)
        out: Tensor = self.lin(gcn_propagate(x, edge_index))
        return out if self.bias is None else out.add_(self.bias)  # in place: the tensor is new

    def __repr__(self) -> str:
        return f"GCNConv({self.in_channels}, {self.out_channels})"
