"""A graph convolutional network with pair normalisation."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn import PairNorm
from torch_geometric.nn.inits import reset

from eamp.graph import Adjacency, Graph, as_graph
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.entropic import Entropy, entropic, number_layers
from eamp.ops import dropout


class PairNormGCN(Module):
    r"""A graph convolutional network that keeps the total distance between its nodes constant, from `"PairNorm: Tackling
    Oversmoothing in GNNs" <https://arxiv.org/abs/1909.12223>`_ (Zhao & Akoglu, 2020).

    .. math::
        \mathbf{X}' = \mathrm{ReLU}(\mathrm{PairNorm}(\mathrm{GCNConv}(\mathbf{X}))), \qquad
        \mathrm{PairNorm}(\mathbf{X})_i = s \, \frac{\mathbf{x}_i - \bar{\mathbf{x}}}
            {\sqrt{\frac{1}{n} \sum_j \lVert \mathbf{x}_j - \bar{\mathbf{x}} \rVert^2}}

    Depth *L* means *L − 1* hidden convolutions plus the output convolution. In a batch of graphs (an :class:`eamp.Graph` that knows its
    ``batch``) every graph is normalised by itself.

    Args:
        in_channels: size of each input sample.
        hidden_channels: width of the hidden layers.
        out_channels: number of classes.
        num_layers: *L*, number of convolutions.
        dropout: probability of dropping a feature before every convolution.
        entropy: arguments of :class:`eamp.EntropyAware` for every hidden layer; the step comes before the normalisation.
        scale: :math:`s`, the root mean square distance of a node from the mean after every hidden layer. Wider layers do not change it.
        scale_individually: divide every node by its own norm rather than by the root mean square norm of all.
        checkpoint: keep the embedding at a few layers only and compute the others a second time in the backward pass; see
            :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``zhao2020pairnorm``.

    Example:
        >>> import torch
        >>> model = PairNormGCN(16, 64, 7, num_layers=4, scale=3.0, scale_individually=True)
        >>> model(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 7])
    """

    takes_sparse_features = True

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
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.dropout, self.checkpoint = dropout, checkpoint
        widths = [in_channels] + [hidden_channels] * (num_layers - 1)
        self.convs = number_layers(
            ModuleList(
                entropic(GCNConv(width, next_width), entropy)
                for width, next_width in pairwise(widths)
            )
        )
        self.norm = PairNorm(
            scale=scale, scale_individually=scale_individually
        )  # has no parameters: one does for all layers
        self.output = GCNConv(widths[-1], out_channels)

    def reset_parameters(self) -> None:
        """Reset every layer."""
        reset(self.convs)
        self.output.reset_parameters()

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Logits of every node."""
        graph = as_graph(edge_index, x.size(0))

        def layer(x: Tensor, conv: Module) -> Tensor:
            x = conv(dropout(x, self.dropout, self.training, graph.rows), graph)
            return pair_norm(x, graph, self.norm).relu()

        x = in_segments(layer, self.convs, x, self.checkpoint)
        return self.output(dropout(x, self.dropout, self.training, graph.rows), graph)


def pair_norm(x: Tensor, graph: Graph, norm: PairNorm) -> Tensor:
    """What ``norm`` does."""
    x = x - graph.mean(x)
    if norm.scale_individually:
        return norm.scale * x / (norm.eps + x.norm(2, -1, keepdim=True))
    mean = graph.mean(x.square().sum(1))
    return norm.scale * x / (norm.eps + mean).sqrt().reshape(-1, 1)
