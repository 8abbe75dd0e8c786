"""Diagnose a graph network: what does each layer do to the embedding, what is wrong, and does the cure help?

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
    # 1. One call: the verdict in words, and the numbers behind it.
    diagnosis = report(make_model(), data, folder)
    print(f"\nThe verdict as values: kind = {diagnosis.kind!r}, layer = {diagnosis.layer}")
    print(
        diagnosis.table[["layer", "relative_energy", "norm", "effective_rank"]]
        .iloc[::8]
        .to_string(index=False),
        "\n",
    )

    # 2. Follow its first advice, and look again.
    cured = eamp.wrap(make_model(), weight=3.1, temperature=0.037, detach=False)
    print("With the entropy step:", eamp.diagnose(cured, data), "\n", sep="\n")

    # 3. Watch training from inside: energies and gradients of every layer, in every step.
    optimizer = torch.optim.Adam(cured.parameters(), lr=1e-3)
    with eamp.probe(
        cured,
        ["energy", "relative_energy", "norm", "group_distance_ratio"],
        labels=data.y,
        gradients=True,
        history=True,
    ) as p:
        for _ in range(20):
            optimizer.zero_grad()
            loss = cross_entropy(
                cured(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask]
            )
            loss.backward()
            optimizer.step()
    print(p)
    if folder is not None:
        p.plot().save(folder / "training.html", inline=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
