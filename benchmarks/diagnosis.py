"""Time a diagnosis beside one forward pass of the same model.

    OMP_NUM_THREADS=1 python -m benchmarks.diagnosis

The goal is at most ten forward passes for a diagnosis with default options.
"""

from __future__ import annotations

import time
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

CORA_LIKE = (2708, 10556, 1433, 64, 16)
LARGE = (100_000, 1_000_000, 128, 128, 3)
CLASSES = 7


def diagnosis_cost(
    nodes: int, edges: int, features: int, width: int, layers: int, rounds: int = 5
) -> dict[str, Any]:
    """Return the processor time of a diagnosis over that of a forward pass, for two models.

    These are PyG's GCN and ours. The forward pass is that of the diagnosed model, in evaluation
    mode and without gradients.
    """
    torch.manual_seed(0)
    edge_index = random_graph(nodes, edges).edge_index
    labels = torch.randint(CLASSES, (nodes,))
    half = torch.arange(nodes) % 2 == 0
    data = Data(torch.randn(nodes, features), edge_index, y=labels, train_mask=half, val_mask=~half)
    models = {
        "PyG's GCN": GCN(features, width, layers, CLASSES).eval(),
        "our GCN": eamp.nn.MODELS["gcn"](features, width, CLASSES, layers).eval(),
    }
    found: dict[str, Any] = {"ratios": {}, "seconds": {}}
    for name, model in models.items():

        def forward(model: torch.nn.Module = model) -> None:
            with torch.no_grad():
                model(data.x, data.edge_index)

        def diagnosis(model: torch.nn.Module = model) -> None:
            eamp.diagnose(model, data)

        calls = {"diagnosis": diagnosis, "forward pass": forward}
        seconds = interleaved(calls, rounds, clock=time.process_time)
        for pair, ratio in ratios(seconds, [("diagnosis", "forward pass")]).items():
            found["ratios"][f"{name}: {pair}"] = ratio
        found["seconds"] |= {f"{name}: {call}": s for call, s in medians(seconds).items()}
    sizes = {"nodes": nodes, "edges": edges, "features": features, "width": width}
    return {**sizes, "layers": layers, **found}


def diagnosis_costs(quick: bool) -> list[dict[str, Any]]:
    """Return the cost on a graph like Cora and, unless ``quick``, with a million edges."""
    return [diagnosis_cost(*case) for case in ([CORA_LIKE] if quick else [CORA_LIKE, LARGE])]


def diagnosis_table(cases: list[dict[str, Any]]) -> Table:
    """Show the ratios, with a column per graph."""
    heads = (f"{size_of(case)}, {case['layers']} layers" for case in cases)
    table = Table("", *heads, title="A diagnosis, beside one forward pass, processor time")
    for name in cases[0]["ratios"]:
        table.add_row(name, *(both(case["ratios"][name]) for case in cases))
    for name in cases[0]["seconds"]:
        table.add_row(f"{name}, ms", *(f"{1e3 * case['seconds'][name]:.1f}" for case in cases))
    return table


if __name__ == "__main__":
    Console(width=160).print(diagnosis_table(diagnosis_costs(quick=False)))
