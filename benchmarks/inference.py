"""Memory and time of inference over all nodes at once and block by block; every measurement in a process of its own.

OMP_NUM_THREADS=1 python -m benchmarks.inference [--nodes 200000] [--edges 2000000] [--output inference.json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.nn import Module
from torch_geometric.nn import GAT, GCN, GraphSAGE

import eamp
from benchmarks.growth import resident_peak
from benchmarks.step import random_graph

WIDTH, LAYERS = 64, 3
MODELS: dict[str, Callable[[], Module]] = {
    "eamp's entropic GCN": lambda: eamp.nn.GCN(
        WIDTH, WIDTH, WIDTH, LAYERS - 1, entropy={"weight": 1.0, "temperature": 10.0}
    ),
    "PyG's GCN, wrapped": lambda: eamp.wrap(GCN(WIDTH, WIDTH, LAYERS)),
    "PyG's GraphSAGE, wrapped": lambda: eamp.wrap(GraphSAGE(WIDTH, WIDTH, LAYERS)),
    "PyG's GAT, wrapped": lambda: eamp.wrap(GAT(WIDTH, WIDTH, LAYERS, heads=4)),
}


def measure(model_name: str, blocks: bool, nodes: int, edges: int) -> dict[str, Any]:
    """Bytes beyond what is there before, and seconds of the processor, of one inference in this process, which should be a fresh one."""
    torch.manual_seed(0)
    model, x = MODELS[model_name]().eval(), torch.randn(nodes, WIDTH)
    # Our layers take the graph, PyG's its list of edges, which the step turns into a graph once.
    graph = random_graph(nodes, 2 * edges)
    adjacency = graph if model_name.startswith("eamp") else graph.edge_index
    eamp.dirichlet_energy(x, adjacency)
    run(
        model, blocks, torch.randn(10, WIDTH), random_graph(10, 20).edge_index
    )  # compile before measuring
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text(
            "5"
        )  # the peak counts from here; elsewhere making the graph may have set it higher
    before, started = resident_peak(), time.process_time()
    out = run(model, blocks, x, adjacency)
    seconds, extra = time.process_time() - started, resident_peak() - before
    return {
        "model": model_name,
        "blocks": blocks,
        "extra bytes": extra,
        "seconds": seconds,
        "sum": float(out.double().sum()),
    }


def run(
    model: Module, blocks: bool, x: torch.Tensor, adjacency: eamp.Graph | torch.Tensor
) -> torch.Tensor:
    """All nodes at once, or block by block."""
    with torch.no_grad():
        out: torch.Tensor = eamp.inference(model, x, adjacency) if blocks else model(x, adjacency)
    return out


def main(arguments: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Measure, print, and write what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inference")
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=2_000_000, help="undirected")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--measure", nargs=2, metavar=("MODEL", "BLOCKS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        name, blocks = options.measure
        sys.stdout.write(
            json.dumps(measure(name, blocks == "blocks", options.nodes, options.edges))
        )
        return []
    command = [
        sys.executable,
        "-m",
        "benchmarks.inference",
        "--nodes",
        str(options.nodes),
        "--edges",
        str(options.edges),
        "--measure",
    ]
    rows: list[dict[str, Any]] = []
    for name in MODELS:
        for way in ("at once", "blocks"):
            found = subprocess.run(
                [*command, name, way], check=True, stdout=subprocess.PIPE, text=True
            )
            rows.append(json.loads(found.stdout))
    Console().print(table(rows))
    if options.output is not None:
        options.output.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return rows


def table(rows: list[dict[str, Any]]) -> Table:
    """A row per model: all nodes at once, and block by block."""
    shown = Table("model", "at once: MB", "blocks: MB", "at once: s", "blocks: s")
    for whole, blocks in zip(rows[::2], rows[1::2], strict=True):
        memory = (f"{row['extra bytes'] / 1e6:,.0f}" for row in (whole, blocks))
        shown.add_row(
            whole["model"], *memory, *(f"{row['seconds']:.1f}" for row in (whole, blocks))
        )
    return shown


if __name__ == "__main__":
    main()
