"""Measure the weight λ above which the entropy step keeps the energy of an untrained GCN."""

from typing import Any

import pandas as pd
import torch
from torch_geometric.data import Data

import eamp
from eamp.data import load
from eamp.nn.step.threshold import collapse_threshold
from eamp.optional import extra
from eamp.paper.energy_by_depth import GRID, Network, hidden_energy
from eamp.paper.frames import COLUMNS

WIDTHS = (64, 128, 256, 512)
SETTING: dict[str, Any] = {"depth": 100, "temperature": 1.0, "seed": 0}
RANGE, STEPS = (0.1, 100.0), 12  # which determines λ to 0.2 %
KEPT = 0.1  # share of the temperature above which an energy counts as kept


def measured_threshold(
    graph: eamp.Graph, width: int, depth: int, temperature: float, seed: int
) -> float:
    """Return the λ above which an untrained GCN of this depth keeps a tenth of T as its energy."""
    x = torch.rand(graph.num_nodes, 1, generator=torch.Generator().manual_seed(seed))
    data = Data(x=x, edge_index=graph.edge_index)

    low, high = RANGE
    for _ in range(STEPS):  # bisection on a logarithmic scale
        middle = (low * high) ** 0.5
        network = Network("", "gcn", {"entropy": {"weight": middle, "temperature": temperature}})
        kept = hidden_energy(network, data, depth, width, seed) > KEPT * temperature
        low, high = (low, middle) if kept else (middle, high)
    return (low * high) ** 0.5


def threshold_graphs() -> dict[str, eamp.Graph]:
    """Return graphs of several degrees: the grid, a torus, and random regular graphs."""
    with extra("formats"):
        import networkx as nx  # optional

    return {
        "grid, 10 × 10": eamp.Graph(load(GRID)),
        "torus, degree 4": eamp.Graph(nx.grid_2d_graph(10, 10, periodic=True)),
        "random, degree 8": eamp.Graph(nx.random_regular_graph(8, 100, seed=0)),
        "random, degree 16": eamp.Graph(nx.random_regular_graph(16, 100, seed=0)),
    }


def threshold(name: str, graph: eamp.Graph, width: int) -> pd.DataFrame:
    """Return one row of ``thresholds``: on one graph at one width."""
    degree, predicted = float(graph.degree.mean()), collapse_threshold(graph, width).item()
    row = (name, degree, width, predicted, measured_threshold(graph, width, **SETTING))
    return pd.DataFrame([row], columns=list(COLUMNS["thresholds"]))
