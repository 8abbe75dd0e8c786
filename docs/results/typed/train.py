"""Train networks of 2 to 16 typed layers on IMDB: plain, with the step, and its controls.

``python docs/results/typed/train.py`` writes ``accuracies.csv`` and ``relations.csv`` beside this
file. It takes about half an hour of one core. ``python docs/results/typed/tables.py`` puts them
into the page.
"""

import csv
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ModuleDict, ModuleList
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

import eamp

WIDTH, EPOCHS, SEEDS = 64, 40, (0, 1, 2)
DEPTHS = (2, 4, 8, 16)
# Options of eamp.wrap; the default is a gain of 2 at T = 1, and None is no step.
VARIANTS: dict[str, dict[str, Any] | None] = {
    "without": None,
    "with": {},
    "linear": {"temperature": 1e6},
    "permuted": {"variant": "permuted"},
    "residual": None,
}
HERE = Path(__file__).parent


class Network(Module):
    """A linear layer per type, HeteroConv layers of SAGEConv with ReLU, and a linear classifier."""

    def __init__(self, data: HeteroData, depth: int, residual: bool) -> None:
        super().__init__()
        self.residual = residual
        self.encoders = ModuleDict(
            {kind: Linear(x.size(1), WIDTH) for kind, x in data.x_dict.items()}
        )
        self.convs = ModuleList(
            HeteroConv({e: SAGEConv((WIDTH, WIDTH), WIDTH) for e in data.edge_types}, aggr="mean")
            for _ in range(depth)
        )
        self.classifier = Linear(WIDTH, data.num_classes)

    def forward(
        self, x_dict: dict[str, Tensor], edge_index_dict: dict[tuple[str, str, str], Tensor]
    ) -> Tensor:
        """Return the logits of the movies."""
        x = {
            kind: F.dropout(self.encoders[kind](each).relu(), 0.5, self.training)
            for kind, each in x_dict.items()
        }
        for conv in self.convs:
            out = {kind: each.relu() for kind, each in conv(x, edge_index_dict).items()}
            x = {kind: x[kind] + each for kind, each in out.items()} if self.residual else out
        return self.classifier(x["movie"])


def train(data: HeteroData, depth: int, variant: str, seed: int) -> tuple[Module, dict]:
    """Return a network with the weights of the epoch of lowest validation loss, and its record."""
    torch.manual_seed(seed)
    model: Module = Network(data, depth, residual=variant == "residual")
    if (options := VARIANTS[variant]) is not None:
        model = eamp.wrap(model, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    movies, lowest, best = data["movie"], float("inf"), {}
    for epoch in range(1, EPOCHS + 1):
        model.train()
        optimizer.zero_grad()
        out = model(data.x_dict, data.edge_index_dict)
        F.cross_entropy(out[movies.train_mask], movies.y[movies.train_mask]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(data.x_dict, data.edge_index_dict)
        loss = float(F.cross_entropy(out[movies.val_mask], movies.y[movies.val_mask]))
        if loss < lowest:
            right = out.argmax(1) == movies.y
            lowest, best = loss, {"epoch": epoch, "val_loss": round(loss, 4)}
            best["test_accuracy"] = round(float(right[movies.test_mask].float().mean()), 4)
            weights = {name: each.clone() for name, each in model.state_dict().items()}
    if best:
        model.load_state_dict(weights)
    return model, best or {"epoch": 0, "val_loss": lowest, "test_accuracy": 0.0}


def main(depths: tuple[int, ...] = DEPTHS, seeds: tuple[int, ...] = SEEDS) -> None:
    """Train all networks, write their accuracies, and diagnose those of the first seed."""
    accuracies, relations = [], []
    for seed in seeds:
        data = eamp.data.load("imdb", seed=seed)  # a split of its own for every seed
        for depth in depths:
            for variant in VARIANTS:
                start = time.perf_counter()
                model, record = train(data, depth, variant, seed)
                row = {"depth": depth, "step": variant, "seed": seed, **record}
                row["seconds"] = round(time.perf_counter() - start, 1)
                accuracies.append(row)
                sys.stderr.write(f"{row}\n")
                if seed == seeds[0]:
                    diagnosis = eamp.diagnose(model, data)
                    for relation, each in diagnosis.relations.items():
                        energy = each.table["relative_energy"]
                        found = {
                            "depth": depth,
                            "step": variant,
                            "relation": relation,
                            "kind": each.kind,
                        }
                        found |= {"layer": each.layer or "", "first": f"{energy.iloc[0]:.3g}"}
                        relations.append(found | {"last": f"{energy.iloc[-1]:.3g}"})
            for file, rows in (("accuracies.csv", accuracies), ("relations.csv", relations)):
                with (HERE / file).open("w", newline="", encoding="utf-8") as out:
                    writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(rows)


if __name__ == "__main__":
    main()
