"""A layer of a graph transformer: a convolution beside attention between the nodes of a graph."""

from torch import Tensor
from torch.nn import Dropout, Linear, Module, ModuleList, MultiheadAttention, ReLU, Sequential
from torch_geometric.nn.inits import reset
from torch_geometric.utils import to_dense_batch

from eamp.graph import Adjacency
from eamp.nn.conv.norms import norm_of, takes_batch
from eamp.ops import dropout


class GPSLayer(Module):
    r"""Convolution and attention in parallel, then a perceptron, each with a residual connection.

    From `"Recipe for a General, Powerful, Scalable Graph Transformer"
    <https://arxiv.org/abs/2205.12454>`_ (Rampášek et al., 2022). It computes what PyG's ``GPSConv``
    computes, for nodes in any order: that one needs the nodes of a graph side by side.

    .. math::
        \mathbf{Y} = \mathrm{Norm}(\mathbf{X} + \mathrm{conv}(\mathbf{X}))
            + \mathrm{Norm}(\mathbf{X} + \mathrm{Attention}(\mathbf{X})), \qquad
        \mathbf{X}' = \mathrm{Norm}(\mathbf{Y} + \mathrm{MLP}(\mathbf{Y}))

    Args:
        channels: Size of each sample.
        conv: The convolution.
        heads: Number of attention heads.
        dropout: Probability of dropping a feature in every branch.
        norm: The name of a PyG normalisation, or ``None``.
    """

    def __init__(
        self, channels: int, conv: Module, heads: int, dropout: float, norm: str | None
    ) -> None:
        super().__init__()
        self.conv, self.dropout = conv, dropout
        self.attention = MultiheadAttention(channels, heads, batch_first=True)
        self.mlp = Sequential(
            Linear(channels, 2 * channels),
            ReLU(),
            Dropout(dropout),
            Linear(2 * channels, channels),
            Dropout(dropout),
        )
        self.norms = ModuleList(norm_of(norm, channels) for _ in range(3))
        self.norms_by_graph = any(map(takes_batch, self.norms))

    def reset_parameters(self) -> None:
        """Reset convolution, attention, perceptron and norms."""
        reset(self.conv)
        self.attention.out_proj.reset_parameters()  # which the next line leaves as it is
        self.attention._reset_parameters()
        reset(self.mlp)
        reset(self.norms)

    def forward(self, x: Tensor, edge_index: Adjacency, batch: Tensor | None = None) -> Tensor:
        """Run the layer; ``batch`` tells the graph of every node, and ``None`` means one graph."""
        local = x + dropout(self.conv(x, edge_index), self.dropout, self.training)
        distant = x + dropout(self.attended(x, batch), self.dropout, self.training)
        y = self.normalised(0, local, batch) + self.normalised(1, distant, batch)
        return self.normalised(2, y + self.mlp(y), batch)

    def normalised(self, number: int, x: Tensor, batch: Tensor | None) -> Tensor:
        """Apply one of the norms."""
        norm = self.norms[number]
        result: Tensor = norm(x, batch) if self.norms_by_graph else norm(x)
        return result

    def attended(self, x: Tensor, batch: Tensor | None) -> Tensor:
        """Return the attention of every node to the nodes of its graph."""
        if x.size(0) == 0:
            return x
        if batch is None:
            rows = x.unsqueeze(0)
            one: Tensor = self.attention(rows, rows, rows, need_weights=False)[0]
            return one[0]
        order = batch.argsort(stable=True)
        _, graph = batch[order].unique_consecutive(return_inverse=True)  # none without nodes
        rows, present = to_dense_batch(x[order], graph)
        out, _ = self.attention(rows, rows, rows, key_padding_mask=~present, need_weights=False)
        result: Tensor = out[present][order.argsort()]
        return result
