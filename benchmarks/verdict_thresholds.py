"""Train the models between which the thresholds of the verdict were set, and diagnose them.

    python -m benchmarks.verdict_thresholds cora [folder with the Planetoid files]

Some of the models work and some do not; all are trained alike. For each this prints its test
accuracy, the lowest scale-free energy of any layer and that energy relative to the first layer's,
the range of the norm relative to the first layer's, the lowest effective rank relative to the first
layer's, and the verdict.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch
from torch.nn import Module
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GraphSAGE
from torch_geometric.transforms import NormalizeFeatures

import eamp
from eamp.diagnostics.causes.attribution import scale_free_energy

MODELS: dict[str, Callable[[int, int], Module]] = {
    "GCN, 2 layers": lambda f, c: GCN(f, 64, 2, c, dropout=0.5),
    "GCN, 3 layers": lambda f, c: GCN(f, 64, 3, c, dropout=0.5),
    "GCN, 4 layers": lambda f, c: GCN(f, 64, 4, c, dropout=0.5),
    "SAGE, 2 layers": lambda f, c: GraphSAGE(f, 64, 2, c, dropout=0.5),
    "SAGE, 4 layers": lambda f, c: GraphSAGE(f, 64, 4, c, dropout=0.5),
    "GAT, 3 layers": lambda f, c: GAT(f, 64, 3, c, dropout=0.5, heads=4),
    "GCN + PairNorm, 16 layers": lambda f, c: GCN(f, 64, 16, c, norm="PairNorm"),
    "GCN, 8 layers": lambda f, c: GCN(f, 64, 8, c),
    "GCN, 16 layers": lambda f, c: GCN(f, 64, 16, c),
    "GCN, 32 layers": lambda f, c: GCN(f, 64, 32, c),
    "SAGE, 16 layers": lambda f, c: GraphSAGE(f, 64, 16, c),
    "GAT, 16 layers": lambda f, c: GAT(f, 64, 16, c),
}
HEADS = ("test", "energy", "of first", "norm min", "norm max", "rank")
WIDTHS = (5, 9, 8, 9, 9, 7)


def train(model: Module, data: Data, epochs: int) -> float:
    """Train with Adam on the training nodes and return the test accuracy at the end."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        logits = model(data.x, data.edge_index)
        cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(1) == data.y
    return float(right[data.test_mask].float().mean())


def measured(model: Module, data: Data, accuracy: float) -> tuple[list[str], str]:
    """Return the numbers under HEADS, which the verdict looks at, and the verdict."""
    diagnosis = eamp.diagnose(model, (data.x, data.edge_index))
    table = diagnosis.table
    energy, norm = scale_free_energy(table), table["norm"] / table["norm"].iloc[0]
    share = table["effective_rank"] / np.minimum(table["nodes"], table["width"])
    numbers = [
        f"{accuracy:.3f}",
        f"{np.nanmin(energy):.1e}",
        f"{np.nanmin(energy) / energy[0]:.3f}",
        f"{norm.min():.1e}",
        f"{norm.max():.1e}",
        f"{share.min() / share.iloc[0]:.2f}",
    ]
    verdict = ", ".join(f"{finding.kind} from {finding.layer}" for finding in diagnosis.findings)
    return numbers, verdict or "healthy"


def show(name: str, numbers: list[str] | tuple[str, ...], verdict: str) -> None:
    """Print one line of the table."""
    columns = (f"{number:>{width}}" for number, width in zip(numbers, WIDTHS, strict=True))
    print(f"{name:30}", *columns, "", verdict, flush=True)


def main(name: str, folder: str | None = None) -> None:
    """Train and diagnose every model, untrained and after 100 epochs."""
    data = NormalizeFeatures()(eamp.data.load(name, folder=folder))
    show("", HEADS, "verdict")
    for label, make in MODELS.items():
        for epochs, suffix in ((0, ", raw"), (100, "")):
            torch.manual_seed(0)
            model = make(data.num_features, data.num_classes)
            show(label + suffix, *measured(model, data, train(model, data, epochs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
