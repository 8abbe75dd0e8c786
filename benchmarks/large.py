"""Measure the peak memory of a whole process that computes with one large graph.

python -m benchmarks.large [--nodes 10000000] [--edges 50000000] [--features 64] [--output FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import eamp
from benchmarks.fresh_process import in_fresh_process, resident_peak
from benchmarks.results import add_output, write_results


def random_edges(num_nodes: int, num_edges: int) -> Tensor:
    """Return ``[2, 2 · num_edges]``: from each node in turn to a random node, then reversed."""
    edge_index = torch.empty(2, 2 * num_edges, dtype=torch.int64)
    for start in range(0, num_edges, num_nodes):
        end = min(start + num_nodes, num_edges)
        torch.arange(end - start, out=edge_index[0, start:end])
    edge_index[1, :num_edges].random_(num_nodes, generator=torch.Generator().manual_seed(0))
    edge_index[0, num_edges:] = edge_index[1, :num_edges]
    edge_index[1, num_edges:] = edge_index[0, :num_edges]
    return edge_index


def stages(num_nodes: int, num_edges: int, features: int) -> list[dict[str, Any]]:
    """Build a graph, its energies and its gradient; record seconds and peak after each stage."""
    found: list[dict[str, Any]] = []

    def timed(name: str, call: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        result = call()
        seconds = time.perf_counter() - started
        found.append({"stage": name, "seconds": seconds, "peak bytes": resident_peak()})
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
    """Run the stages in a process of their own."""
    found = in_fresh_process(stages, num_nodes, num_edges, features)
    peak = max(stage["peak bytes"] for stage in found)
    beyond = peak - found[0]["peak bytes"] - 2 * 4 * num_nodes * features
    return {
        "nodes": num_nodes,
        "edges": num_edges,
        "features": features,
        "stages": found,
        "peak bytes": peak,
        "bytes per edge beyond features and gradient": beyond / num_edges,
    }


def large_table(result: dict[str, Any]) -> Table:
    """Show a row per stage."""
    nodes, edges = f"{result['nodes']:,} nodes", f"{result['edges']:,} undirected edges"
    title = f"{nodes}, {edges}, {result['features']} features"
    table = Table("", "seconds", "peak so far, GiB", title=title)
    for stage in result["stages"]:
        peak = f"{stage['peak bytes'] / 2**30:.2f}"
        table.add_row(stage["stage"], f"{stage['seconds']:.1f}", peak)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large")
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--edges", type=int, default=50_000_000, help="undirected")
    parser.add_argument("--features", type=int, default=64)
    add_output(parser)
    options = parser.parse_args(arguments)
    result = large(options.nodes, options.edges, options.features)
    Console().print(large_table(result))
    write_results(result, options.output)


if __name__ == "__main__":
    main()
