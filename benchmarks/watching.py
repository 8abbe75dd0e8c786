"""Measure what it costs to watch a training, and how long influence and bottlenecks take.

OMP_NUM_THREADS=1 python -m benchmarks.watching [--quick] [--output FILE]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GraphSAGE
from torch_geometric.utils.influence import total_influence

import eamp
from benchmarks.results import add_output, both, write_results
from benchmarks.step import random_graph
from benchmarks.timing import interleaved, machine, ratios
from eamp.diagnostics import CollapseWarning, Monitor, bottlenecks, influence

EVERY = 25  # the default interval of a monitor
LAYERS, WIDTH, CLASSES = 3, 64, 7


def monitored(nodes: int, entries: int, layers: int, rounds: int = 15) -> dict[str, Any]:
    """Time an epoch of a GCN that a monitor measures, beside an epoch without any.

    A measured epoch includes making the monitor and removing it.
    """
    torch.manual_seed(0)
    x, edge_index = torch.randn(nodes, WIDTH), random_graph(nodes, entries).edge_index
    model = GCN(WIDTH, WIDTH, layers, CLASSES)
    optimizer = torch.optim.Adam(model.parameters())

    def epoch() -> None:
        optimizer.zero_grad()
        model(x, edge_index).square().mean().backward()
        optimizer.step()

    def measured() -> None:
        with Monitor(model) as monitor, warnings.catch_warnings():
            warnings.simplefilter("ignore", CollapseWarning)
            epoch()
            monitor.step(0)

    calls = {"measured": measured, "bare": epoch}
    seconds = interleaved(calls, rounds, clock=time.process_time)
    ratio = ratios(seconds, [("measured", "bare")])["measured / bare"]
    return {
        "nodes": nodes,
        "edges": edge_index.size(1) // 2,
        "layers": layers,
        "ratio": ratio,
        "every": EVERY,
        "training": {name: 1 + (value - 1) / EVERY for name, value in ratio.items()},
    }


def monitors(quick: bool) -> list[dict[str, Any]]:
    """Return the cost of a monitor with 4 layers and, unless ``quick``, with 16."""
    cases = [(300, 1500, 4)] if quick else [(2708, 10_556, 4), (2708, 10_556, 16)]
    return [monitored(*case) for case in cases]


def monitor_table(rows: list[dict[str, Any]]) -> Table:
    """Show a measured epoch beside a bare one, and what this makes at the default interval."""
    heads = ("layers", "nodes", "edges", "measured / bare epoch", f"training, every {EVERY}")
    table = Table(*heads, title="Training with a monitor, processor time")
    for row in rows:
        size = (f"{row[name]:,}" for name in ("layers", "nodes", "edges"))
        table.add_row(*size, both(row["ratio"]), both(row["training"]))
    return table


def influences(graphs: dict[str, Tensor], samples: int) -> list[dict[str, Any]]:
    """Time influence by distance beside PyG's ``total_influence``, on as many nodes."""
    rows = []
    for name, edge_index in graphs.items():
        nodes = int(edge_index.max()) + 1
        torch.manual_seed(0)
        x = torch.randn(nodes, WIDTH)
        for architecture in (GraphSAGE, GCN):
            model = architecture(WIDTH, WIDTH, LAYERS, CLASSES).eval()
            data = Data(x=x, edge_index=edge_index)
            ours, found = timed(lambda: influence(model, data, nodes=samples))  # noqa: B023
            theirs, (_, reach) = timed(
                lambda: total_influence(model, data, LAYERS, samples, normalize=False)  # noqa: B023
            )
            rows.append(
                {
                    "graph": name,
                    "model": architecture.__name__,
                    "entries": edge_index.size(1),
                    "samples": samples,
                    "seconds": ours,
                    "PyG seconds": theirs,
                    "PyG / ours": theirs / ours,
                    "range": found.range,
                    "PyG range": reach,
                }
            )
    return rows


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of processor time of one call, and its result."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watching")
    parser.add_argument("--quick", action="store_true", help="small graphs only")
    add_output(parser)
    options = parser.parse_args(arguments)
    quick = options.quick
    side, size = (30, (1000, 10_000)) if quick else (700, (100_000, 1_000_000))
    mesh = eamp.data.load(f"grid:{side}x{side}").edge_index
    graphs = {"random": random_graph(*size).edge_index, "mesh": mesh}
    results: dict[str, Any] = {
        "machine": machine(),
        "monitor": monitors(quick),
        "influence": influences(graphs, samples=10 if quick else 50),
        "bottlenecks": [],
    }
    for name, edge_index in graphs.items():
        seconds, _ = timed(lambda: bottlenecks(edge_index, exact=False))  # noqa: B023
        row = {"graph": name, "edges": edge_index.size(1) // 2, "seconds": seconds}
        results["bottlenecks"].append(row)
    for table in tables(results):
        Console().print(table)
    write_results(results, options.output)
    return results


def tables(results: dict[str, Any]) -> list[Table]:
    """Show the ratios."""
    monitor = monitor_table(results["monitor"])
    heads = ("graph", "model", "entries", "samples", "s", "PyG: s", "PyG / ours", "R", "PyG: R")
    reach = Table(*heads, title="Influence by distance, processor time")
    for row in results["influence"]:
        words = (row["graph"], row["model"], f"{row['entries']:,}", str(row["samples"]))
        values = list(row.values())[4:]
        reach.add_row(*words, *(f"{value:.2f}" for value in values))
    narrow = Table("graph", "edges", "s", title="Bottlenecks, processor time")
    for row in results["bottlenecks"]:
        narrow.add_row(row["graph"], f"{row['edges']:,}", f"{row['seconds']:.1f}")
    return [monitor, reach, narrow]


if __name__ == "__main__":
    main()
