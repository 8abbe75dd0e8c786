"""Diagnose a graph network, follow the advice, and watch the cured network train.

    python examples/diagnose_your_model.py [folder to save charts in]

Replace ``make_model`` and ``data`` by your own; nothing in the model has to change.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.nn import GCN

import eamp
from eamp.diagnostics import report

data = eamp.data.load("csbm:nodes=600,features=32")


def make_model() -> GCN:
    torch.manual_seed(0)
    return GCN(data.num_features, 64, num_layers=32, out_channels=data.num_classes)


def main(folder: Path | None) -> None:
    # 1. One call prints the verdict in words, and returns the numbers behind it.
    diagnosis = report(make_model(), data, folder)
    print(f"\nThe verdict as values: kind = {diagnosis.kind!r}, layer = {diagnosis.layer}")
    table = diagnosis.table[["layer", "relative_energy", "norm", "effective_rank"]]
    print(table.iloc[::8].to_string(index=False), "\n")

    # 2. Follow the advice on the entropy step, and diagnose again.
    cured = eamp.wrap(make_model(), weight=3.1, temperature=0.037, detach=False)
    print("With the entropy step:", eamp.diagnose(cured, data), "\n", sep="\n")

    # 3. Record energies and gradients of every layer in every training step.
    optimizer, train = torch.optim.Adam(cured.parameters(), lr=1e-3), data.train_mask
    measures = ["energy", "relative_energy", "norm", "group_distance_ratio"]
    with eamp.probe(cured, measures, labels=data.y, gradients=True, history=True) as p:
        for _ in range(20):
            optimizer.zero_grad()
            logits = cured(data.x, data.edge_index)
            cross_entropy(logits[train], data.y[train]).backward()
            optimizer.step()
    print(p)
    if folder is not None:
        p.plot().save(folder / "training.html", inline=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
