"""The plain graph convolutional network and, with ``entropy=``, the Entropic GCN."""

from itertools import count, pairwise
from typing import Literal

from torch import Tensor
from torch.nn import Linear, Module, ModuleList

from eamp.graph import Adjacency
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.conv.norms import norm_of, takes_batch
from eamp.nn.conv.residual_update import ResidualUpdate
from eamp.nn.entropic import Entropy
from eamp.nn.models.initial_weights import (
    InitialWeights,
    check_initial_weights,
    mirror_weights,
    scale_weights,
)
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
        norm: The name of a PyG normalisation between each hidden layer and its activation, such as
            ``"BatchNorm"`` or ``"GraphNorm"``, or ``None``. It follows the step. In a batch of
            graphs, a norm that takes a ``batch`` normalises every graph by itself. For pair
            normalisation see :class:`PairNormGCN`.
        initial_weights: ``"glorot"``, or ``"mirrored"`` for weights with which the network begins
            as a linear map that keeps the scale of an embedding through weights and ReLU; see
            :func:`~eamp.nn.models.initial_weights.mirror_weights`. The latter needs an even number
            of hidden channels.
        initial_gain: Factor on the initial weights of the hidden layers. With Glorot's,
            :math:`\sqrt 2` keeps the scale of an embedding.
        input_gain: A further factor on the initial weights of the first hidden layer. It sets the
            scale of the embedding, beside which learned biases are small or large.
        output_gain: Factor on the initial weights of the output layer: the scale of the first
            logits.

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
        norm: str | None = None,
        initial_weights: InitialWeights = "glorot",
        initial_gain: float = 1.0,
        input_gain: float = 1.0,
        output_gain: float = 1.0,
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        if form not in ("authors", "paper"):
            raise ValueError(f"form must be 'authors' or 'paper', but is {form!r}.")
        paper = form == "paper"
        self.encoder = Linear(in_channels, hidden_channels) if paper else None
        widths = [hidden_channels if paper else in_channels] + [hidden_channels] * num_layers

        def conv(number: int, sizes: tuple[int, int]) -> Module:
            if paper:
                return ResidualUpdate(hidden_channels, dropout)
            # The first layer's input has no gradient, so nothing is propagated backwards.
            first = True if number == 0 and sizes[0] == sizes[1] else None
            return GCNConv(*sizes, propagate_first=first)

        layers = map(conv, count(), pairwise(widths))
        self.convs = entropic_layers(layers, entropy, "input" if paper else "output")
        self.output = GCNConv(widths[-1], out_channels)
        if paper and norm:
            raise ValueError("norm is an option of form='authors'; form='paper' has none.")
        self.norms = ModuleList(norm_of(norm, width) for width in widths[1:])
        self.norms_by_graph = any(map(takes_batch, self.norms))
        check_initial_weights(initial_weights)
        if paper and initial_weights != "glorot":
            raise ValueError(
                f"initial_weights={initial_weights!r} is for form='authors'; form='paper' has "
                "'glorot'."
            )
        self.initial_weights = initial_weights
        self.initial_gain, self.input_gain, self.output_gain = initial_gain, input_gain, output_gain
        self.prepare_weights()

    def reset_parameters(self) -> None:
        """Reset every layer, and prepare the initial weights anew."""
        super().reset_parameters()
        self.prepare_weights()

    def prepare_weights(self) -> None:
        """Mirror the initial weights if asked to, and multiply them by the gains."""
        if self.initial_weights == "mirrored" and self.num_layers:
            mirror_weights([*self.convs, self.output])
        scale_weights(self.convs, self.initial_gain, "initial_gain")
        scale_weights(self.convs[:1], self.input_gain, "input_gain")
        scale_weights(self.output, self.output_gain, "output_gain")

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        if self.encoder is not None:
            x = self.encoder(self.drop(x, graph))

        def layer(x: Tensor, parts: tuple[Module, Module]) -> Tensor:
            conv, norm = parts
            if self.encoder is not None:
                return conv(x, graph)
            x = conv(self.drop(x, graph), graph)
            return (norm(x, graph.batch) if self.norms_by_graph else norm(x)).relu()

        x = self.run(layer, list(zip(self.convs, self.norms, strict=True)), x)
        return self.output(self.drop(x, graph), graph)
