"""A training step of our networks beside a stack of PyG's layers."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ModuleList
from torch_geometric.nn import GCN2Conv
from torch_geometric.nn import GCNConv as PyGConv

from benchmarks.step import random_graph
from benchmarks.timing import interleaved, ratios
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
        """Logits."""
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
        """Logits."""
        x = x_0 = self.encoder(F.dropout(x, self.dropout, self.training)).relu()
        for conv in self.convs:
            x = conv(F.dropout(x, self.dropout, self.training), x_0, edge_index).relu()
        return self.decoder(F.dropout(x, self.dropout, self.training))


def gcnii_epoch(layers: int = 64, width: int = 64, rounds: int = 9) -> dict[str, Any]:
    """Time an epoch of GCNII, a training step with dropout and a measuring pass, on a graph and features as Cora's: PyG's and ours."""
    torch.manual_seed(0)
    nodes, features, dropout = 2708, 1433, 0.6
    g, y = random_graph(nodes, 10556), torch.randint(0, CLASSES, (nodes,))
    x = (torch.rand(nodes, features) < 0.0127).float()  # words of a text: one in eighty
    entropy = {
        "weight": {"schedule": "gain", "of": 0.3},
        "temperature": 100.0,
        "normalization": "sym",
        "scale_free": True,
    }
    networks: dict[str, tuple[Module, Any, Tensor]] = {
        "PyG": (PyGGCNII(features, width, layers, dropout), g.edge_index, x),
        "ours": (GCNII(features, width, CLASSES, layers, dropout=dropout), g, sparse_features(x)),
        "entropic": (
            GCNII(features, width, CLASSES, layers, dropout=dropout, entropy=entropy),
            g,
            sparse_features(x),
        ),
    }
    seconds = interleaved(
        {name: epoch(model, adjacency, x, y) for name, (model, adjacency, x) in networks.items()},
        rounds,
        0.2,
    )
    return {
        "layers": layers,
        "width": width,
        "nodes": nodes,
        "edges": g.csr.col.numel(),
        "ratios": ratios(seconds, [("ours", "PyG"), ("entropic", "PyG")]),
        "seconds": {name: median(times) for name, times in seconds.items()},
    }


def epoch(model: Module, adjacency: Any, x: Tensor, y: Tensor) -> Callable[[], None]:
    """A training step, and a pass that measures."""
    train = stepper(model, adjacency, x, y)

    def run() -> None:
        model.train()
        train()
        model.eval()
        with torch.no_grad():
            model(x, adjacency)

    return run


def training_step(
    layers: int, width: int, nodes: int, edges: int, rounds: int = 15
) -> dict[str, Any]:
    """Time forward and backward of a PyG stack, of our GCN, and of it with the entropy step, all with the same shapes."""
    torch.manual_seed(0)
    g, x = random_graph(nodes, edges), torch.randn(nodes, width)
    y = torch.randint(0, CLASSES, (nodes,))
    detached = {"weight": 1.0, "temperature": 10.0}
    networks: dict[str, tuple[Module, Any]] = {
        "PyG": (PyGStack(width, layers), g.edge_index),
        "ours": (GCN(width, width, CLASSES, layers), g),
        "entropic": (GCN(width, width, CLASSES, layers, entropy=detached), g),
        "differentiated": (
            GCN(width, width, CLASSES, layers, entropy={**detached, "detach": False}),
            g,
        ),
    }
    seconds = interleaved(
        {name: stepper(*pair, x, y) for name, pair in networks.items()}, rounds, 0.2
    )
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
