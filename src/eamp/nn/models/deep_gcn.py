"""A family of deep graph convolutional networks, between the plain GCN and GCNII."""

from collections.abc import Callable

from torch import Tensor
from torch.nn import Linear

from eamp.graph import Adjacency, Graph
from eamp.nn.checks import check_share
from eamp.nn.conv.deep_conv import DeepConv, Weights
from eamp.nn.entropic import Entropy, applied
from eamp.nn.models.node_classifier import NodeClassifier, entropic_layers
from eamp.nn.step.options import Placement
from eamp.ops import dropout as drop_features


class DeepGCN(NodeClassifier):
    r"""A linear encoder, *L* layers of :class:`eamp.nn.DeepConv`, and a linear decoder.

    .. math::
        \mathbf{X}' = \mathrm{ReLU}(\mathrm{DeepConv}(\mathbf{X}, \mathbf{X}^{(0)})
            + \lambda T \nabla S(\mathbf{X}))

    By default the layers have no weights: they propagate the features and mix in the output of the
    encoder. The options add or remove one ingredient each, down to the plain GCN
    (``weights="glorot", initial_residual=0``). See :class:`NodeClassifier` for the other arguments.

    Args:
        dropout: Probability of dropping a feature before the encoder and before the decoder.
        input_dropout: Probability of dropping a feature before the encoder. Default: ``dropout``.
        layer_dropout: Probability of dropping a feature before every layer. Default: ``dropout``.
        weights: How a layer transforms its features; see :class:`eamp.nn.DeepConv`.
        initial_residual: :math:`\alpha`, the share of the encoder's output in every layer.
        skip: The share of a layer's own input in its propagation; see :class:`eamp.nn.DeepConv`.
        theta: :math:`\theta` of ``weights="mapping"``.
        residual: Add the input of each layer to its output.
        shared: Apply one layer *L* times.
        linear: Leave out the ReLU of the layers.
        conv: A function that returns the convolution of a layer from its number, counted from 1,
            for layers other than those that the options describe.
        placement: Where the entropy step is taken if ``entropy`` is a mapping that does not say so.

    Example:
        >>> entropy = dict(weight={"schedule": "gain", "of": 0.3}, temperature=100.0)
        >>> model = DeepGCN(16, 64, 7, num_layers=256, entropy=entropy, checkpoint=True)
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
        input_dropout: float | None = None,
        layer_dropout: float | None = None,
        weights: Weights = "none",
        initial_residual: float = 0.1,
        theta: float = 0.5,
        skip: float = 0.0,
        residual: bool = False,
        shared: bool = False,
        linear: bool = False,
        conv: Callable[[int], DeepConv] | None = None,
        placement: Placement = "input",
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        self.residual, self.linear = residual, linear
        self.input_dropout = dropout if input_dropout is None else input_dropout
        check_share("input_dropout", self.input_dropout)
        layer_dropout = dropout if layer_dropout is None else layer_dropout
        check_share("layer_dropout", layer_dropout)

        def deep_conv(layer: int) -> DeepConv:
            options = (weights, initial_residual, theta, layer_dropout, skip)
            return DeepConv(hidden_channels, layer, num_layers, *options)

        self.encoder = Linear(in_channels, hidden_channels)
        layers = map(conv or deep_conv, range(1, 2 if shared else num_layers + 1))
        self.convs = entropic_layers(layers, entropy, placement)
        self.decoder = Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        x = drop_features(x, self.input_dropout, self.training, graph.rows)
        x_0 = self.encoder(x).relu()
        numbers = range(self.num_layers)
        x = self.run(lambda x, number: self.layer(x, number, x_0, graph), numbers, x_0)
        return self.decoder(self.drop(x, graph))

    def layer(self, x: Tensor, number: int, x_0: Tensor, graph: Graph) -> Tensor:
        """Apply the layer of the given number, counted from 0."""
        conv = applied(self.convs[number % len(self.convs)], number + 1, self.num_layers)
        out = conv(x, x_0, graph)
        out = out if self.linear else out.relu()
        return x + out if self.residual else out
