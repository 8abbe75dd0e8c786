"""A deep graph convolutional network with pre-activation residual blocks."""

from torch import Tensor
from torch.nn import LayerNorm, Linear, ModuleList, ReLU
from torch_geometric.nn import DeepGCNLayer

from eamp.graph import Adjacency
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.entropic import Entropy, entropic, number_layers
from eamp.nn.models.node_classifier import NodeClassifier


class ResidualGCN(NodeClassifier):
    r"""A linear encoder, *L* residual blocks, and a normalised linear decoder.

    From `"DeepGCNs: Can GCNs Go as Deep as CNNs?" <https://arxiv.org/abs/1904.03751>`_ (Li et al.,
    2019), in the pre-activation form of `"DeeperGCN: All You Need to Train Deeper GCNs"
    <https://arxiv.org/abs/2006.07739>`_ (Li et al., 2020).

    .. math::
        \mathbf{X}' = \mathbf{X}
            + \mathrm{GCNConv}(\mathrm{Dropout}(\mathrm{ReLU}(\mathrm{LayerNorm}(\mathbf{X}))))

    See :class:`NodeClassifier` for the arguments. There is no dropout before the encoder.

    Example:
        >>> model = ResidualGCN(16, 64, 7, num_layers=8, checkpoint=True)
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
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        self.encoder = Linear(in_channels, hidden_channels)
        self.blocks = ModuleList(
            DeepGCNLayer(
                entropic(GCNConv(hidden_channels, hidden_channels), entropy),
                norm=LayerNorm(hidden_channels),
                act=ReLU(),
                block="res+",
                dropout=dropout,
            )
            for _ in range(num_layers)
        )
        number_layers(self.blocks)
        self.norm = LayerNorm(hidden_channels)
        self.decoder = Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        x = self.encoder(x)
        # The option ckpt_grad of DeepGCNLayer would leave out its norm and activation.
        x = self.run(lambda x, block: block(x, graph), self.blocks, x)
        return self.decoder(self.drop(self.norm(x).relu(), graph))
