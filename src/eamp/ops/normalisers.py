"""Factors per node that come from a graph's degrees, computed once per graph, dtype and width."""

import math

import torch
from torch import Tensor

from eamp.graph import Graph
from eamp.ops.precision import accumulate_dtype


def energy_normaliser(x: Tensor, graph: Graph, by_degree: bool = True) -> Tensor:
    """Return C_i = 1/sqrt(k_i F), or 1/sqrt(F) without ``by_degree``, in the dtype of sums.

    It is 0 for an isolated node if ``by_degree``; the energy of an isolated node is 0 anyway.
    """
    dtype, width = accumulate_dtype(x), x.size(1)

    def compute() -> Tensor:
        by_node = graph.rsqrt_degree if by_degree else torch.ones_like(graph.degree)
        return by_node.to(dtype) * (1 / math.sqrt(max(width, 1)))

    return graph.remember(("energy_normaliser", dtype, width, by_degree), compute)


def propagation_scale(graph: Graph, dtype: torch.dtype) -> Tensor:
    """Return 1/sqrt(k_i + 1), ``[n]``, the factor of graph convolutions on both sides of A + I."""
    return graph.remember(
        ("propagation_scale", dtype), lambda: (graph.degree + 1).rsqrt().to(dtype)
    )
