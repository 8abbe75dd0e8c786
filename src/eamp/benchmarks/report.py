"""``eamp bench``: run the measurements, print them as ratios, write them as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from eamp.benchmarks.growth import growth, peak_memory
from eamp.benchmarks.step import compare
from eamp.benchmarks.timing import keep_freed_memory, machine

CORA_LIKE = (2708, 10556, 256)
LARGE = (100_000, 1_000_000, 128)


def run(output: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Measure everything and print it; with ``output`` write it there, too."""
    console = Console()
    kept = keep_freed_memory()
    sizes = [CORA_LIKE] if quick else [CORA_LIKE, LARGE]
    edges = [10**k for k in range(4, 6 if quick else 8)]
    results: dict[str, Any] = {"machine": {**machine(), "allocator": "glibc, freed memory kept" if kept else "as it is"}}
    results["step"] = [compare(*size) for size in track(sizes, "step", console=console, transient=True)]
    results["growth"] = growth(edges)
    results["memory"] = [peak_memory(*size) for size in sizes]
    for table in tables(results):
        console.print(table)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        console.print(f"written to {output}")
    return results


def tables(results: dict[str, Any]) -> list[Table]:
    """The figures as tables: ratios first, since only they can be compared between machines."""
    facts = ", ".join(f"{key} {value}" for key, value in results["machine"].items())
    step = Table(
        "", *(f"{r['nodes']:,} nodes, {r['edges']:,} edges, {r['features']} features" for r in results["step"]), title="The entropy step"
    )
    for name, unit in (
        ("edge-wise / step", "x"),
        ("autograd / step", "x"),
        ("step / A @ x", "x"),
        ("backward / forward", "x"),
        ("error of the published gradient", "%"),
    ):
        step.add_row(name, *(f"{r[name]:.2f}" if unit == "x" else f"{100 * r[name]:.1f} %" for r in results["step"]))
    for name in results["step"][0]["seconds"]:
        step.add_row(f"{name}, ms", *(f"{1e3 * r['seconds'][name]:.3f}" for r in results["step"]))
    step.add_row("extra memory / size of x", *(f"{m['extra / size of x']:.2f}" for m in results["memory"]))
    step.caption = facts
    points = results["growth"]["points"]
    curve = Table(
        "edges",
        "ms",
        "ns per edge",
        title=f"Growth: time ~ edges^{results['growth']['exponent']:.3f} at {results['growth']['features']} features",
    )
    for point in points:
        curve.add_row(f"{point['edges']:,}", f"{1e3 * point['seconds']:.3f}", f"{1e9 * point['seconds'] / point['edges']:.1f}")
    return [step, curve]
