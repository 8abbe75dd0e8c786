"""Measure how time grows with the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import eamp
from benchmarks.step import TEMPERATURE, csr_matrix
from benchmarks.timing import interleaved
from eamp.ops import energy_normaliser
from eamp.ops.backends.numba_cpu.launch import launch

EDGES_PER_NODE = 10
TIMED = ("step", "kernels alone", "A @ x")


def growth(
    make_graph: Callable[[int, int], eamp.Graph],
    num_edges: list[int],
    features: int = 64,
    rounds: int = 9,
) -> dict[str, Any]:
    """Time the step, its kernels alone, and a product with torch's CSR matrix at several sizes.

    Args:
        make_graph: makes a graph of so many nodes and directed entries.
        num_edges: the sizes, in directed entries.
        features: columns of ``x``.
        rounds: of interleaved timing; fewer from 10⁷ entries on.

    Returns:
        The fastest seconds at every size, and the exponents of power laws fitted to them.
    """
    points = []
    for m in num_edges:
        g, x = make_graph(m // EDGES_PER_NODE, m), torch.randn(m // EDGES_PER_NODE, features)
        seconds = interleaved(calls(g, x), max(2, min(rounds, rounds * 10**7 // m)))
        fastest = {name: min(times) for name, times in seconds.items()}
        points.append({"edges": g.csr.col.numel(), "nodes": x.size(0), **fastest})
    exponents = {name: exponent([(p["edges"], p[name]) for p in points]) for name in TIMED}
    return {"features": features, "points": points, "exponents": exponents}


def calls(g: eamp.Graph, x: torch.Tensor) -> dict[str, Callable[[], object]]:
    """Return the functions to time: the step, its kernels in memory that exists, and ``A @ x``."""
    adjacency, csr = csr_matrix(g), g.csr
    memory: dict[str, Any] = {
        "q": torch.zeros(x.size(0)),
        "per_node": torch.zeros(x.size(0)),
        "per_edge": torch.zeros(csr.col.numel()),
        "out": torch.zeros_like(x),
        "scale": energy_normaliser(x, g),
    }
    kernels = ("squared", "drive", "weighted")
    return {
        "step": lambda: eamp.entropy_gradient(x, g, TEMPERATURE),
        "kernels alone": lambda: launch(kernels, csr, x, **memory, temperature=TEMPERATURE),
        "A @ x": lambda: adjacency @ x,
    }


def exponent(points: list[tuple[float, float]]) -> float:
    """Return the slope of ln seconds over ln edges, by least squares."""
    edges, seconds = np.log(points).T
    return float(np.polyfit(edges, seconds, 1)[0])
