"""Random propagation: rows of features are dropped, propagated and averaged over the hops."""

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Identity, Linear
from torch.nn.functional import linear, normalize

from eamp.graph import Adjacency, Graph
from eamp.nn.checks import check_share
from eamp.nn.conv.deep_conv import DeepConv
from eamp.nn.entropic import Entropy
from eamp.nn.models.node_classifier import NodeClassifier, entropic_layers
from eamp.ops import dropout as drop_features
from eamp.ops import propagation_scale, row_dropout


class RandomPropagation(NodeClassifier):
    r"""A perceptron on features whose rows are dropped, propagated and averaged over the hops.

    From `"Graph Random Neural Networks for Semi-Supervised Learning on Graphs"
    <https://arxiv.org/abs/2005.11079>`_ (Feng et al., 2020), whose name GRAND is also that of
    :class:`eamp.nn.GRAND`, a diffusion.

    .. math::
        \mathbf{Y} = \mathrm{MLP} \Big( \frac{1}{L + 1} \sum_{k = 0}^{L} \hat{A}^k
            \mathrm{DropNode}(\mathbf{X}) \Big)

    In training, DropNode sets the features of a node to 0 with probability :math:`\delta` and
    divides the others by :math:`1 - \delta`. The paper trains this model with consistency between
    several passes, ``changes={"consistency": {...}}`` of a protocol, which drops rows itself: leave
    one of the two out with ``drop_rows=0``.

    The running mean of the hops obeys :math:`\mathbf{M}^{(k)} = \frac{k}{k + 1} \hat{A}
    \mathbf{M}^{(k - 1)} + \frac{1}{k + 1} \mathbf{M}^{(0)}`, so hops are layers of
    :class:`DeepConv`, and an entropy step is taken after each. Weights begin as those of torch's
    ``Linear``. See :class:`NodeClassifier` for the other arguments.

    Propagation commutes with the first linear map of the perceptron unless something stands between
    them: dropout of propagated features, a norm or an entropy step. Where nothing does, the model
    propagates the hidden features, which are fewer; the outputs are the same up to rounding.

    The options ``walk``, ``normalize_rows``, ``restart`` and ``mlp_layers=1`` are those of
    `"GRAND+: Scalable Graph Random Neural Networks" <https://arxiv.org/abs/2203.06389>`_ (Feng et
    al., 2022; BibTeX key ``feng2022grand``), which in addition keeps only the largest entries of
    the propagation matrix and drops entries instead of rows.

    Args:
        hidden_channels: Width of the only hidden layer of the perceptron.
        dropout: Probability of dropping a hidden feature of the perceptron.
        input_dropout: Probability of dropping a propagated feature. Default: ``dropout``.
        drop_rows: :math:`\delta`.
        batch_norm: Normalise the input and the hidden features of the perceptron.
        walk: Propagate with the random walk :math:`\tilde{D}^{-1} (A + I)` instead of
            :math:`\hat{A}`, so that each node takes a mean over nodes.
        normalize_rows: Divide the propagated features of each node by their Euclidean norm.
        restart: :math:`\alpha` of :math:`\mathbf{M}^{(k)} = (1 - \alpha) \hat{A}
            \mathbf{M}^{(k - 1)} + \alpha \mathbf{M}^{(0)}`, personalised PageRank, which takes the
            place of the mean over the hops. Default: the mean.
        mlp_layers: Number of layers of the perceptron, 1 or 2; with 1 it is a linear map.

    Example:
        >>> model = RandomPropagation(16, 32, 7, num_layers=8, dropout=0.5)
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
        drop_rows: float = 0.5,
        batch_norm: bool = False,
        walk: bool = False,
        normalize_rows: bool = False,
        restart: float | None = None,
        mlp_layers: int = 2,
        checkpoint: bool = False,
    ) -> None:
        channels = (in_channels, hidden_channels, out_channels)
        super().__init__(num_layers, dropout, checkpoint, *channels)
        self.input_dropout = dropout if input_dropout is None else input_dropout
        check_share("input_dropout", self.input_dropout)
        check_share("drop_rows", drop_rows)
        if mlp_layers not in (1, 2):
            raise ValueError(f"mlp_layers must be 1 or 2, but is {mlp_layers!r}.")
        self.drop_rows, self.walk, self.normalize_rows = drop_rows, walk, normalize_rows
        if restart is not None:
            check_share("restart", restart)

        def hop(k: int) -> DeepConv:
            share = 1 / (k + 1) if restart is None else restart
            return DeepConv(in_channels, k, num_layers, initial_residual=share)

        self.steps = entropic_layers(map(hop, range(1, num_layers + 1)), entropy)
        self.input_norm = BatchNorm1d(in_channels) if batch_norm else Identity()
        self.encoder = Linear(in_channels, out_channels if mlp_layers == 1 else hidden_channels)
        self.hidden_norm, self.decoder = None, None
        if mlp_layers == 2:
            self.hidden_norm = BatchNorm1d(hidden_channels) if batch_norm else Identity()
            self.decoder = Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the logits of every node."""
        graph = self.graph_of(x, edge_index)
        x = row_dropout(x, self.drop_rows, self.training, graph.rows)
        if self.commutes():  # (Σ Âᵏ X) W = Σ Âᵏ (X W)
            h = self.propagated(linear(x, self.encoder.weight), graph) + self.encoder.bias
        else:
            x = x if x.layout is torch.strided else x.to_dense()  # torch 2.15 cannot map to_dense
            h = self.propagated(x, graph)
            h = self.input_norm(normalize(h) if self.normalize_rows else h)
            h = self.encoder(drop_features(h, self.input_dropout, self.training, graph.rows))
        if self.decoder is None or self.hidden_norm is None:
            return h
        return self.decoder(self.drop(self.hidden_norm(h.relu()), graph))

    def propagated(self, x: Tensor, graph: Graph) -> Tensor:
        """Return the mean of ``x`` over the hops, or its personalised PageRank."""
        if not self.walk:
            return self.run(lambda h, step: step(h, x, graph), self.steps, x)
        scale = propagation_scale(graph, x.dtype).unsqueeze(1)  # (k + 1)^(−1/2)
        x = x / scale  # D̃⁻¹ (A + I) = D̃^(−1/2) Â D̃^(1/2), and so for means of powers
        return scale * self.run(lambda h, step: step(h, x, graph), self.steps, x)

    def commutes(self) -> bool:
        """Return whether nothing stands between the hops and the first linear map."""
        dropped = self.training and self.input_dropout > 0
        bare = all(isinstance(step, DeepConv) for step in self.steps)
        linear_so_far = isinstance(self.input_norm, Identity) and not self.normalize_rows
        return bare and not dropped and linear_so_far
