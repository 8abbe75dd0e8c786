"""What a training step of a deep network holds at once, with and without ``checkpoint=True``.

python -m benchmarks.memory [--layers 64] [--output memory.json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch.nn import Module
from torch.profiler import ProfilerActivity, profile

from benchmarks.growth import resident_peak
from benchmarks.step import random_graph
from benchmarks.timing import interleaved, ratios
from eamp.nn import GCN, GCNII

NODES, EDGES, CLASSES = 2708, 10556, 7
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


def memory(
    layers: int = 64, widths: Sequence[int] = (64, 256), rounds: int = 5
) -> list[dict[str, Any]]:
    """Peak bytes and seconds of a training step of every network at every width."""
    return [of_network(name, layers, width, rounds) for name in NETWORKS for width in widths]


def of_network(name: str, layers: int, width: int, rounds: int = 5) -> dict[str, Any]:
    """Bytes of tensors beyond those there before the step, resident memory beyond it in a process of its own, and the ratio of times."""
    steps = {how: training_step(name, layers, width, checkpoint) for checkpoint, how in HOW.items()}
    seconds = interleaved(steps, rounds, 0.2)
    return {
        "network": name,
        "layers": layers,
        "width": width,
        "tensor bytes": {how: peak_of_tensors(step) for how, step in steps.items()},
        "resident bytes": {
            how: peak_of_process(name, layers, width, checkpoint) for checkpoint, how in HOW.items()
        },
        "time": ratios(seconds, [("checkpoint", "all kept")])["checkpoint / all kept"],
    }


def training_step(name: str, layers: int, width: int, checkpoint: bool) -> Callable[[], None]:
    """Forward and backward on a graph of Cora's size."""
    torch.manual_seed(0)
    graph, x, y = (
        random_graph(NODES, EDGES),
        torch.randn(NODES, width),
        torch.randint(0, CLASSES, (NODES,)),
    )
    model = NETWORKS[name](width, width, CLASSES, layers, dropout=0.5, checkpoint=checkpoint)

    def step() -> None:
        model.zero_grad()
        F.cross_entropy(model(x, graph), y).backward()

    return step


def peak_of_tensors(step: Callable[[], None]) -> int:
    """The most bytes that torch has allocated at once in a step, beyond what it had before; gradients of the parameters among them."""
    step()  # what is made once has been made
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


def peak_of_process(name: str, layers: int, width: int, checkpoint: bool) -> int:
    """By how much the first step raises the resident memory of a fresh process."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.memory",
        "--measure",
        name,
        str(layers),
        str(width),
        str(int(checkpoint)),
    ]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(name: str, layers: int, width: int, checkpoint: bool) -> int:
    """In this process, after a step of a tiny network has compiled everything."""
    training_step(name, 2, 8, checkpoint)()
    step = training_step(name, layers, width, checkpoint)
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")  # the peak counts from here
    before = resident_peak()
    step()
    return resident_peak() - before


def memory_table(rows: list[dict[str, Any]]) -> Table:
    """A row per network and width."""
    table = Table(
        "",
        "layers × width",
        *(f"{kind}, {how}, MB" for kind in ("tensors", "resident") for how in HOW.values()),
        "time ratio",
    )
    for row in rows:
        sizes = [
            f"{row[kind][how] / 1e6:.1f}"
            for kind in ("tensor bytes", "resident bytes")
            for how in HOW.values()
        ]
        both = f"{row['time']['median']:.2f} ({row['time']['fastest']:.2f})"
        table.add_row(row["network"], f"{row['layers']} × {row['width']}", *sizes, both)
    table.title = "Memory of a training step, with and without checkpoint=True"
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory")
    parser.add_argument("--layers", type=int, default=64)
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--output", type=Path)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        name, layers, width, checkpoint = options.measure
        sys.stdout.write(f"{measure(name, int(layers), int(width), bool(int(checkpoint)))}\n")
        return
    rows = memory(options.layers, options.widths)
    Console().print(memory_table(rows))
    if options.output is not None:
        options.output.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
