"""A graph transformer: graph convolutions beside attention between all nodes of a graph."""

from torch import Tensor
from torch.nn import Linear, ModuleList, MultiheadAttention
from torch_geometric.nn import GPSConv

from eamp.graph import Adjacency
from eamp.graph.components import components
from eamp.nn.checks import check_heads
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.entropic import Entropy, entropic, number_layers
from eamp.nn.models.node_classifier import NodeClassifier


class GPS(NodeClassifier):
    r"""A linear encoder, *L* layers of local convolution and global attention, a linear decoder.

    From `"Recipe for a General, Powerful, Scalable Graph Transformer"
    <https://arxiv.org/abs/2205.12454>`_ (Rampášek et al., 2022), with PyG's ``GPSConv``:

    .. math::
        \mathbf{Y} = \mathrm{Norm}(\mathbf{X} + \mathrm{GCNConv}(\mathbf{X}))
            + \mathrm{Norm}(\mathbf{X} + \mathrm{Attention}(\mathbf{X})), \qquad
        \mathbf{X}' = \mathrm{Norm}(\mathbf{Y} + \mathrm{MLP}(\mathbf{Y}))

    A layer carries a signal across any distance, and its time grows with the square of the number
    of nodes. Positional encodings, which are the first part of the recipe, are features of the
    data: add them there, as with PyG's ``AddRandomWalkPE``. Parts of a graph are refused. See
    :class:`NodeClassifier` for the other arguments; dropout is applied within the layers.

    Args:
        heads: Number of attention heads; ``hidden_channels`` is a multiple of it.
        norm: The name of a PyG normalisation. One that takes a ``batch`` normalises every graph of
            a batch by itself.
        by_component: Let a node attend to the nodes of its connected component alone, in a graph
            that consists of many separate ones. ``torch.compile`` cannot trace that.

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
        norm: str = "batch_norm",
        by_component: bool = False,
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        check_heads(hidden_channels, heads)
        self.by_component = by_component
        self.encoder = Linear(in_channels, hidden_channels)
        self.blocks = ModuleList(
            GPSConv(
                hidden_channels,
                entropic(GCNConv(hidden_channels, hidden_channels), entropy),
                heads=heads,
                dropout=dropout,
                norm=norm,
            )
            for _ in range(num_layers)
        )
        number_layers(self.blocks)
        self.decoder = Linear(hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        """Reset every layer, in the order of registration."""
        super().reset_parameters()
        for attention in self.modules():
            if isinstance(attention, MultiheadAttention):
                attention.out_proj.reset_parameters()  # which PyG leaves as it is
                attention._reset_parameters()

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        graph.require_all_rows("GPS")
        together = components(graph) if self.by_component else graph.batch
        x = self.run(lambda x, block: block(x, graph, together), self.blocks, self.encoder(x))
        return self.decoder(x)
