"""Propagation over CSR: the graph convolution that our models are made of."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch_geometric.nn.dense.linear import Linear

from eamp import ops
from eamp.functional import prepare
from eamp.graph import Adjacency
from eamp.graph.edge_index_cache import as_graph


class MessagePassingLayer(Module):
    """What :func:`eamp.wrap` and :func:`eamp.probe` recognise as a layer, besides PyG's ``MessagePassing``.

    Its ``forward`` takes features first, has an argument named ``edge_index`` that may be an :class:`eamp.Graph`, and returns a tensor.
    """


def graph_once(edge_index: Adjacency, x: Tensor) -> Adjacency:
    """The graph of ``edge_index``, converted before the first layer rather than looked up in each.

    Under ``torch.compile`` it stays as it is: there the conversion is one operator of the compiled graph.
    """
    return edge_index if torch.compiler.is_compiling() else as_graph(edge_index, x.size(0))


def gcn_propagate(
    x: Tensor, edge_index: Adjacency, mixed_in: Tensor | None = None, share: float = 0.0
) -> Tensor:
    r""":math:`\hat A \mathbf{X}` with :math:`\hat A = \tilde{D}^{-1/2} (A + I) \tilde{D}^{-1/2}` and :math:`\tilde{D} = D + I`; with
    features to mix in, :math:`(1 - \alpha) \hat A \mathbf{X} + \alpha \mathbf{Y}`, where :math:`\alpha` is their share.

    The matrix is its own transpose and is never built: forward and backward are the same pass over the edges.

    Example:
        >>> import torch
        >>> gcn_propagate(torch.tensor([[1.0], [5.0]]), torch.tensor([[0, 1], [1, 0]])).round(decimals=3)
        tensor([[3.],
                [3.]])
    """
    csr, _, _ = prepare(x, edge_index)
    scale = ops.rsqrt_degree_with_loop(csr, ops.accumulate_dtype(x))
    return ops.neighbour_sums(scale, x, scale, csr, self_loops=True, mixed_in=mixed_in, share=share)


class GCNConv(MessagePassingLayer):
    r"""The graph convolution of `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_ (Kipf & Welling, 2017), for undirected graphs.

    .. math::
        \mathbf{X}' = \tilde{D}^{-1/2} (A + I) \tilde{D}^{-1/2} \mathbf{X} W + b

    Same parameters, names and initialisation as PyG's layer, so weights can be exchanged between the two. Weights of edges come with an
    :class:`eamp.Graph`.

    Args:
        in_channels: size of each input sample.
        out_channels: size of each output sample.
        bias: add a bias.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
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
        """Glorot for the weights, zero for the bias."""
        self.lin.reset_parameters()
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Transform, then propagate; the other way round where that is cheaper."""
        widens = (
            self.in_channels < self.out_channels and x.layout == torch.strided
        )  # sparse features are transformed first
        out = (
            self.lin(gcn_propagate(x, edge_index))
            if widens
            else gcn_propagate(self.lin(x), edge_index)
        )
        return (
            out if self.bias is None else out.add_(self.bias)
        )  # in place: it is fresh, and nothing remembers it

    def __repr__(self) -> str:
        return f"GCNConv({self.in_channels}, {self.out_channels})"
