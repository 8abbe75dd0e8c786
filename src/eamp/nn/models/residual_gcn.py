"""A deep graph convolutional network with pre-activation residual blocks."""

from __future__ import annotations

from torch import Tensor
from torch.nn import LayerNorm, Linear, Module, ModuleList, ReLU
from torch_geometric.nn import DeepGCNLayer
from torch_geometric.nn.inits import reset

from eamp.graph import Adjacency, as_graph
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.entropic import Entropy, entropic, number_layers
from eamp.ops import dropout


class ResidualGCN(Module):
    r"""Residual blocks on graphs, from `"DeepGCNs: Can GCNs Go as Deep as CNNs?" <https://arxiv.org/abs/1904.03751>`_ (Li et al., 2019), in
    their pre-activation form from `"DeeperGCN: All You Need to Train Deeper GCNs" <https://arxiv.org/abs/2006.07739>`_ (Li et al., 2020).

    .. math::
        \mathbf{X}' = \mathbf{X} + \mathrm{GCNConv}(\mathrm{Dropout}(\mathrm{ReLU}(\mathrm{LayerNorm}(\mathbf{X}))))

    A linear encoder, *L* such blocks, and a normalised linear decoder.

    Args:
        in_channels: size of each input sample.
        hidden_channels: width of the hidden layers.
        out_channels: number of classes.
        num_layers: *L*, number of blocks, one convolution each.
        dropout: probability of dropping a feature before every convolution and the decoder.
        entropy: arguments of :class:`eamp.EntropyAware` for every convolution.
        checkpoint: keep the embedding at a few layers only and compute the others a second time in the backward pass; see
            :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``li2019deepgcns``.

    Example:
        >>> import torch
        >>> model = ResidualGCN(16, 64, 7, num_layers=8, checkpoint=True)
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
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.dropout, self.checkpoint = dropout, checkpoint
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

    def reset_parameters(self) -> None:
        """Reset every layer."""
        for module in (self.encoder, self.blocks, self.norm, self.decoder):
            reset(module)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Logits of every node."""
        graph = as_graph(edge_index, x.size(0))
        x = self.encoder(x)
        # Whole blocks, norm and activation included; DeepGCNLayer's own option covers its convolution alone.
        x = in_segments(lambda x, block: block(x, graph), self.blocks, x, self.checkpoint)
        x = dropout(self.norm(x).relu(), self.dropout, self.training, graph.rows)
        return self.decoder(x)
