"""Measure the energy of untrained networks of up to a thousand layers (the paper's Figure 2)."""

from collections.abc import Iterable
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
from eamp.paper.published import WIDTH

DEPTHS = (1, 10, 50, *range(100, 1001, 100))
GRID = "grid:10x10"
OUTPUTS = 64


@dataclass(frozen=True)
class Network:
    """A line of Figure 2: a model and its options."""

    label: str
    model: str
    options: dict[str, Any]


WEAK = {"entropy": {"weight": 1.0, "temperature": 10.0}}
STRONG = {"entropy": {"weight": 10.0, "temperature": 1.0}}
# The paper counts the output convolution of PairNorm among the layers, and that of no other model.
PAIRNORM = {"scale": 3.0, "scale_individually": True, "count_output": True}
NETWORKS = (
    Network("Basic GCN", "gcn", {}),
    Network("Entropic GCN, λ = 1, T = 10", "gcn", WEAK),
    Network("Entropic GCN, λ = 10, T = 1", "gcn", STRONG),
    Network("PairNorm", "pairnorm", PAIRNORM),
    Network("G2", "g2", {}),
    Network("GCNII", "gcnii", {}),
    Network("Residual GCN", "residual-gcn", {}),
    Network("Linear, initial residual", "linear", {}),
    Network("EGNN", "egnn", {}),
    Network("GRAND", "grand", {}),
    Network("Entropic GRAND, λ = 10, T = 1", "grand", STRONG),
    Network("Entropic GCNII, λ = 10, T = 1", "gcnii", STRONG),
    Network("ACMP", "acmp", {}),
    Network("GAT", "gat", {}),
    Network("GraphSAGE", "graphsage", {}),
    Network("Noisy GCN", "noisy-gcn", {}),
)


def energy_by_depth(
    network: Network,
    seed: int = 0,
    depths: Iterable[int] = DEPTHS,
    width: int = WIDTH,
    grid: str = GRID,
) -> pd.DataFrame:
    """Measure a fresh network at every depth; return ``depth_energies`` of one network."""
    data = load(grid)
    rows = [
        (network.label, depth, seed, hidden_energy(network, data, depth, width, seed))
        for depth in depths
    ]
    return pd.DataFrame(rows, columns=["network", "depth", "seed", "energy"])


def hidden_energy(network: Network, data: Data, depth: int, width: int, seed: int) -> float:
    """Return the mean energy of the embedding that the last layer of a fresh network receives.

    A model without a last layer of its own is measured at its output.
    """
    torch.manual_seed(seed)
    sizes = (data.num_features, width, OUTPUTS, depth)
    model = MODELS[network.model](*sizes, **network.options).eval()
    reached: list[Tensor] = []
    if (last := last_layer(model)) is not None:
        last.register_forward_pre_hook(lambda module, inputs: reached.append(inputs[0]))
    with torch.no_grad():
        reached.append(model(data.x, data.edge_index))
    return float(eamp.dirichlet_energy(reached[0], data.edge_index).mean())


def last_layer(model: Module) -> Module | None:
    """Return the layer that computes the logits, if the model has one."""
    children = dict(model.named_children())
    if isinstance(inner := children.get("model"), Module):  # a wrapper, such as that of Noisy GCN
        return last_layer(inner)
    if head := children.get("output") or children.get("decoder"):
        return head
    convs = children.get("convs")
    return convs[-1] if isinstance(convs, ModuleList) else None
