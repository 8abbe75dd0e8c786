"""Time the backends beside each other and beside ``A @ x``, on the CPU or on a GPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from rich.table import Table
from torch import Tensor

import eamp
from benchmarks.results import both, size_of
from benchmarks.step import csr_matrix, random_graph, step_and_backward
from benchmarks.timing import interleaved, medians, ratios

Result = TypeVar("Result")


def gpu_backends() -> tuple[str, ...]:
    """Return the backends that can run on this machine's GPU; without CUDA, end with a sentence."""
    if not torch.cuda.is_available():
        raise SystemExit(
            "This benchmark compares the backends of a GPU, but torch finds no CUDA device here. "
            "Run it on a machine with one, or leave --device out to measure the CPU."
        )
    return ("torch", "triton") if importlib.util.find_spec("triton") else ("torch",)


def on_backend(name: str, call: Callable[[], Result]) -> Callable[[], Result]:
    """Return a function that makes ``call`` on one backend."""

    def run() -> Result:
        with eamp.backend(name):
            return call()

    return run


def compare_backends(
    num_nodes: int,
    num_edges: int,
    features: int,
    device: str = "cuda",
    backends: Sequence[str] = ("torch", "triton"),
    rounds: int = 15,
) -> dict[str, Any]:
    """Time the step and its backward pass on each backend, and ``A @ x``, on one random graph.

    Args:
        num_nodes: nodes of the graph.
        num_edges: its directed entries, about.
        features: columns of ``x``.
        device: where graph and features lie.
        backends: names that :func:`eamp.backend` takes; the first is the one to compare with.
        rounds: of interleaved timing.

    Returns:
        Sizes, median seconds, and ratios: each backend over ``A @ x``, and over the first backend.
        ``differences`` holds the largest difference between the steps of a backend and of the
        first one, relative to the largest element.
    """
    torch.manual_seed(0)
    g = random_graph(num_nodes, num_edges).to(device)
    x, adjacency = torch.randn(num_nodes, features).to(device), csr_matrix(g)
    calls: dict[str, Callable[[], Tensor]] = {"A @ x": lambda: adjacency @ x}
    for name in backends:
        # Backward passes run on the backend that ran forward.
        step, backward = on_backend(name, lambda: step_and_backward(x, g))()
        calls[f"{name}: step"] = on_backend(name, step)
        calls[f"{name}: backward"] = backward
    first, *others = backends
    expected = calls[f"{first}: step"]()
    differences = {
        name: float((calls[f"{name}: step"]() - expected).abs().max() / expected.abs().max())
        for name in others
    }
    seconds = interleaved(calls, rounds)
    passes = ("step", "backward")
    pairs = [(f"{name}: {part}", "A @ x") for name in backends for part in passes]
    pairs += [(f"{name}: {part}", f"{first}: {part}") for name in others for part in passes]
    return {
        "device": device,
        "nodes": num_nodes,
        "edges": g.csr.col.numel(),
        "features": features,
        "ratios": ratios(seconds, pairs),
        "seconds": medians(seconds),
        "differences": differences,
    }


def backend_table(results: Sequence[dict[str, Any]]) -> Table:
    """Show a row per ratio, difference and time, and a column per graph."""
    title = f"The backends on {results[0]['device']}"
    table = Table("", *map(size_of, results), title=title)
    for name in results[0]["ratios"]:
        table.add_row(name, *(both(r["ratios"][name]) for r in results))
    for name in results[0]["differences"]:
        cells = (f"{r['differences'][name]:.1e}" for r in results)
        table.add_row(f"{name}: largest difference of the step, relative", *cells)
    for name in results[0]["seconds"]:
        table.add_row(f"{name}, ms", *(f"{1e3 * r['seconds'][name]:.3f}" for r in results))
    return table
