"""Energy against depth: untrained networks on a grid, to a thousand layers (the paper's Figure 2), and λ's threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.data import Data

import eamp
from eamp.data import load
from eamp.nn.models import MODELS
from eamp.nn.step.threshold import collapse_threshold

DEPTHS = (1, 10, 50, *range(100, 1001, 100))
WIDTH, OUTPUTS = 256, 64


@dataclass(frozen=True)
class Network:
    """A line of the figure: a model with its options."""

    label: str
    model: str
    options: dict[str, Any]


NETWORKS = (
    Network("GCN", "gcn", {}),
    Network(
        "Entropic GCN, λ = 1, T = 10", "gcn", {"entropy": {"weight": 1.0, "temperature": 10.0}}
    ),
    Network(
        "Entropic GCN, λ = 10, T = 1", "gcn", {"entropy": {"weight": 10.0, "temperature": 1.0}}
    ),
    Network("PairNorm", "pairnorm", {"scale": 3.0, "scale_individually": True}),
    Network("G2", "g2", {}),
    Network("GCNII", "gcnii", {}),
    Network("Residual GCN", "residual-gcn", {}),
    Network("Linear, initial residual", "linear", {}),
    Network("EGNN", "egnn", {}),
    Network("GRAND", "grand", {}),
    Network(
        "Entropic GRAND, λ = 10, T = 1", "grand", {"entropy": {"weight": 10.0, "temperature": 1.0}}
    ),
    Network(
        "Entropic GCNII, λ = 10, T = 1", "gcnii", {"entropy": {"weight": 10.0, "temperature": 1.0}}
    ),
    Network("ACMP", "acmp", {}),
    Network("GAT", "gat", {}),
    Network("GraphSAGE", "graphsage", {}),
    Network("Noisy GCN", "noisy-gcn", {}),
)


def energy_by_depth(
    networks: Iterable[Network] = NETWORKS,
    depths: Iterable[int] = DEPTHS,
    seeds: int = 1,
    width: int = WIDTH,
    grid: str = "grid:10x10",
) -> pd.DataFrame:
    """Mean energy before the output layer of a fresh network per depth and seed; columns ``network``, ``depth``, ``seed``, ``energy``."""
    data = load(grid)
    rows = [
        {
            "network": network.label,
            "depth": depth,
            "seed": seed,
            "energy": hidden_energy(network, data, depth, width, seed),
        }
        for network in networks
        for depth in depths
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows)


def hidden_energy(network: Network, data: Data, depth: int, width: int, seed: int) -> float:
    """Mean energy of what reaches the last layer of an untrained network."""
    torch.manual_seed(seed)
    model = MODELS[network.model](
        data.num_features, width, OUTPUTS, depth, **network.options
    ).eval()
    reached: list[Tensor] = []
    if (last := last_layer(model)) is not None:
        last.register_forward_pre_hook(lambda module, inputs: reached.append(inputs[0]))
    with torch.no_grad():
        reached.append(
            model(data.x, data.edge_index)
        )  # a model without a last layer of its own is measured at its output
    return float(eamp.dirichlet_energy(reached[0], data.edge_index).mean())


def last_layer(model: Module) -> Module | None:
    """What makes logits of the embedding, if it is a layer of its own."""
    children = dict(model.named_children())
    if isinstance(inner := children.get("model"), Module):  # of a network with noise around it
        return last_layer(inner)
    convs = children.get("convs")
    return (
        children.get("output")
        or children.get("decoder")
        or (convs[-1] if isinstance(convs, ModuleList) else None)
    )


# --- The threshold of λ -----------------------------------------------------------------------------------------------


def measured_threshold(
    graph: eamp.Graph, width: int, depth: int = 100, temperature: float = 1.0, seed: int = 0
) -> float:
    """λ above which an untrained GCN of this depth still has an energy near the temperature."""
    x = torch.rand(graph.num_nodes, 1, generator=torch.Generator().manual_seed(seed))
    data = Data(x=x, edge_index=graph.edge_index)

    def holds(weight: float) -> bool:
        network = Network("", "gcn", {"entropy": {"weight": weight, "temperature": temperature}})
        return hidden_energy(network, data, depth, width, seed) > 0.1 * temperature

    return bisect(holds)


def bisect(
    true_above: Callable[[float], bool], low: float = 0.1, high: float = 100.0, steps: int = 12
) -> float:
    """Where a condition becomes true, on a logarithmic scale."""
    for _ in range(steps):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if true_above(middle) else (middle, high)
    return (low * high) ** 0.5


def threshold_graphs() -> dict[str, eamp.Graph]:
    """Graphs of several degrees: the grid, a torus, and random regular ones."""
    import networkx as nx

    return {
        "grid, 10 × 10": eamp.Graph(load("grid:10x10")),
        "torus, degree 4": eamp.Graph(nx.grid_2d_graph(10, 10, periodic=True)),
        "random, degree 8": eamp.Graph(nx.random_regular_graph(8, 100, seed=0)),
        "random, degree 16": eamp.Graph(nx.random_regular_graph(16, 100, seed=0)),
    }


def thresholds(widths: Iterable[int] = (64, 128, 256, 512)) -> pd.DataFrame:
    """Thresholds by graph and width: predicted, see :func:`eamp.nn.collapse_threshold`, and measured."""
    rows = [
        {
            "graph": name,
            "degree": float(graph.degree.mean()),
            "width": width,
            "predicted": collapse_threshold(graph, width).item(),
            "measured": measured_threshold(graph, width),
        }
        for name, graph in threshold_graphs().items()
        for width in widths
    ]
    return pd.DataFrame(rows)
