"""Time training steps of our networks beside PyG's."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ModuleList
from torch_geometric.nn import GCN2Conv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from benchmarks.pyg_setups import DEFAULT, normalised_csr, pyg_setups, stepper
from benchmarks.step import random_graph
from benchmarks.timing import interleaved, medians, ratios
from eamp.nn import GCN, GCNII
from eamp.training.sparse_features import sparse_features

# layers, width, nodes, edges
CASES = ((16, 256, 2708, 10556), (16, 64, 2708, 10556), (3, 128, 50_000, 500_000))
CLASSES = 7
FASTEST = "fastest PyG"


class PyGGCNII(Module):
    """GCNII as a PyG user writes it, with torch's dropout."""

    def __init__(
        self, features: int, width: int, layers: int, dropout: float, **options: Any
    ) -> None:
        super().__init__()
        self.encoder, self.decoder = Linear(features, width), Linear(width, CLASSES)
        self.convs = ModuleList(
            GCN2Conv(width, alpha=0.1, theta=0.5, layer=layer + 1, **options)
            for layer in range(layers)
        )
        self.dropout = dropout

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        """Return logits."""
        x = x_0 = self.encoder(F.dropout(x, self.dropout, self.training)).relu()
        for conv in self.convs:
            x = conv(F.dropout(x, self.dropout, self.training), x_0, adjacency).relu()
        return self.decoder(F.dropout(x, self.dropout, self.training))


def training_step(
    layers: int, width: int, nodes: int, edges: int, rounds: int = 15, compiled: bool = True
) -> dict[str, Any]:
    """Time forward and backward of PyG's GCN and of ours, without and with the step.

    PyG's runs in every set-up of :func:`benchmarks.pyg_setups.pyg_setups`. Ours is compared with
    the default one and with the fastest.
    """
    torch.manual_seed(0)
    g, x = random_graph(nodes, edges), torch.randn(nodes, width)
    y = torch.randint(0, CLASSES, (nodes,))
    sizes, detached = (width, width, CLASSES, layers), {"weight": 1.0, "temperature": 10.0}
    pyg, compilation = pyg_setups(g, x, y, CLASSES, layers, compiled)
    ours = {
        "ours": stepper(GCN(*sizes), x, y, g),
        "entropic": stepper(GCN(*sizes, entropy=detached), x, y, g),
        "differentiated": stepper(GCN(*sizes, entropy={**detached, "detach": False}), x, y, g),
    }
    entries = g.edge_index.size(1)
    case = {"layers": layers, "width": width, "nodes": nodes, "edges": entries}
    return {**case, **compared(pyg, ours, rounds), "compilation": compilation}


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
    network = (features, width, layers, dropout)
    edge_index, weight = gcn_norm(g.edge_index, None, nodes)
    csr = normalised_csr(edge_index, weight, nodes)
    pyg = {
        DEFAULT: epoch(PyGGCNII(*network), g.edge_index, x, y),
        "PyG, cached": epoch(PyGGCNII(*network, cached=True), g.edge_index, x, y),
        "PyG, CSR": epoch(PyGGCNII(*network, normalize=False), csr, x, y),
    }
    ours = {
        "ours": epoch(GCNII(*sizes, dropout=dropout), g, sparse, y),
        "entropic": epoch(GCNII(*sizes, dropout=dropout, entropy=entropy), g, sparse, y),
    }
    entries = g.edge_index.size(1)
    case = {"layers": layers, "width": width, "nodes": nodes, "edges": entries}
    return {**case, **compared(pyg, ours, rounds)}


def compared(
    pyg: dict[str, Callable[[], None]], ours: dict[str, Callable[[], None]], rounds: int
) -> dict[str, Any]:
    """Return the times of ours as ratios to PyG's default set-up and to its fastest.

    The fastest is the one of the smallest median.
    """
    seconds = interleaved({**pyg, **ours}, rounds, 0.2)
    fastest = min(pyg, key=lambda name: median(seconds[name]))
    pairs = [(name, against) for against in (DEFAULT, FASTEST) for name in ours]
    return {
        "ratios": ratios({**seconds, FASTEST: seconds[fastest]}, [*pairs, ("entropic", "ours")]),
        "seconds": medians(seconds),
        FASTEST: fastest,
    }


def epoch(model: Module, adjacency: Any, x: Tensor, y: Tensor) -> Callable[[], None]:
    """Return a training step followed by a pass in evaluation mode."""
    step = stepper(model, x, y, adjacency)

    def run() -> None:
        model.train()
        step()
        model.eval()
        with torch.no_grad():
            model(x, adjacency)

    return run
