"""Diffusion along learned edge weights: what graph neural diffusion and Allen–Cahn message passing have in common."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.utils import softmax

from eamp.graph import Adjacency, Graph, graph_for
from eamp.nn.conv.ode import VectorField
from eamp.ops.edge_products import attended_sums, edge_products


class AttentionDiffusion(VectorField):
    r"""Diffusion whose conductivity is a scaled dot-product attention over a node's neighbours and itself.

    .. math::
        \dot{x}_i = \sum_{j \in \mathcal{N}_i} a_{ij} (x_j - x_i), \qquad
        a_{ij} = \operatorname{mean}_h \operatorname{softmax}_{j \in \mathcal{N}_i \cup \{i\}}
        \frac{(W_Q^h x_i) \cdot (W_K^h x_j)}{\sqrt{d}}

    The weights of a node add up to 1, its own among them, so an isolated node stays where it is. The largest tensors have a number per
    edge and head: scores and sums go over the edges without gathering features (:mod:`eamp.ops.edge_products`). The weights of a weighted
    graph multiply the exponentials inside the softmax.

    Args:
        channels: size of the features.
        heads: number of attention heads :math:`h`, whose weights are averaged.
        head_channels: size :math:`d` of queries and keys.
        every_evaluation: take the attention at the present state; otherwise at time 0, which makes the equation linear.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** features :math:`(|\mathcal{V}|, F)`.

    BibTeX key for ``eamp cite``: ``chamberlain2021grand``.

    Example:
        >>> import torch
        >>> field, x, edge_index = AttentionDiffusion(8), torch.randn(3, 8), torch.tensor([[0, 1], [1, 0]])
        >>> field(x, edge_index, *field.at_start(x, edge_index))[2]     # node 2 has no neighbours
        tensor([0., 0., 0., 0., 0., 0., 0., 0.], grad_fn=<SelectBackward0>)
    """

    def __init__(
        self, channels: int, heads: int = 4, head_channels: int = 16, every_evaluation: bool = False
    ) -> None:
        super().__init__()
        self.heads, self.head_channels, self.every_evaluation = (
            heads,
            head_channels,
            every_evaluation,
        )
        self.query = Linear(
            channels, heads * head_channels, weight_initializer="glorot", bias_initializer="zeros"
        )
        # A bias of the keys would add the same to all scores of a node, which the softmax does not see.
        self.key = Linear(channels, heads * head_channels, bias=False, weight_initializer="glorot")

    def reset_parameters(self) -> None:
        """Glorot for the weights, zero for the bias."""
        self.query.reset_parameters()
        self.key.reset_parameters()

    def attention(self, x: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        """Weights of the edges, ``[m]``, and of the nodes themselves, ``[n]``."""
        query = self.query(x).view(-1, self.heads, self.head_channels) / math.sqrt(
            self.head_channels
        )
        key = self.key(x).view(-1, self.heads, self.head_channels)
        own = (query * key).sum(-1)
        edge = torch.stack(
            [edge_products(query[:, h], key[:, h], graph) for h in range(self.heads)], 1
        )
        csr = graph.csr
        if csr.edge_weight is not None:
            edge = edge + csr.edge_weight.to(edge.dtype).clamp(
                min=torch.finfo(edge.dtype).tiny
            ).log().unsqueeze(1)
        # Padding at the end of a compiled CSR falls into a row of its own, the last.
        n, m = x.size(0), csr.col.numel()
        row = (
            torch.searchsorted(csr.rowptr.long(), torch.arange(m, device=x.device), right=True) - 1
        )
        weight = softmax(
            torch.cat([edge, own]),
            torch.cat([row, torch.arange(n, device=x.device)]),
            num_nodes=n + 1,
        ).mean(1)
        return weight[:m], weight[m:]

    def at_start(self, x: Tensor, edge_index: Adjacency) -> tuple[Tensor, ...]:
        """The attention at time 0, unless it is taken at every evaluation."""
        return () if self.every_evaluation else self.attention(x, graph_for(x, edge_index))

    def forward(self, x: Tensor, edge_index: Adjacency, *frozen: Tensor) -> Tensor:
        """Σ_j a_ij x_j − (1 − a_ii) x_i, where 1 − a_ii is the sum of the other weights."""
        graph = graph_for(x, edge_index)
        edge, own = frozen if frozen else self.attention(x, graph)
        return attended_sums(edge, x, graph) - (1 - own).unsqueeze(1) * x
