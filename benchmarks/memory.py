"""Measure the memory of a step, and of a training step with and without ``checkpoint=True``.

python -m benchmarks.memory [--layers 64] [--widths 64 256] [--output memory.json]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.nn import Module
from torch.profiler import ProfilerActivity, profile

import eamp
from benchmarks.fresh_process import extra_memory, in_fresh_process
from benchmarks.pyg_setups import stepper
from benchmarks.results import add_output, both, write_results
from benchmarks.step import TEMPERATURE, random_graph
from benchmarks.timing import interleaved, ratios
from benchmarks.training import CLASSES
from eamp.nn import GCN, GCNII

NODES, EDGES = 2708, 10556  # as many as Cora has
DETACHED = {"weight": 1.0, "temperature": 10.0}
NETWORKS: dict[str, Callable[..., Module]] = {
    "GCN": GCN,
    "entropic GCN": lambda *sizes, **options: GCN(*sizes, entropy=DETACHED, **options),
    "entropic GCN, detach=False": lambda *sizes, **options: GCN(
        *sizes, entropy={**DETACHED, "detach": False}, **options
    ),
    "GCNII": GCNII,
}
HOW = {False: "all kept", True: "checkpoint"}


def peak_of_step(num_nodes: int, num_edges: int, features: int) -> dict[str, Any]:
    """Return the memory that one step needs, its result included, in a fresh process."""
    extra = in_fresh_process(extra_memory_of_step, num_nodes, num_edges, features)
    return {
        "nodes": num_nodes,
        "edges": num_edges,
        "features": features,
        "extra bytes": extra,
        "extra / size of x": extra / (num_nodes * features * 4),
    }


def extra_memory_of_step(num_nodes: int, num_edges: int, features: int) -> int:
    """Return by how many bytes one step raises the peak of this process."""
    g, x = random_graph(num_nodes, num_edges), torch.randn(num_nodes, features)
    eamp.entropy_gradient(torch.randn(10, features), random_graph(10, 20), TEMPERATURE)  # compiles
    return extra_memory(lambda: eamp.entropy_gradient(x, g, TEMPERATURE))


def memory(
    layers: int = 64, widths: Sequence[int] = (64, 256), rounds: int = 5
) -> list[dict[str, Any]]:
    """Measure peak bytes and seconds of a training step of every network at every width."""
    return [of_network(name, layers, width, rounds) for name in NETWORKS for width in widths]


def of_network(name: str, layers: int, width: int, rounds: int = 5) -> dict[str, Any]:
    """Measure one network with and without checkpoints.

    Returns:
        Peak bytes of tensors, peak bytes of a fresh process, both beyond what was there before the
        step, and the ratio of the times.
    """
    steps = {how: training_step(name, layers, width, checkpoint) for checkpoint, how in HOW.items()}
    seconds = interleaved(steps, rounds, 0.2)
    return {
        "network": name,
        "layers": layers,
        "width": width,
        "tensor bytes": {how: peak_of_tensors(step) for how, step in steps.items()},
        "resident bytes": {
            how: in_fresh_process(extra_memory_of_training, name, layers, width, checkpoint)
            for checkpoint, how in HOW.items()
        },
        "time": ratios(seconds, [("checkpoint", "all kept")])["checkpoint / all kept"],
    }


def training_step(name: str, layers: int, width: int, checkpoint: bool) -> Callable[[], None]:
    """Return a function that runs forward and backward on a graph of Cora's size."""
    torch.manual_seed(0)
    graph, x = random_graph(NODES, EDGES), torch.randn(NODES, width)
    y = torch.randint(0, CLASSES, (NODES,))
    model = NETWORKS[name](width, width, CLASSES, layers, dropout=0.5, checkpoint=checkpoint)
    return stepper(model, x, y, graph)


def peak_of_tensors(step: Callable[[], None]) -> int:
    """Return the most bytes that torch has allocated at once in a step, beyond those before it.

    The gradients of the parameters are among them.
    """
    step()  # allocates what is made once
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    results = recorded.profiler.kineto_results if recorded.profiler is not None else None
    moves = sorted(
        (event.start_ns(), event.nbytes())
        for event in (results.events() if results else ())
        if event.name() == "[memory]"
    )
    now = most = 0
    for _, size in moves:
        now += size
        most = max(most, now)
    return most


def extra_memory_of_training(name: str, layers: int, width: int, checkpoint: bool) -> int:
    """Return by how many bytes the first training step raises the peak of this process."""
    training_step(name, 2, 8, checkpoint)()  # compiles
    return extra_memory(training_step(name, layers, width, checkpoint))


def memory_table(rows: list[dict[str, Any]]) -> Table:
    """Show a row per network and width."""
    kinds = {"tensors": "tensor bytes", "resident": "resident bytes"}
    heads = (f"{kind}, {how}, MB" for kind in kinds for how in HOW.values())
    title = "Memory of a training step, with and without checkpoint=True"
    table = Table("", "layers × width", *heads, "time ratio", title=title)
    for row in rows:
        sizes = (f"{row[kind][how] / 1e6:.1f}" for kind in kinds.values() for how in HOW.values())
        shape = f"{row['layers']} × {row['width']}"
        table.add_row(row["network"], shape, *sizes, both(row["time"]))
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory")
    parser.add_argument("--layers", type=int, default=64)
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 256])
    add_output(parser)
    options = parser.parse_args(arguments)
    rows = memory(options.layers, options.widths)
    Console().print(memory_table(rows))
    write_results(rows, options.output)


if __name__ == "__main__":
    main()
