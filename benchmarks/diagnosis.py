"""Time a diagnosis beside one forward pass of the same model.

    python -m benchmarks.diagnosis

The goal is ten forward passes for a diagnosis with default options, which it does not reach yet.
"""

from __future__ import annotations

from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import eamp
from benchmarks.results import both, size_of
from benchmarks.step import random_graph
from benchmarks.timing import interleaved, medians, ratios

CORA_LIKE = (2708, 10556, 1433, 64)
LARGE = (100_000, 1_000_000, 128, 128)
CLASSES = 7
FORWARD = "forward pass"


def diagnosis_cost(
    nodes: int, edges: int, features: int, width: int, layers: int, rounds: int = 5
) -> dict[str, Any]:
    """Return the times of diagnoses with more and more parts, over that of a forward pass."""
    torch.manual_seed(0)
    edge_index = random_graph(nodes, edges).edge_index
    labels = torch.randint(CLASSES, (nodes,))
    half = torch.arange(nodes) % 2 == 0
    data = Data(torch.randn(nodes, features), edge_index, y=labels, train_mask=half, val_mask=~half)
    bare = (data.x, data.edge_index)
    model = GCN(features, width, layers, CLASSES).eval()

    def forward() -> None:
        with torch.no_grad():
            model(*bare)

    calls = {
        FORWARD: forward,
        "measures": lambda: eamp.diagnose(model, bare, parts=False, gradients=False),
        "and parts": lambda: eamp.diagnose(model, bare, gradients=False),
        "and gradients": lambda: eamp.diagnose(model, bare),
        "and labels (default)": lambda: eamp.diagnose(model, data),
    }
    seconds = interleaved(calls, rounds)
    pairs = [(name, FORWARD) for name in calls if name != FORWARD]
    return {
        "nodes": nodes,
        "edges": edges,
        "features": features,
        "width": width,
        "layers": layers,
        "ratios": ratios(seconds, pairs),
        "seconds": medians(seconds),
    }


def diagnosis_costs(quick: bool) -> list[dict[str, Any]]:
    """Return the cost on graphs like Cora and, unless ``quick``, with a million edges."""
    cases = [(*CORA_LIKE, 2), (*CORA_LIKE, 16)] + ([] if quick else [(*LARGE, 3)])
    return [diagnosis_cost(*case) for case in cases]


def diagnosis_table(cases: list[dict[str, Any]]) -> Table:
    """Show the ratios, with a column per graph and depth."""
    heads = (f"{size_of(case)}, {case['layers']} layers" for case in cases)
    table = Table("", *heads, title="A diagnosis, beside one forward pass")
    for name in cases[0]["ratios"]:
        table.add_row(name, *(both(case["ratios"][name]) for case in cases))
    table.add_row(f"{FORWARD}, ms", *(f"{1e3 * case['seconds'][FORWARD]:.1f}" for case in cases))
    return table


if __name__ == "__main__":
    Console(width=160).print(diagnosis_table(diagnosis_costs(quick=False)))
