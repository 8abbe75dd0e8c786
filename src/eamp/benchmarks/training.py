"""A training step of our networks beside a stack of PyG's layers."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn import GCNConv as PyGConv

from eamp.benchmarks.step import random_graph
from eamp.benchmarks.timing import interleaved, ratios
from eamp.nn import GCN

# layers, width, nodes, edges
CASES = ((16, 256, 2708, 10556), (16, 64, 2708, 10556), (3, 128, 50_000, 500_000))
CLASSES = 7


class PyGStack(Module):
    """The network a PyG user writes: convolutions with a ReLU in between."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.convs = ModuleList(PyGConv(width, width) for _ in range(layers))
        self.output = PyGConv(width, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits."""
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.output(x, edge_index)


def training_step(layers: int, width: int, nodes: int, edges: int, rounds: int = 15) -> dict[str, Any]:
    """Time forward and backward of a PyG stack, of our GCN, and of it with the entropy step, all with the same shapes."""
    torch.manual_seed(0)
    g, x = random_graph(nodes, edges), torch.randn(nodes, width)
    y = torch.randint(0, CLASSES, (nodes,))
    detached = {"weight": 1.0, "temperature": 10.0}
    networks: dict[str, tuple[Module, Any]] = {
        "PyG": (PyGStack(width, layers), g.edge_index),
        "ours": (GCN(width, width, CLASSES, layers), g),
        "entropic": (GCN(width, width, CLASSES, layers, entropy=detached), g),
        "differentiated": (GCN(width, width, CLASSES, layers, entropy={**detached, "detach": False}), g),
    }
    seconds = interleaved({name: stepper(*pair, x, y) for name, pair in networks.items()}, rounds, 0.2)
    pairs = [("ours", "PyG"), ("entropic", "ours"), ("entropic", "PyG"), ("differentiated", "PyG")]
    return {
        "layers": layers,
        "width": width,
        "nodes": nodes,
        "edges": g.csr.col.numel(),
        "ratios": ratios(seconds, pairs),
        "seconds": {name: median(times) for name, times in seconds.items()},
    }


def stepper(model: Module, adjacency: Any, x: Tensor, y: Tensor) -> Callable[[], None]:
    """One training step without the optimizer, which all have in common."""

    def step() -> None:
        model.zero_grad()
        F.cross_entropy(model(x, adjacency), y).backward()

    return step
