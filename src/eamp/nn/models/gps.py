"""A graph transformer: graph convolutions beside attention between all nodes of a graph."""

from torch import Tensor
from torch.nn import Linear, ModuleList

from eamp.graph import Adjacency
from eamp.graph.components import components
from eamp.nn.checks import check_heads
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.conv.gps_layer import GPSLayer
from eamp.nn.entropic import Entropy, entropic, number_layers
from eamp.nn.models.node_classifier import NodeClassifier


class GPS(NodeClassifier):
    r"""A linear encoder, *L* layers of local convolution and global attention, a linear decoder.

    From `"Recipe for a General, Powerful, Scalable Graph Transformer"
    <https://arxiv.org/abs/2205.12454>`_ (Rampášek et al., 2022); see
    :class:`eamp.nn.conv.gps_layer.GPSLayer`. A layer carries a signal across any distance, and its
    time grows with the square of the number of nodes. Positional encodings, which are the first
    part of the recipe, are features of the data: add them there, as with PyG's
    ``AddRandomWalkPE``. A graph that is spread over several processes is refused, and in a batch of
    clusters nodes attend to those of the batch. See :class:`NodeClassifier` for the other
    arguments; dropout is applied within the layers.

    Args:
        heads: Number of attention heads; ``hidden_channels`` is a multiple of it.
        norm: The name of a PyG normalisation, or ``None``. One that takes a ``batch`` normalises
            every graph of a batch by itself.
        by_component: Take every connected component for a graph of its own: a node attends to those
            of its component alone. ``torch.compile`` cannot trace that.

    Example:
        >>> model = GPS(16, 64, 7, num_layers=4, heads=4)
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
        heads: int = 4,
        norm: str | None = "BatchNorm",
        by_component: bool = False,
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        check_heads(hidden_channels, heads)
        self.by_component = by_component
        self.encoder = Linear(in_channels, hidden_channels)
        self.blocks = ModuleList(
            GPSLayer(
                hidden_channels,
                entropic(GCNConv(hidden_channels, hidden_channels), entropy),
                heads,
                dropout,
                norm,
            )
            for _ in range(num_layers)
        )
        number_layers(self.blocks)
        self.decoder = Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        graph.require_all_rows("GPS")
        together = components(graph) if self.by_component else graph.batch
        x = self.run(lambda x, block: block(x, graph, together), self.blocks, self.encoder(x))
        return self.decoder(x)
