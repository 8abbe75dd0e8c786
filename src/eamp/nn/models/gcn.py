"""The plain graph convolutional network and, with ``entropy=``, the Entropic GCN."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from torch import Tensor
from torch.nn import Linear, Module, ModuleList
from torch_geometric.nn.inits import reset

from eamp.graph import Adjacency, as_graph
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.gcn_conv import GCNConv, MessagePassingLayer
from eamp.nn.entropic import Entropy, entropic, number_layers
from eamp.ops import dropout


class ResidualUpdate(MessagePassingLayer):
    r"""The update that the paper starts from, with a convolution inside:
    :math:`\mathbf{X} + \phi(\mathbf{X})` with :math:`\phi(\mathbf{X}) = \mathrm{ReLU}(\mathrm{GCNConv}(\mathbf{X}))`.

    Args:
        channels: size of each input and output sample.
        dropout: probability of dropping a feature on its way into :math:`\phi`; the skip connection keeps it.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** features :math:`(|\mathcal{V}|, F)`.

    BibTeX key for ``eamp cite``: ``nazari2024entropy``.

    Example:
        >>> import torch
        >>> ResidualUpdate(4)(torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 4])
    """

    def __init__(self, channels: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = GCNConv(channels, channels)
        self.dropout = dropout

    def reset_parameters(self) -> None:
        """Reset the convolution."""
        self.conv.reset_parameters()

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """X + φ(X)."""
        graph = as_graph(edge_index, x.size(0))
        return x + self.conv(dropout(x, self.dropout, self.training, graph.rows), graph).relu()


class GCN(Module):
    r"""The graph convolutional network of `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_ (Kipf & Welling, 2017); with ``entropy`` the Entropic GCN of `"Entropy Aware Message Passing
    in Graph Neural Networks" <https://arxiv.org/abs/2403.04636>`_ (Nazari et al., 2024).

    Its two forms, the second the one that the paper writes down, the first the one that its authors ran:

    .. math::
        \texttt{"authors"}: \quad \mathbf{X}' &= \mathrm{ReLU}(\mathbf{Y} + \lambda T \nabla S(\mathbf{Y})), \quad
            \mathbf{Y} = \mathrm{GCNConv}(\mathbf{X}) \\
        \texttt{"paper"}: \quad \mathbf{X}' &= \mathbf{X} + \mathrm{ReLU}(\mathrm{GCNConv}(\mathbf{X})) + \lambda T \nabla S(\mathbf{X})

    ``"paper"`` has a linear encoder before the layers; both have an output convolution after them. So depth *L* means *L* hidden
    convolutions plus one.

    Args:
        in_channels: size of each input sample.
        hidden_channels: width of the hidden layers.
        out_channels: number of classes.
        num_layers: *L*, number of hidden convolutions.
        dropout: probability of dropping a feature before every convolution.
        entropy: arguments of :class:`eamp.EntropyAware` for every hidden layer.
        form: ``"authors"`` or ``"paper"``.
        checkpoint: keep the embedding at a few layers only and compute the others a second time in the backward pass; see
            :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``kipf2017semi``.

    Example:
        >>> import torch
        >>> model = GCN(16, 64, 7, num_layers=2, entropy=dict(weight=1.0, temperature=10.0))
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
        form: Literal["authors", "paper"] = "authors",
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        if form not in ("authors", "paper"):
            raise ValueError(f"form must be 'authors' or 'paper', but is {form!r}.")
        self.dropout, self.checkpoint = dropout, checkpoint
        self.encoder: Linear | None = None
        widths = [in_channels] + [hidden_channels] * num_layers
        if form == "paper":
            self.encoder = Linear(in_channels, hidden_channels)
            widths[0] = hidden_channels
            layers: list[Module] = [
                ResidualUpdate(hidden_channels, dropout) for _ in range(num_layers)
            ]
        else:
            layers = [GCNConv(width, next_width) for width, next_width in pairwise(widths)]
        self.convs = number_layers(
            ModuleList(
                entropic(layer, entropy, "input" if form == "paper" else "output")
                for layer in layers
            )
        )
        self.output = GCNConv(widths[-1], out_channels)

    def reset_parameters(self) -> None:
        """Reset every layer."""
        reset(self.encoder)
        reset(self.convs)
        self.output.reset_parameters()

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Logits of every node."""
        graph = as_graph(edge_index, x.size(0))
        if self.encoder is not None:
            x = self.encoder(dropout(x, self.dropout, self.training, graph.rows))

        def layer(x: Tensor, conv: Module) -> Tensor:
            if self.encoder is not None:
                return conv(x, graph)
            return conv(dropout(x, self.dropout, self.training, graph.rows), graph).relu()

        x = in_segments(layer, self.convs, x, self.checkpoint)
        return self.output(dropout(x, self.dropout, self.training, graph.rows), graph)
