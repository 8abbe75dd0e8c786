"""Measure a training step on a batch of graphs beside one graph of the same size.

NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 python -m benchmarks.batches [--rounds 15] [--output FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch_geometric.data import Batch, Data

import eamp
from benchmarks.results import add_output, both, write_results
from benchmarks.timing import interleaved, ratios
from eamp.nn import Cap, EntropyAware, Feedback, GCNConv, Hops, number_layers

SIZES = ((128, 20), (32, 250))  # graphs, and nodes of a graph
WIDTH, DEGREE = 64, 4
STEPS: dict[str, dict[str, Any]] = {
    "the default": {},
    "a number as λ": {"weight": 1.0},
    "detached": {"weight": 1.0, "detach": True},
    "auto T": {"temperature": "auto"},
    "learned λ and T": {"weight": 1.0, "learn_weight": True, "learn_temperature": True},
    "normalised": {"normalize": True},
    "scale free": {"scale_free": True},
    "hops": {"weight": Hops(2.0), "energy": "propagation"},
    "feedback": {"weight": Feedback(0.0, 5.0)},
    "cap per graph": {"weight": Cap(2.0, 0.5, per="graph")},
}


def random_graph(nodes: int, seed: int) -> Data:
    """Return a random graph with :data:`DEGREE` neighbours per node on average."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(nodes, (2, nodes * DEGREE // 2), generator=generator)
    edge_index = eamp.Graph(pairs, nodes, symmetrize=True).edge_index
    return Data(x=torch.randn(nodes, WIDTH, generator=generator), edge_index=edge_index)


def training_step(layer: EntropyAware, x: Tensor, graph: eamp.Graph) -> None:
    """Run one layer forward and backward."""
    layer.zero_grad()
    layer(x, graph).square().mean().backward()


def batch_costs(graphs: int, nodes: int, rounds: int = 15) -> dict[str, Any]:
    """Time the steps on a batch and on one graph of as many nodes, in turns.

    The time is that of the processor, which other processes do not change.
    """
    batch = Batch.from_data_list([random_graph(nodes, seed) for seed in range(graphs)])
    one = random_graph(graphs * nodes, 0)
    found = {}
    for name, step in STEPS.items():
        layer = number_layers(EntropyAware(GCNConv(WIDTH, WIDTH), **step))
        calls: dict[str, Callable[[], object]] = {
            "batch": partial(training_step, layer, batch.x.requires_grad_(), eamp.Graph(batch)),
            "one graph": partial(training_step, layer, one.x.requires_grad_(), eamp.Graph(one)),
        }
        seconds = interleaved(calls, rounds, clock=time.process_time)
        found[name] = ratios(seconds, [("batch", "one graph")])["batch / one graph"]
    return {"graphs": graphs, "nodes": nodes, "ratios": found}


def batch_table(results: Sequence[dict[str, Any]]) -> Table:
    """Show a row per step."""
    heads = (f"{result['graphs']} graphs of {result['nodes']} nodes" for result in results)
    table = Table("", *heads, title="A training step of one layer: a batch / one graph of its size")
    for name in STEPS:
        table.add_row(name, *(both(result["ratios"][name]) for result in results))
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches")
    parser.add_argument("--rounds", type=int, default=15)
    add_output(parser)
    options = parser.parse_args(arguments)
    results = [batch_costs(*size, options.rounds) for size in SIZES]
    Console().print(batch_table(results))
    write_results(results, options.output)


if __name__ == "__main__":
    main()
