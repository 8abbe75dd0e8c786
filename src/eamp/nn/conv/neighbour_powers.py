"""The mean over neighbours of powers of differences: the argument of a gradient gate."""

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from eamp import ops
from eamp.graph import Graph
from eamp.graph.csr import rows_of_entries

CHUNK = 2**22  # differences held at a time where p is not 2: 16 MB in float32


def mean_powers(y: Tensor, graph: Graph, p: float) -> Tensor:
    """Return 1/k_i Σ_j a_ij |y_i − y_j|^p for every node and channel, 0 for an isolated node.

    For p = 2 no tensor has a row per edge. For other p, forward and backward go through the edges
    in chunks of ``CHUNK`` numbers.
    """
    inverse_degree = torch.where(graph.degree > 0, 1 / graph.degree, 0.0).to(y.dtype).unsqueeze(1)
    return inverse_degree * (ops.channel_squares(y, graph) if p == 2 else power_sums(y, graph, p))


def power_sums(y: Tensor, graph: Graph, p: float) -> Tensor:
    """Return Σ_j a_ij |y_i − y_j|^p for every node and channel, chunk by chunk."""
    csr = graph.csr
    row = rows_of_entries(csr)  # n for padding, a row that is dropped in the end
    weight = torch.ones_like(row) if csr.edge_weight is None else csr.edge_weight
    weight = weight.to(y.dtype).unsqueeze(1)
    total = y.new_zeros(y.size(0) + 1, y.size(1))
    size = max(CHUNK // max(y.size(1), 1), 1)
    for edges in zip(row.split(size), csr.col.long().split(size), weight.split(size), strict=True):
        total = total + checkpoint(
            chunk_sums, y, *edges, p, use_reentrant=False, preserve_rng_state=False
        )
    return total[:-1]


def chunk_sums(y: Tensor, row: Tensor, col: Tensor, weight: Tensor, p: float) -> Tensor:
    """Return Σ a |y_row − y_col|^p over the given edges, for every node and for the padding."""
    n = y.size(0)
    powers = weight * (y[row.clamp(max=n - 1)] - y[col]).abs().pow(p)
    return y.new_zeros(n + 1, y.size(1)).index_add(0, row, powers)
