"""Measure the halos of METIS' parts, and the bytes that a training step sends because of them.

python -m benchmarks.halos [--nodes 1000000] [--parts 4 16 64] [--output halos.json]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import eamp
from benchmarks.communication import Layer, cut, step_bytes
from benchmarks.fresh_process import resident_peak
from benchmarks.results import add_output, write_results
from eamp.data.synthetic import csbm, grid
from eamp.scale.partition import metis

WIDTH = 64
MODELS = {
    "GCN": Layer(WIDTH),
    "entropic GCN": Layer(WIDTH, entropy=True),
    "entropic GCN, detach=False": Layer(WIDTH, entropy=True, detach=False),
}


def mesh(nodes: int) -> eamp.Graph:
    """Make a square grid: halos grow as the square root of the parts."""
    side = round(math.sqrt(nodes))
    return eamp.Graph(grid(side, side).edge_index, side * side)


def communities(nodes: int) -> eamp.Graph:
    """Make communities of a thousand nodes, nine of ten edges inside, ten edges per node."""
    classes = max(nodes // 1000, 2)
    data = csbm(nodes=nodes, classes=classes, degree=10, homophily=0.9, features=1)
    return eamp.Graph(data.edge_index, nodes)


def at_random(graph: eamp.Graph, parts: int) -> torch.Tensor:
    """Draw a part for every node."""
    return torch.randint(parts, (graph.num_nodes,), generator=torch.Generator().manual_seed(0))


GRAPHS: dict[str, Callable[[int], eamp.Graph]] = {"mesh": mesh, "communities": communities}


def halos(
    name: str, graph: eamp.Graph, parts: int, partition: Callable[[eamp.Graph, int], torch.Tensor]
) -> dict[str, Any]:
    """Cut a graph into parts and measure the cut."""
    started = time.perf_counter()
    part = partition(graph, parts)
    seconds = time.perf_counter() - started
    found = cut(graph, part)
    largest = int(found.halos.max())
    return {
        "graph": name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "partition": partition.__name__,
        "parts": parts,
        "seconds": seconds,
        "cut edges": found.cut_edges / graph.num_edges,
        "largest part / mean": float(found.sizes.max() * parts / graph.num_nodes),
        "moved / nodes": found.moved / graph.num_nodes,
        "largest halo": largest,
        "bytes per layer": {
            model: step_bytes(largest, [layer], 0, parts)[0] for model, layer in MODELS.items()
        },
    }


def main(arguments: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.halos")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--parts", type=int, nargs="+", default=[4, 16, 64])
    add_output(parser)
    options = parser.parse_args(arguments)
    rows = []
    for name, make in GRAPHS.items():
        graph = make(options.nodes)
        rows += [
            halos(name, graph, parts, partition)
            for parts in options.parts
            for partition in (metis, at_random)
        ]
    Console().print(table(rows))
    Console().print(f"peak memory {resident_peak() / 2**30:.1f} GiB", markup=False)
    write_results(rows, options.output)
    return rows


def table(rows: list[dict[str, Any]]) -> Table:
    """Show a row per cut.

    The last columns are the bytes that the busiest process receives in one layer of a training
    step, forward and backward.
    """
    heads = ("graph", "partition", "parts", "cut edges", "rows moved / nodes", "largest halo")
    shown = Table(*heads, *(f"{model}: MB per layer" for model in MODELS))
    for row in rows:
        shown.add_row(
            row["graph"],
            row["partition"],
            str(row["parts"]),
            f"{100 * row['cut edges']:.2f} %",
            f"{row['moved / nodes']:.3f}",
            f"{row['largest halo']:,}",
            *(f"{size / 1e6:.2f}" for size in row["bytes per layer"].values()),
        )
    return shown


if __name__ == "__main__":
    main()
