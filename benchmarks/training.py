"""Time a training step of our networks beside a stack of PyG's layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ModuleList
from torch_geometric.nn import GCN2Conv
from torch_geometric.nn import GCNConv as PyGConv

from benchmarks.step import random_graph
from benchmarks.timing import interleaved, medians, ratios
from eamp.nn import GCN, GCNII
from eamp.training.sparse_features import sparse_features

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
        """Return logits."""
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.output(x, edge_index)


class PyGGCNII(Module):
    """GCNII as a PyG user writes it, with torch's dropout."""

    def __init__(self, features: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.encoder, self.decoder = Linear(features, width), Linear(width, CLASSES)
        self.convs = ModuleList(
            GCN2Conv(width, alpha=0.1, theta=0.5, layer=layer + 1) for layer in range(layers)
        )
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return logits."""
        x = x_0 = self.encoder(F.dropout(x, self.dropout, self.training)).relu()
        for conv in self.convs:
            x = conv(F.dropout(x, self.dropout, self.training), x_0, edge_index).relu()
        return self.decoder(F.dropout(x, self.dropout, self.training))


def training_step(
    layers: int, width: int, nodes: int, edges: int, rounds: int = 15
) -> dict[str, Any]:
    """Time forward and backward of a PyG stack and of our GCN, without and with the step."""
    torch.manual_seed(0)
    g, x = random_graph(nodes, edges), torch.randn(nodes, width)
    y = torch.randint(0, CLASSES, (nodes,))
    sizes, detached = (width, width, CLASSES, layers), {"weight": 1.0, "temperature": 10.0}
    calls = {
        "PyG": stepper(PyGStack(width, layers), g.edge_index, x, y),
        "ours": stepper(GCN(*sizes), g, x, y),
        "entropic": stepper(GCN(*sizes, entropy=detached), g, x, y),
        "differentiated": stepper(GCN(*sizes, entropy={**detached, "detach": False}), g, x, y),
    }
    pairs = [("ours", "PyG"), ("entropic", "ours"), ("entropic", "PyG"), ("differentiated", "PyG")]
    entries = g.edge_index.size(1)
    sizes_of_case = {"layers": layers, "width": width, "nodes": nodes, "edges": entries}
    return {**sizes_of_case, **timed(calls, pairs, rounds)}


def gcnii_epoch(layers: int = 64, width: int = 64, rounds: int = 9) -> dict[str, Any]:
    """Time an epoch of GCNII, PyG's and ours, on a graph and features as Cora's.

    An epoch is a training step with dropout and a pass in evaluation mode.
    """
    torch.manual_seed(0)
    nodes, features, dropout = 2708, 1433, 0.6
    g, y = random_graph(nodes, 10556), torch.randint(0, CLASSES, (nodes,))
    x = (torch.rand(nodes, features) < 0.0127).float()  # words of a text: one in eighty
    sparse, sizes = sparse_features(x), (features, width, CLASSES, layers)
    entropy = {
        "weight": {"schedule": "gain", "of": 0.3},
        "temperature": 100.0,
        "energy": "propagation",
        "scale_free": True,
    }
    calls = {
        "PyG": epoch(PyGGCNII(features, width, layers, dropout), g.edge_index, x, y),
        "ours": epoch(GCNII(*sizes, dropout=dropout), g, sparse, y),
        "entropic": epoch(GCNII(*sizes, dropout=dropout, entropy=entropy), g, sparse, y),
    }
    entries = g.edge_index.size(1)
    sizes_of_case = {"layers": layers, "width": width, "nodes": nodes, "edges": entries}
    return {**sizes_of_case, **timed(calls, [("ours", "PyG"), ("entropic", "PyG")], rounds)}


def timed(
    calls: Mapping[str, Callable[[], None]], pairs: list[tuple[str, str]], rounds: int
) -> dict[str, Any]:
    """Return ratios of ``pairs`` and median seconds."""
    seconds = interleaved(calls, rounds, 0.2)
    return {"ratios": ratios(seconds, pairs), "seconds": medians(seconds)}


def stepper(model: Module, adjacency: Any, x: Tensor, y: Tensor) -> Callable[[], None]:
    """Return a training step without the optimizer, which all networks have in common."""

    def step() -> None:
        model.zero_grad()
        F.cross_entropy(model(x, adjacency), y).backward()

    return step


def epoch(model: Module, adjacency: Any, x: Tensor, y: Tensor) -> Callable[[], None]:
    """Return a training step followed by a pass in evaluation mode."""
    step = stepper(model, adjacency, x, y)

    def run() -> None:
        model.train()
        step()
        model.eval()
        with torch.no_grad():
            model(x, adjacency)

    return run
