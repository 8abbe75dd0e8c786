"""Classify nodes from untrained networks with a linear readout, into ``frozen.csv``.

python docs/results/evidence/frozen.py

Only the readout is fitted: ridge regression on the centred embedding after the last hidden layer,
in closed form, with the strength that validates best.
"""

import csv
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import one_hot
from torch_geometric.data import Data
from tqdm import tqdm

from eamp.experiments.cell import Cell

FILE = Path(__file__).parent / "frozen.csv"
DATA, DEPTHS, SEEDS, WIDTH = ("cora", "citeseer"), (4, 16, 64, 256), range(10), 64
STRENGTHS = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1.0)  # over the mean squared length of a row
LINEAR = 1e12  # the temperature of T = ∞


def step(gain: float, temperature: float, **options: Any) -> dict[str, Any]:
    """Return the entropy step of a network."""
    return {"weight": {"schedule": "gain", "of": gain}, "temperature": temperature, **options}


def side(gain: float) -> str:
    """Return whether λ lies below or above its threshold, in words."""
    return "below λ*" if gain < 1 else "above λ*"


GAINS = (0.1, 0.25, 0.5, 1.2, 2, 4)
MIRRORED = {"initial_weights": "mirrored"}
WALK = {"weights": "glorot", "initial_residual": 0.0}  # a plain stack with skip connections
PER_NODE = {"scale": 3.0, "scale_individually": True}
# Name, model, its options and its step. Words in brackets name a setting.
NETWORKS: list[tuple[str, str, dict[str, Any], dict[str, Any] | None]] = [
    ("no step", "gcn", {}, None),
    ("no step, float64", "gcn", {}, None),
    ("mirrored weights", "gcn", MIRRORED, None),
    ("initial residual", "deep-gcn", {"weights": "none"}, None),
    ("PairNorm [scale 1]", "pairnorm", {"scale": 1.0}, None),
    ("PairNorm [scale 3 per node]", "pairnorm", PER_NODE, None),
    *((f"lazy walk [g = {g}]", "deep-gcn", {**WALK, "skip": g}, None) for g in (0.5, 0.9)),
    *((f"step {side(g)} [g = {g}, T = 1]", "gcn", {}, step(g, 1.0)) for g in GAINS),
    *((f"step {side(2)} [g = 2, T = {t:g}]", "gcn", {}, step(2, t)) for t in (0.01, 100.0)),
    *((f"T = 10¹² {side(g)} [g = {g}]", "gcn", {}, step(g, LINEAR)) for g in GAINS),
    *(
        (f"permuted {side(g)} [g = {g}, T = 1]", "gcn", {}, step(g, 1.0, variant="permuted"))
        for g in GAINS
    ),
    *((f"mirrored weights, step [g = {g}]", "gcn", MIRRORED, step(g, 1.0)) for g in (0.3, 1)),
]


def main() -> None:
    """Write a row per network, dataset, depth and seed."""
    torch.set_flush_denormal(True)
    places = list(product(DATA, DEPTHS, SEEDS, NETWORKS))
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["model", "data", "depth", "name", "seed", "best_val_accuracy", "test_accuracy"]
        )
        for data, depth, seed, (name, model, options, entropy) in tqdm(places):
            cell = Cell(
                model, data, depth, name, WIDTH, entropy=entropy, options=options,
                normalize_features=True, seed=seed,
            )  # fmt: skip
            dtype = torch.float64 if name.endswith("float64") else torch.float32
            x = embedding(cell.build().to(dtype), cell.graph.x.to(dtype), cell.graph.edge_index)
            found = readout(x, cell.graph)
            writer.writerow([model, data, depth, name, seed, *(f"{value:.4f}" for value in found)])
            file.flush()


def embedding(model: Module, x: Tensor, edge_index: Tensor) -> Tensor:
    """Return the input of the last layer."""
    seen: list[Tensor] = []
    last = getattr(model, "output", None) or model.decoder
    last.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        model.eval()(x, edge_index)
    return seen[0]


def readout(x: Tensor, data: Data) -> tuple[float, float]:
    """Return the validation and test accuracy of the ridge that validates best."""
    train = data.train_mask
    x = x.double() - x[train].double().mean(0)
    scale = x[train].square().sum(1).mean().sqrt()
    x = torch.where(scale > 0, x / scale, 0.0)
    labels = one_hot(data.y).double()
    target, gram = labels[train] - labels[train].mean(0), x[train] @ x[train].T
    found = []
    for strength in STRENGTHS:
        ridge = gram + strength * torch.eye(len(gram), dtype=gram.dtype)
        right = (x @ (x[train].T @ torch.linalg.solve(ridge, target))).argmax(1) == data.y
        val, test = (float(right[mask].double().mean()) for mask in (data.val_mask, data.test_mask))
        found.append((val, test))
    return max(found, key=lambda pair: pair[0])


if __name__ == "__main__":
    main()
