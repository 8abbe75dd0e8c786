"""Energy and gradient of a graph that takes a good part of the memory: the peak of a whole process, from the edge list on.

python -m benchmarks.large [--nodes 10000000] [--edges 50000000] [--features 64] [--output large.json]
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
from torch import Tensor

import eamp
from benchmarks.growth import resident_peak


def random_edges(num_nodes: int, num_edges: int) -> Tensor:
    """``[2, 2 · num_edges]``: every edge starts at the next node and ends anywhere; first all in one direction, then in the other."""
    edge_index = torch.empty(2, 2 * num_edges, dtype=torch.int64)
    for start in range(0, num_edges, num_nodes):
        end = min(start + num_nodes, num_edges)
        torch.arange(end - start, out=edge_index[0, start:end])
    edge_index[1, :num_edges].random_(num_nodes, generator=torch.Generator().manual_seed(0))
    edge_index[0, num_edges:] = edge_index[1, :num_edges]
    edge_index[1, num_edges:] = edge_index[0, :num_edges]
    return edge_index


def stages(num_nodes: int, num_edges: int, features: int) -> list[dict[str, Any]]:
    """What a user does with a large graph, and after each step the seconds it took and the peak of the process so far."""
    found: list[dict[str, Any]] = []

    def timed(name: str, call: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        result = call()
        found.append(
            {"stage": name, "seconds": time.perf_counter() - started, "peak bytes": resident_peak()}
        )
        return result

    tiny = eamp.Graph(torch.tensor([[0, 1], [1, 0]]))
    eamp.entropy_gradient(torch.randn(2, features), tiny)  # compiles
    timed("start", lambda: None)
    edge_index = timed("edge_index", lambda: random_edges(num_nodes, num_edges))
    graph = timed("Graph(edge_index)", lambda: eamp.Graph(edge_index, num_nodes))
    x = timed("features", lambda: torch.randn(num_nodes, features))
    energy = timed("dirichlet_energy", lambda: eamp.dirichlet_energy(x, graph))
    gradient = timed("entropy_gradient", lambda: eamp.entropy_gradient(x, graph))
    if not (bool(energy.isfinite().all()) and gradient.shape == x.shape):
        raise RuntimeError("the energies are not finite.")
    return found


def large(
    num_nodes: int = 1_000_000, num_edges: int = 5_000_000, features: int = 64
) -> dict[str, Any]:
    """The stages in a process of their own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.large",
        "--measure",
        str(num_nodes),
        str(num_edges),
        str(features),
    ]
    found = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    beyond = max(stage["peak bytes"] for stage in found) - found[0]["peak bytes"]
    return {
        "nodes": num_nodes,
        "edges": num_edges,
        "features": features,
        "stages": found,
        "peak bytes": max(stage["peak bytes"] for stage in found),
        "bytes per edge beyond features and gradient": (beyond - 2 * 4 * num_nodes * features)
        / num_edges,
    }


def large_table(result: dict[str, Any]) -> Table:
    """A row per stage."""
    size = f"{result['nodes']:,} nodes, {result['edges']:,} undirected edges, {result['features']} features"
    table = Table("", "seconds", "peak so far, GiB", title=size)
    for stage in result["stages"]:
        table.add_row(
            stage["stage"], f"{stage['seconds']:.1f}", f"{stage['peak bytes'] / 2**30:.2f}"
        )
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large")
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--edges", type=int, default=50_000_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--measure", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        sys.stdout.write(json.dumps(stages(*options.measure)))
        return
    result = large(options.nodes, options.edges, options.features)
    Console().print(large_table(result))
    if options.output is not None:
        options.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
