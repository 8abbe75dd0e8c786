"""How time and memory grow with the graph."""

from __future__ import annotations

import math
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from eamp.benchmarks.step import TEMPERATURE, random_graph
from eamp.benchmarks.timing import interleaved
from eamp.functional import entropy_step

EDGES_PER_NODE = 10


def growth(num_edges: list[int], features: int = 128, rounds: int = 7) -> dict[str, Any]:
    """Seconds of the step at each size, and the exponent of a power law fitted to them."""
    points = []
    for m in num_edges:
        g, x = random_graph(m // EDGES_PER_NODE, m), torch.randn(m // EDGES_PER_NODE, features)
        (timing,) = interleaved({"step": lambda x=x, g=g: entropy_step(x, g.csr, TEMPERATURE)}, "step", rounds)  # type: ignore[misc]
        points.append({"edges": g.csr.col.numel(), "nodes": x.size(0), "seconds": timing.seconds})
    return {"features": features, "points": points, "exponent": exponent(points)}


def exponent(points: list[dict[str, Any]]) -> float:
    """Slope of ln seconds over ln edges, by least squares."""
    u = [math.log(p["edges"]) for p in points]
    v = [math.log(p["seconds"]) for p in points]
    mean_u, mean_v = sum(u) / len(u), sum(v) / len(v)
    return sum((a - mean_u) * (b - mean_v) for a, b in zip(u, v, strict=True)) / sum((a - mean_u) ** 2 for a in u)


def peak_memory(num_nodes: int, num_edges: int, features: int) -> dict[str, Any]:
    """Memory that one step needs beyond what is there before it, its result included, measured in a process of its own."""
    command = [sys.executable, "-m", "eamp.benchmarks.growth", str(num_nodes), str(num_edges), str(features)]
    extra = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    size_of_x = num_nodes * features * 4
    return {"nodes": num_nodes, "edges": num_edges, "features": features, "extra bytes": extra, "extra / size of x": extra / size_of_x}


def resident_peak() -> int:
    """The highest resident memory of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Measure one step in this fresh process and print the extra bytes."""
    num_nodes, num_edges, features = map(int, sys.argv[1:])
    g, x = random_graph(num_nodes, num_edges), torch.randn(num_nodes, features)
    small = random_graph(10, 20)
    entropy_step(torch.randn(10, features), small.csr, TEMPERATURE)  # compile before measuring
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")  # the peak counts from here; elsewhere making the graph may have set it higher
    before = resident_peak()
    step, _ = entropy_step(x, g.csr, TEMPERATURE)
    sys.stdout.write(f"{resident_peak() - before}\n")
    del step


if __name__ == "__main__":
    main()
