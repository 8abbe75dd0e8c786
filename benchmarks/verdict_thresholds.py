"""The models between which the thresholds of the verdict were set: some that work, some that do not, all trained alike.

    python benchmarks/verdict_thresholds.py cora [folder with the Planetoid files]

Prints, for each, its test accuracy, the lowest scale-free energy of any layer and its fall since the first, the range of the
norm against the first layer's, the lowest effective rank against the first layer's, and the verdict.
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
from eamp.diagnostics.verdict import scale_free_energy

Make = Callable[[int, int], Module]

MODELS: dict[str, Make] = {
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


def train(model: Module, data: Data, epochs: int) -> float:
    """Adam on the training nodes; the test accuracy at the end."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        cross_entropy(
            model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask]
        ).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(1) == data.y
    return float(right[data.test_mask].float().mean())


def line(name: str, model: Module, data: Data, accuracy: float) -> str:
    """What the verdict looks at, and the verdict."""
    diagnosis = eamp.diagnose(model, (data.x, data.edge_index))
    table = diagnosis.table
    energy, norm = scale_free_energy(table), table["norm"] / table["norm"].iloc[0]
    share = table["effective_rank"] / np.minimum(table["nodes"], table["width"])
    verdict = (
        ", ".join(f"{finding.kind} from {finding.layer}" for finding in diagnosis.findings)
        or "healthy"
    )
    fall = np.nanmin(energy) / energy[0]
    rank = share.min() / share.iloc[0]
    return f"{name:30} {accuracy:5.3f} {np.nanmin(energy):9.1e} {fall:8.3f} {norm.min():9.1e} {norm.max():9.1e} {rank:7.2f}  {verdict}"


def main(name: str, folder: str | None = None) -> None:
    """Train and diagnose every model."""
    data = NormalizeFeatures()(eamp.data.load(name, folder=folder))
    print(
        f"{'':30} {'test':>5} {'energy':>9} {'of first':>8} {'norm min':>9} {'norm max':>9} {'rank':>7}  verdict"
    )
    for label, make in MODELS.items():
        for epochs in (0, 100):
            torch.manual_seed(0)
            model = make(data.num_features, data.num_classes)
            print(
                line(
                    f"{label}{'' if epochs else ', raw'}", model, data, train(model, data, epochs)
                ),
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
