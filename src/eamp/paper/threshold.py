"""Measure the weight λ above which the entropy step keeps the energy of an untrained GCN."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import torch
from torch_geometric.data import Data

import eamp
from eamp.data import load
from eamp.nn.step.threshold import collapse_threshold
from eamp.paper.energy_by_depth import GRID, Network, hidden_energy

WIDTHS = (64, 128, 256, 512)
KEPT = 0.1  # share of the temperature above which an energy counts as kept


def measured_threshold(
    graph: eamp.Graph, width: int, depth: int = 100, temperature: float = 1.0, seed: int = 0
) -> float:
    """Return the λ above which an untrained GCN of this depth keeps a tenth of T as its energy."""
    x = torch.rand(graph.num_nodes, 1, generator=torch.Generator().manual_seed(seed))
    data = Data(x=x, edge_index=graph.edge_index)

    def holds(weight: float) -> bool:
        network = Network("", "gcn", {"entropy": {"weight": weight, "temperature": temperature}})
        return hidden_energy(network, data, depth, width, seed) > KEPT * temperature

    return bisect(holds)


def bisect(
    true_above: Callable[[float], bool], low: float = 0.1, high: float = 100.0, steps: int = 12
) -> float:
    """Return where a condition becomes true, by bisection on a logarithmic scale."""
    for _ in range(steps):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if true_above(middle) else (middle, high)
    return (low * high) ** 0.5


def threshold_graphs() -> dict[str, eamp.Graph]:
    """Return graphs of several degrees: the grid, a torus, and random regular graphs."""
    import networkx as nx  # an optional dependency

    return {
        "grid, 10 × 10": eamp.Graph(load(GRID)),
        "torus, degree 4": eamp.Graph(nx.grid_2d_graph(10, 10, periodic=True)),
        "random, degree 8": eamp.Graph(nx.random_regular_graph(8, 100, seed=0)),
        "random, degree 16": eamp.Graph(nx.random_regular_graph(16, 100, seed=0)),
    }


def threshold(name: str, graph: eamp.Graph, width: int) -> pd.DataFrame:
    """Return the threshold on one graph at one width.

    Returns:
        One row with the columns ``graph``, ``degree``, ``width``, ``predicted``, see
        :func:`eamp.nn.collapse_threshold`, and ``measured``.
    """
    row = {
        "graph": name,
        "degree": float(graph.degree.mean()),
        "width": width,
        "predicted": collapse_threshold(graph, width).item(),
        "measured": measured_threshold(graph, width),
    }
    return pd.DataFrame([row])
