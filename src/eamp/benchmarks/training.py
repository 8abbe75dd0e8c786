"""A training step of our networks beside a stack of PyG's layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn import GCNConv as PyGConv

from eamp.benchmarks.step import random_graph
from eamp.benchmarks.timing import interleaved
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


def training_step(layers: int, width: int, nodes: int, edges: int, rounds: int = 7) -> dict[str, Any]:
    """Time forward and backward of a PyG stack, of our GCN, and of it with the entropy step, all with the same shapes."""
    torch.manual_seed(0)
    g, x = random_graph(nodes, edges), torch.randn(nodes, width)
    y = torch.randint(0, CLASSES, (nodes,))
    detached = {"weight": 1.0, "temperature": 10.0}
    networks: dict[str, tuple[Module, Any]] = {
        "PyG": (PyGStack(width, layers), g.edge_index),
        "ours": (GCN(width, width, CLASSES, layers), g),
        "entropic": (GCN(width, width, CLASSES, layers, entropy=detached), g),
        "entropic, differentiated": (GCN(width, width, CLASSES, layers, entropy={**detached, "detach": False}), g),
    }
    timings = interleaved({name: stepper(*pair, x, y) for name, pair in networks.items()}, "PyG", rounds, 0.2)
    return {
        "layers": layers,
        "width": width,
        "nodes": nodes,
        "edges": g.csr.col.numel(),
        "seconds": {name: timing.seconds for name, timing in timings.items()},
        "ratios": ratios({name: timing.ratio for name, timing in timings.items()}),
        "fastest ratios": ratios({name: timing.fastest_ratio for name, timing in timings.items()}),
    }


def ratios(to_pyg: dict[str, float]) -> dict[str, float]:
    """Ours beside PyG's, and what the step adds."""
    return {
        "ours / PyG": to_pyg["ours"],
        "entropic / ours": to_pyg["entropic"] / to_pyg["ours"],
        "entropic / PyG": to_pyg["entropic"],
        "differentiated / PyG": to_pyg["entropic, differentiated"],
    }


def stepper(model: Module, adjacency: Any, x: Tensor, y: Tensor) -> Callable[[], None]:
    """One training step without the optimizer, which all have in common."""

    def step() -> None:
        model.zero_grad()
        F.cross_entropy(model(x, adjacency), y).backward()

    return step
