"""Small frames like those of `eamp reproduce`, and one report of them for all tests."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from eamp.paper import Frames, write_report
from eamp.paper.published import table_1


def cell(
    name: str, data: str, depth: int, seed: int, accuracy: float, test: float
) -> dict[str, Any]:
    network = {"name": name, "data": data, "model": "gcn", "depth": depth, "width": 256}
    run = {"seed": seed, "protocol": "paper", "epochs": 100, "seconds": 2.5, "threads": 1}
    return {**network, **run, "best_val_accuracy": accuracy, "test_accuracy": test}


def u_curve(name: str, data: str, depth: int, seed: int, lowest: float) -> list[dict[str, Any]]:
    network = {"name": name, "data": data, "depth": depth, "seed": seed}
    middle = (depth + 1) / 2
    return [
        network | {"layer": k, "energy": lowest * math.exp(((k - middle) / middle) ** 2 * 4)}
        for k in range(1, depth + 1)
    ]


@pytest.fixture(scope="session")
def frames() -> dict[str, pd.DataFrame]:
    """Two seeds on both datasets at two depths, with one variant of each kind.

    The accuracies are .01 above and below the paper's, but for one cell that is .1 away.
    """
    cells = []
    for row in table_1().to_dict("records"):
        data, name, depth = row["data"], row["name"], row["depth"]
        if depth not in (4, 64):
            continue
        away = 0.1 if (data, name, depth) == ("cora", "G2", 64) else 0.0
        for seed, noise in enumerate((0.01, -0.01)):
            reached = row["published"] + away + noise
            cells.append(cell(name, data, depth, seed, reached, reached - 0.02))
            if (data, name) == ("cora", "G2"):
                variant = "G2, no ReLU on logits"
                cells.append(cell(variant, data, depth, seed, reached + 0.2, reached + 0.1))
            if (data, name) == ("cora", "Entropic GCN"):
                variant = "Entropic GCN, detached"
                cells.append(cell(variant, data, depth, seed, reached - 0.05, reached - 0.07))
    lowest = {"Basic GCN": 0.0, "Entropic GCN": 0.12, "G2": 0.3, "Entropic GCN, detached": 0.2}
    layers = [
        row
        for seed in range(2)
        for name, energy in lowest.items()
        for row in u_curve(name, "cora", 64, seed, energy)
    ]
    energies = {
        "Basic GCN": (1e-3, 1e-30, 0.0),
        "Entropic GCN, λ = 10, T = 1": (0.02, 1.0, 0.98),
        "PairNorm": (0.1, 0.06, 0.05),
    }
    by_depth = [
        {"network": network, "depth": depth, "seed": 0, "energy": energy}
        for network, values in energies.items()
        for depth, energy in zip((1, 100, 1000), values, strict=True)
    ]
    grid = {"graph": "grid, 10 × 10", "degree": 3.6}
    limits = [
        {**grid, "width": w, "predicted": 0.31 * w**0.5, "measured": 0.3 * w**0.5}
        for w in (64, 256)
    ]
    deep = [
        cell(name, "cora", depth, seed, accuracy, accuracy + 0.01 * seed)
        for name, accuracies in {"Basic GCN": (0.8, 0.2), "GCNII": (0.81, 0.84)}.items()
        for depth, accuracy in zip((2, 64), accuracies, strict=True)
        for seed in range(2)
    ]
    return {
        "cells": pd.DataFrame(cells),
        "deep_cells": pd.DataFrame(deep),
        "layer_energies": pd.DataFrame(layers),
        "depth_energies": pd.DataFrame(by_depth),
        "thresholds": pd.DataFrame(limits),
    }


@pytest.fixture(scope="session")
def report(frames: dict[str, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a full report."""
    folder = tmp_path_factory.mktemp("report")
    notices = ["Read this first."]
    return write_report(folder, Frames(**frames), notices=notices, command="eamp reproduce")
