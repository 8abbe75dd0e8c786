"""The plain graph convolutional network and, with ``entropy=``, the Entropic GCN."""

from itertools import pairwise
from typing import Literal

from torch import Tensor
from torch.nn import Linear, Module

from eamp.graph import Adjacency, as_graph
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.conv.residual_update import ResidualUpdate
from eamp.nn.entropic import Entropy
from eamp.nn.models.node_classifier import NodeClassifier, entropic_layers


class GCN(NodeClassifier):
    r"""The graph convolutional network; with ``entropy``, the Entropic GCN.

    From `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_ (Kipf & Welling, 2017) and `"Entropy Aware Message Passing
    in Graph Neural Networks" <https://arxiv.org/abs/2403.04636>`_ (Nazari et al., 2024).

    .. math::
        \texttt{"authors"}: \quad
            \mathbf{X}' &= \mathrm{ReLU}(\mathbf{Y} + \lambda T \nabla S(\mathbf{Y})) \\
        \texttt{"paper"}: \quad
            \mathbf{X}' &= \mathbf{X} + \mathrm{ReLU}(\mathbf{Y}) + \lambda T \nabla S(\mathbf{X})

    with :math:`\mathbf{Y} = \mathrm{GCNConv}(\mathbf{X})`. Both forms end with an output
    convolution; ``"paper"`` begins with a linear encoder. See :class:`NodeClassifier` for the other
    arguments.

    Args:
        form: ``"authors"`` for the layer in the code of the paper's authors, or ``"paper"`` for the
            layer in the paper's equations, whose default ``placement`` is ``"input"``.

    Example:
        >>> model = GCN(16, 64, 7, num_layers=2, entropy=dict(weight=1.0, temperature=10.0))
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
        form: Literal["authors", "paper"] = "authors",
        checkpoint: bool = False,
    ) -> None:
        super().__init__(num_layers, dropout, checkpoint)
        if form not in ("authors", "paper"):
            raise ValueError(f"form must be 'authors' or 'paper', but is {form!r}.")
        paper = form == "paper"
        self.encoder = Linear(in_channels, hidden_channels) if paper else None
        widths = [hidden_channels if paper else in_channels] + [hidden_channels] * num_layers
        layers = (
            ResidualUpdate(hidden_channels, dropout)
            if paper
            else GCNConv(*pair, propagate_first=pair[0] < pair[1] + (layer == 0))
            for layer, pair in enumerate(pairwise(widths))
        )
        self.convs = entropic_layers(layers, entropy, "input" if paper else "output")
        self.output = GCNConv(widths[-1], out_channels)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = as_graph(edge_index, x.size(0))
        if self.encoder is not None:
            x = self.encoder(self.drop(x, graph))

        def layer(x: Tensor, conv: Module) -> Tensor:
            if self.encoder is not None:
                return conv(x, graph)
            return conv(self.drop(x, graph), graph).relu()

        x = self.run(layer, self.convs, x)
        return self.output(self.drop(x, graph), graph)
