"""Measure memory and time of inference, all nodes at once and block by block.

OMP_NUM_THREADS=1 python -m benchmarks.inference [--nodes 200000] [--edges 2000000] [--output FILE]

Every measurement runs in a process of its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.nn import Module
from torch_geometric.nn import GAT, GCN, GraphSAGE

import eamp
from benchmarks.fresh_process import extra_memory, in_fresh_process
from benchmarks.results import add_output, write_results
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
    """Measure one inference in this process, which should be a fresh one.

    Returns:
        Bytes beyond those in use before, seconds of processor time, and the sum of the output.
    """
    torch.manual_seed(0)
    model, x = MODELS[model_name]().eval(), torch.randn(nodes, WIDTH)
    # Our layers take the graph; PyG's take its list of edges, which the step makes a graph of once.
    graph = random_graph(nodes, 2 * edges)
    adjacency = graph if model_name.startswith("eamp") else graph.edge_index
    eamp.dirichlet_energy(x, adjacency)
    run(model, blocks, torch.randn(10, WIDTH), random_graph(10, 20).edge_index)  # compiles
    outputs: list[torch.Tensor] = []
    started = time.process_time()
    extra = extra_memory(lambda: outputs.append(run(model, blocks, x, adjacency)))
    return {
        "model": model_name,
        "blocks": blocks,
        "extra bytes": extra,
        "seconds": time.process_time() - started,
        "sum": float(outputs[0].double().sum()),
    }


def run(
    model: Module, blocks: bool, x: torch.Tensor, adjacency: eamp.Graph | torch.Tensor
) -> torch.Tensor:
    """Run the model on all nodes at once, or block by block."""
    with torch.no_grad():
        out: torch.Tensor = eamp.inference(model, x, adjacency) if blocks else model(x, adjacency)
    return out


def main(arguments: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inference")
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=2_000_000, help="undirected")
    add_output(parser)
    options = parser.parse_args(arguments)
    rows = [
        in_fresh_process(measure, name, blocks, options.nodes, options.edges)
        for name in MODELS
        for blocks in (False, True)
    ]
    Console().print(table(rows))
    write_results(rows, options.output)
    return rows


def table(rows: list[dict[str, Any]]) -> Table:
    """Show a row per model: all nodes at once, and block by block."""
    shown = Table("model", "at once: MB", "blocks: MB", "at once: s", "blocks: s")
    for pair in zip(rows[::2], rows[1::2], strict=True):
        memory = (f"{row['extra bytes'] / 1e6:,.0f}" for row in pair)
        shown.add_row(pair[0]["model"], *memory, *(f"{row['seconds']:.1f}" for row in pair))
    return shown


if __name__ == "__main__":
    main()
