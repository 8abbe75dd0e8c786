"""What a schedule of λ may look at in a layer, and what it measures there."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from eamp import ops
from eamp.functional import Variant, entropy_drive, log_boltzmann
from eamp.graph import CSR, Adjacency
from eamp.nn.step.metric import Normalization
from eamp.ops.part import PartCSR, node_max


class Position(NamedTuple):
    """Which of how many entropy-aware layers, counted from 1.

    Example:
        >>> Position(layer=3, layers=64)
        Position(layer=3, layers=64)
    """

    layer: int
    layers: int


class LayerState(NamedTuple):
    """Where a layer stands, and the embedding at which its step is taken, in the step's coordinates; the rest is how it is computed."""

    position: Position | None
    x: Tensor
    energy: Tensor
    temperature: float | Tensor
    adjacency: Adjacency
    symmetrize: bool
    csr: CSR
    batch: Tensor | None
    num_graphs: int
    variant: Variant
    normalize: bool
    normalization: Normalization = None
    mobility: Tensor | None = None


def graph_mean(values: Tensor, state: LayerState) -> Tensor:
    """The mean over every graph: one number, or, in a batch, each node's own graph's ``[n]``."""
    if state.batch is None:
        return ops.node_mean(values, state.csr)
    sums = values.new_zeros(state.num_graphs).index_add(0, state.batch, values)
    return (sums / graph_sizes(state, values))[state.batch]


def graph_max(values: Tensor, state: LayerState) -> Tensor:
    """The largest in every graph, of non-negative values; shapes as in :func:`graph_mean`."""
    if isinstance(state.csr, PartCSR):
        return node_max(values, state.csr)
    batch = torch.zeros_like(values, dtype=torch.long) if state.batch is None else state.batch
    largest = values.new_zeros(state.num_graphs).scatter_reduce(0, batch, values, "amax")
    return largest if state.batch is None else largest[batch]


def graph_sizes(state: LayerState, like: Tensor) -> Tensor:
    """Number of nodes of every graph, ``[num_graphs]``, at least 1."""
    if state.batch is None:
        return torch.full_like(like[:1], max(like.numel(), 1))
    return (
        like.new_zeros(state.num_graphs)
        .index_add(0, state.batch, torch.ones_like(like))
        .clamp(min=1)
    )


def entropy_level(state: LayerState) -> Tensor:
    """Every node's part of the entropy ``[n]``, such that the mean over a graph is 1 where its entropy is largest.

    A summand −p ln p is at most 1/e. Those of a normalised distribution over n nodes add up to ln n at most.
    """
    log_p = log_boltzmann(
        state.energy, state.temperature, state.normalize, state.batch, state.num_graphs
    )
    parts = -log_p.exp() * log_p
    if not state.normalize:
        return parts * math.e
    size = graph_sizes(state, parts)
    scale = (
        size / size.clamp(min=2).log()
    )  # the entropy of a single node is 0, whatever it is divided by
    return parts * (scale if state.batch is None else scale[state.batch])


def push(state: LayerState) -> Tensor:
    """b_i = k_i |q_i| + Σ_j a_ij |q_j|, which bounds Σ_j |w_ij| for the weights of the step T∇S = Σ_j w_ij (x_i − x_j); ``[n]``."""
    drive = entropy_drive(
        state.energy, state.temperature, state.normalize, state.batch, state.num_graphs
    ).abs()
    c, degree = ops.normaliser(state.x, state.csr.rsqrt_degree), state.csr.degree.to(drive.dtype)
    ones = torch.ones_like(degree)
    if state.variant == "paper":  # w_ij = a_ij C_i (P_i + P_j)
        rate = c * (
            degree * drive
            + ops.neighbour_sums(ones, drive.unsqueeze(1), ones, state.csr).squeeze(1)
        )
    else:
        q = c * drive
        rate = degree * q + ops.neighbour_sums(ones, q.unsqueeze(1), ones, state.csr).squeeze(1)
    return rate if state.mobility is None else rate * state.mobility
