"""The state of a layer that a schedule of λ sees, and the measures that it takes there."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from eamp.graph import Graph
from eamp.nn.step.metric import Energy, propagation_threshold
from eamp.nn.step.threshold import layer_threshold
from eamp.ops import Variant, energy_normaliser, neighbour_sums
from eamp.ops.boltzmann import entropy_drive, log_boltzmann
from eamp.ops.step import permuted


class Position(NamedTuple):
    """The number of an entropy-aware layer, counted from 1, and how many there are.

    Example:
        >>> Position(layer=3, layers=64)
        Position(layer=3, layers=64)
    """

    layer: int
    layers: int


class LayerState(NamedTuple):
    """The state of a layer when its step is taken.

    Attributes:
        position: the layer's number, or ``None`` if it has none.
        x: the embedding ``[n, F]`` at which the step is taken, in the metric of the energy.
        energy: E ``[n]``.
        temperature: T.
        graph: the graph.
        symmetrize: whether the graph was made undirected.
        variant: the formula of the gradient.
        normalize: whether the distribution is normalised.
        energy_kind: which energy it is.
        mobility: ``[n]``, how far a step of size 1 moves a node; ``None`` for 1.
    """

    position: Position | None
    x: Tensor
    energy: Tensor
    temperature: float | Tensor
    graph: Graph
    symmetrize: bool = False
    variant: Variant = "exact"
    normalize: bool = False
    energy_kind: Energy = "paper"
    mobility: Tensor | None = None


def entropy_level(state: LayerState, energy: Tensor, temperature: float | Tensor) -> Tensor:
    """Return every node's share of the entropy ``[n]``, scaled so that a graph's mean is at most 1.

    Energy and temperature are those of the state, detached or not.
    A summand −p ln p is at most 1/e. Those of a normalised distribution over n nodes add up to at
    most ln n.
    """
    graph = state.graph
    log_p = log_boltzmann(energy, temperature, state.normalize, graph)
    shares = -log_p.exp() * log_p
    if not state.normalize:
        return shares * math.e
    size = graph.graph_sizes().to(shares.dtype)
    # The entropy of a single node is 0, whatever it is divided by.
    return shares * graph.for_nodes(size / size.clamp(min=2).log())


def push(state: LayerState) -> Tensor:
    """Return b_i = k_i |q_i| + Σ_j a_ij |q_j|, ``[n]``.

    It bounds Σ_j |w_ij| for the weights of the step T∇S = Σ_j w_ij (x_i − x_j).
    """
    graph = state.graph
    drive = entropy_drive(state.energy, state.temperature, state.normalize, graph).abs()
    drive = permuted(drive, graph) if state.variant == "permuted" else drive
    c = energy_normaliser(state.x, graph, by_degree=state.energy_kind == "paper")
    published = state.variant == "paper"  # then w_ij = a_ij C_i (P̄_i + P̄_j)
    q, degree = drive if published else c * drive, graph.degree.to(drive.dtype)
    ones = torch.ones_like(degree)
    rate = degree * q + neighbour_sums(ones, q.unsqueeze(1), ones, graph).squeeze(1)
    rate = c * rate if published else rate
    return rate if state.mobility is None else rate * state.mobility


def gain_threshold(state: LayerState) -> float | Tensor:
    """Return λ* of a layer, a number or one per node: λ of the gain 1."""
    width = state.x.size(1)
    if state.energy_kind == "propagation":
        return propagation_threshold(width)
    unit = layer_threshold(width, state.graph, state.symmetrize).to(state.energy.dtype)
    return state.graph.for_nodes(unit)
