"""Gradient gating: nodes stop moving before they become alike."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import GATConv
from torch_geometric.nn.inits import reset

from eamp import ops
from eamp.graph import Adjacency, Graph, as_graph, graph_for
from eamp.nn.checkpointing import in_segments
from eamp.nn.conv.from_pyg import FromPyG
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.entropic import Entropy, applied, entropic
from eamp.ops import dropout

CHUNK = 2**22  # differences held at a time where p is not 2: 16 MB in float32


class G2(Module):
    r"""The gated network of `"Gradient Gating for Deep Multi-Rate Learning on Graphs" <https://arxiv.org/abs/2210.00513>`_
    (Rusch et al., 2023).

    .. math::
        \mathbf{X}' = (1 - \tau) \odot \mathbf{X} + \tau \odot \sigma(\mathrm{conv}(\mathbf{X})), \qquad
        \tau_{ic} = \tanh \left( \frac{1}{k_i} \sum_{j \in \mathcal{N}_i} \lvert y_{ic} - y_{jc} \rvert^p \right), \qquad
        \mathbf{Y} = \sigma(\mathrm{gate}(\mathbf{X}))

    A linear encoder with ReLU, *L* applications of these two convolutions, shared by all layers, and a linear decoder. With edge
    weights the mean over neighbours is a weighted one; an isolated node has :math:`\tau = 0` and stays as it is.

    Args:
        in_channels: size of each input sample.
        hidden_channels: width of the hidden layers.
        out_channels: number of classes.
        num_layers: *L*, how often the shared convolution is applied.
        dropout: probability of dropping a feature before the encoder and before the decoder.
        entropy: arguments of :class:`eamp.EntropyAware` for the convolution; the one that computes the gate stays as it is.
        conv: ``"gcn"`` with :math:`\sigma = \mathrm{ReLU}`, or ``"gat"``, the mean of four attention heads, with
            :math:`\sigma = \mathrm{ELU}`.
        p: :math:`p \ge 1`. For :math:`p = 2` no tensor is larger than the features of the nodes.
        relu_logits: put a ReLU on the logits, as the experiments of `"Entropy Aware Message Passing in Graph Neural Networks"
            <https://arxiv.org/abs/2403.04636>`_ did; only for reproducing them.
        checkpoint: keep the embedding at a few layers only and compute the others a second time in the backward pass; see
            :func:`eamp.nn.checkpointing.in_segments`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** logits :math:`(|\mathcal{V}|, F_{out})`.

    BibTeX key for ``eamp cite``: ``rusch2023gradient``.

    Example:
        >>> import torch
        >>> model = G2(16, 64, 7, num_layers=8)
        >>> model(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 7])
    """

    takes_sparse_features = True
    probed_layers = "conv"  # the gate's convolution is no layer of the network's depth

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        dropout: float = 0.0,
        entropy: Entropy = None,
        conv: Literal["gcn", "gat"] = "gcn",
        p: float = 2.0,
        relu_logits: bool = False,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        if conv not in ("gcn", "gat"):
            raise ValueError(f"conv must be 'gcn' or 'gat', but is {conv!r}.")
        if not p >= 1:
            raise ValueError(
                f"p must be >= 1, but is {p}: below 1 the gate has no derivative where two neighbours agree."
            )
        self.num_layers, self.dropout, self.p, self.relu_logits, self.checkpoint = (
            num_layers,
            dropout,
            p,
            relu_logits,
            checkpoint,
        )
        self.activation = F.relu if conv == "gcn" else F.elu

        def convolution() -> Module:
            channels = hidden_channels
            return (
                GCNConv(channels, channels)
                if conv == "gcn"
                else FromPyG(GATConv(channels, channels, heads=4, concat=False))
            )

        self.encoder = Linear(in_channels, hidden_channels)
        self.conv = entropic(convolution(), entropy)
        self.gate = convolution()
        self.decoder = Linear(hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        """Reset every layer."""
        for module in (self.encoder, self.conv, self.gate, self.decoder):
            reset(module)

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Logits of every node."""
        graph = as_graph(edge_index, x.size(0))
        x = self.encoder(dropout(x, self.dropout, self.training, graph.rows)).relu()

        def layer(x: Tensor, number: int) -> Tensor:
            gate = self.gating(x, graph)
            return (1 - gate) * x + gate * self.activation(
                applied(self.conv, number, self.num_layers)(x, graph)
            )

        x = in_segments(layer, range(1, self.num_layers + 1), x, self.checkpoint)
        logits = self.decoder(dropout(x, self.dropout, self.training, graph.rows))
        return logits.relu() if self.relu_logits else logits

    def gating(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """τ, how far every channel of every node may move, in [0, 1]; shape of ``x``."""
        y = self.activation(self.gate(x, edge_index))
        graph = graph_for(y, edge_index)
        return torch.tanh(mean_squares(y, graph) if self.p == 2 else mean_powers(y, graph, self.p))


def mean_squares(y: Tensor, graph: Graph) -> Tensor:
    """1/k_i Σ_j a_ij (y_i − y_j)² in every channel, without a tensor that has a row per edge."""
    return inverse_degree(graph).to(y.dtype) * ops.channel_squares(y, graph)


def inverse_degree(graph: Graph) -> Tensor:
    """1/k_i, and 0 for an isolated node, as a column in float64."""
    return torch.where(graph.degree > 0, 1 / graph.degree, 0.0).unsqueeze(1)


def mean_powers(y: Tensor, graph: Graph, p: float) -> Tensor:
    """1/k_i Σ_j a_ij |y_i − y_j|^p in every channel, some edges at a time, in the backward pass too."""
    csr = graph.csr
    m = csr.col.numel()
    # The row of every entry. Entries past rowptr[-1] are padding: their row n is one too many, and is dropped in the end.
    row = (
        torch.searchsorted(
            csr.rowptr, torch.arange(m, dtype=csr.rowptr.dtype, device=y.device), right=True
        )
        - 1
    )
    weight = (
        torch.ones_like(y[:1, :1])
        if csr.edge_weight is None
        else csr.edge_weight.to(y.dtype).unsqueeze(1)
    )
    total = y.new_zeros(y.size(0) + 1, y.size(1))
    step = max(CHUNK // max(y.size(1), 1), 1)
    for start in range(0, m, step):
        part = slice(start, start + step)
        a = weight if csr.edge_weight is None else weight[part]
        total = total + checkpoint(
            row_powers,
            y,
            row[part],
            csr.col[part].long(),
            a,
            p,
            use_reentrant=False,
            preserve_rng_state=False,
        )
    return inverse_degree(graph).to(y.dtype) * total[:-1]


def row_powers(y: Tensor, row: Tensor, col: Tensor, weight: Tensor, p: float) -> Tensor:
    """Σ_e a_e |y_row − y_col|^p over the given edges, with one row more than there are nodes."""
    n = y.size(0)
    powers = weight * (y[row.clamp(max=n - 1)] - y[col]).abs().pow(p)
    return y.new_zeros(n + 1, y.size(1)).index_add(0, row, powers)
