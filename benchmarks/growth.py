"""How time and memory grow with the graph."""

from __future__ import annotations

import math
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import eamp
from benchmarks.step import TEMPERATURE, csr_matrix, random_graph
from benchmarks.timing import interleaved
from eamp.functional import entropy_step
from eamp.ops import normaliser
from eamp.ops.backends.numba_cpu.launch import launch

EDGES_PER_NODE = 10
GROWING = ("step", "kernels alone", "A @ x")


def growth(
    make_graph: Callable[[int, int], eamp.Graph],
    num_edges: list[int],
    features: int = 64,
    rounds: int = 9,
) -> dict[str, Any]:
    """Fastest seconds of the step, of its kernels in memory that is there already, and of a product with torch's CSR matrix, at each size;
    exponents of power laws fitted to them.
    """
    points = []
    for m in num_edges:
        g, x = make_graph(m // EDGES_PER_NODE, m), torch.randn(m // EDGES_PER_NODE, features)
        seconds = interleaved(contenders(g, x), max(2, min(rounds, rounds * 10**7 // m)))
        points.append(
            {
                "edges": g.csr.col.numel(),
                "nodes": x.size(0),
                **{name: min(times) for name, times in seconds.items()},
            }
        )
    exponents = {name: exponent([(p["edges"], p[name]) for p in points]) for name in GROWING}
    return {"features": features, "points": points, "exponents": exponents}


def contenders(g: eamp.Graph, x: torch.Tensor) -> dict[str, Callable[[], object]]:
    """The step, its kernels alone, and one sparse product on the same graph."""
    adjacency, csr = csr_matrix(g), g.csr
    q, energy, per_edge, out = (
        torch.zeros(x.size(0)),
        torch.zeros(x.size(0)),
        torch.zeros(csr.col.numel()),
        torch.zeros_like(x),
    )
    room: dict[str, Any] = {
        "q": q,
        "per_node": energy,
        "per_edge": per_edge,
        "out": out,
        "scale": normaliser(x, csr.rsqrt_degree),
    }
    calls = (
        lambda: entropy_step(x, csr, TEMPERATURE),
        lambda: launch(("squared", "drive", "weighted"), csr, x, **room, temperature=TEMPERATURE),
        lambda: adjacency @ x,
    )
    return dict(zip(GROWING, calls, strict=True))


def exponent(points: list[tuple[float, float]]) -> float:
    """Slope of ln seconds over ln edges, by least squares."""
    u, v = [math.log(edges) for edges, _ in points], [math.log(seconds) for _, seconds in points]
    mean_u, mean_v = sum(u) / len(u), sum(v) / len(v)
    return sum((a - mean_u) * (b - mean_v) for a, b in zip(u, v, strict=True)) / sum(
        (a - mean_u) ** 2 for a in u
    )


def peak_memory(num_nodes: int, num_edges: int, features: int) -> dict[str, Any]:
    """Memory that one step needs beyond what is there before it, its result included, measured in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.growth",
        str(num_nodes),
        str(num_edges),
        str(features),
    ]
    extra = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    size_of_x = num_nodes * features * 4
    return {
        "nodes": num_nodes,
        "edges": num_edges,
        "features": features,
        "extra bytes": extra,
        "extra / size of x": extra / size_of_x,
    }


def resident_peak() -> int:
    """The highest resident memory of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def main() -> None:
    """Measure one step in this fresh process and print the extra bytes."""
    num_nodes, num_edges, features = map(int, sys.argv[1:])
    g, x = random_graph(num_nodes, num_edges), torch.randn(num_nodes, features)
    small = random_graph(10, 20)
    entropy_step(torch.randn(10, features), small.csr, TEMPERATURE)  # compile before measuring
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text(
            "5"
        )  # the peak counts from here; elsewhere making the graph may have set it higher
    before = resident_peak()
    step, _ = entropy_step(x, g.csr, TEMPERATURE)
    sys.stdout.write(f"{resident_peak() - before}\n")
    del step


if __name__ == "__main__":
    main()
