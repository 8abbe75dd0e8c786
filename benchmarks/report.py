"""``eamp bench``: run the measurements, print them as ratios, write them as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.growth import GROWING, growth, peak_memory
from benchmarks.large import large, large_table
from benchmarks.memory import memory, memory_table
from benchmarks.step import compare, local_graph, random_graph, reordered
from benchmarks.timing import machine
from benchmarks.training import CASES, gcnii_epoch, training_step

CORA_LIKE = (2708, 10556, 256)
LARGE = (100_000, 1_000_000, 128)


def run(output: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Measure everything and print it; with ``output`` write it there, too."""
    console = Console()
    sizes = [CORA_LIKE] if quick else [CORA_LIKE, LARGE]
    edges = [10**k for k in range(4, 6 if quick else 9)]
    results: dict[str, Any] = {"machine": machine()}
    with console.status("the step beside its alternatives"):
        results["step"] = [compare(*size) for size in sizes]
        results["memory"] = [peak_memory(*size) for size in sizes]
    with console.status("training steps"):
        results["training"] = [training_step(*case) for case in (CASES[:1] if quick else CASES)]
        results["gcnii"] = gcnii_epoch(layers=8 if quick else 64)
    with console.status("an order of nodes"):
        results["order"] = reordered(*((20_000, 200_000) if quick else (1_000_000, 10_000_000)))
    with console.status("memory"):
        results["checkpoints"] = memory(*((8, (64,)) if quick else (64, (64, 256))))
        results["large"] = large(*((10_000, 50_000) if quick else (10_000_000, 50_000_000)))
    with console.status("growth"):
        results["growth"] = {
            "neighbours near by": growth(local_graph, edges),
            "neighbours anywhere": growth(random_graph, edges),
        }
    memory_tables = memory_table(results["checkpoints"]), large_table(results["large"])
    for table in (
        step_table(results),
        training_table(results),
        growth_table(results),
        *memory_tables,
        summary(results),
    ):
        console.print(table)
    console.print(
        ", ".join(f"{key} {value}" for key, value in results["machine"].items()), markup=False
    )
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        console.print(f"written to {output}", markup=False)
    return results


# Ratios first, since only they can be compared between machines: the median, and in brackets that of the fastest rounds.


def both(ratio: dict[str, float]) -> str:
    """The median ratio, and in brackets that of the fastest rounds."""
    return f"{ratio['median']:.2f} ({ratio['fastest']:.2f})"


def step_table(results: dict[str, Any]) -> Table:
    """The step beside its alternatives."""
    table = Table(
        "",
        *(
            f"{r['nodes']:,} nodes, {r['edges']:,} edges, {r['features']} features"
            for r in results["step"]
        ),
        title="The entropy step",
    )
    for name in results["step"][0]["ratios"]:
        table.add_row(name, *(both(r["ratios"][name]) for r in results["step"]))
    table.add_row(
        "extra memory / size of x", *(f"{m['extra / size of x']:.2f}" for m in results["memory"])
    )
    for name in results["step"][0]["bytes per second"]:
        table.add_row(
            f"{name}, GB per second",
            *(f"{r['bytes per second'][name] / 1e9:.1f}" for r in results["step"]),
        )
    table.add_row(
        "error of the published gradient",
        *(f"{100 * r['error of the published gradient']:.1f} %" for r in results["step"]),
    )
    for name in results["step"][0]["seconds"]:
        table.add_row(f"{name}, ms", *(f"{1e3 * r['seconds'][name]:.3f}" for r in results["step"]))
    return table


def training_table(results: dict[str, Any]) -> Table:
    """A training step of our networks beside PyG's."""
    table = Table(
        "layers × width",
        "nodes, edges",
        *results["training"][0]["ratios"],
        "PyG's, ms",
        title="A training step, forward and backward",
    )
    for case in results["training"]:
        ratios = map(both, case["ratios"].values())
        table.add_row(
            f"{case['layers']} × {case['width']}",
            f"{case['nodes']:,}, {case['edges']:,}",
            *ratios,
            f"{1e3 * case['seconds']['PyG']:.1f}",
        )
    return table


def growth_table(results: dict[str, Any]) -> Table:
    """How time grows with edges."""
    kinds = results["growth"]
    heads = [f"{name}: {kind}" for kind in kinds for name in GROWING]
    table = Table(
        "edges",
        *heads,
        title=f"Growth: nanoseconds per edge, {next(iter(kinds.values()))['features']} features",
    )
    for row in zip(*(kind["points"] for kind in kinds.values()), strict=True):
        cells = (f"{1e9 * point[name] / point['edges']:.1f}" for point in row for name in GROWING)
        table.add_row(f"{row[0]['nodes'] * 10:,}", *cells)
    table.add_row(
        "exponent",
        *(f"{kind['exponents'][name]:.3f}" for kind in kinds.values() for name in GROWING),
    )
    return table


def summary(results: dict[str, Any]) -> Table:
    """The ratios that matter to someone who wonders what the step costs."""
    table = Table("", "", title="In short: the median ratio, and that of the fastest rounds")
    for r in results["step"]:
        size = f"{r['nodes']:,} nodes, {r['edges']:,} edges, {r['features']} features"
        table.add_row(f"the step / one A @ x, {size}", both(r["ratios"]["step / A @ x"]))
    for case in results["training"]:
        size = (
            f"{case['layers']} × {case['width']}, {case['nodes']:,} nodes, {case['edges']:,} edges"
        )
        table.add_row(
            f"training step of our entropic GCN / PyG's plain GCN, {size}",
            both(case["ratios"]["entropic / PyG"]),
        )
    gcnii = results["gcnii"]
    for name, ratio in gcnii["ratios"].items():
        table.add_row(
            f"epoch of GCNII with dropout, {gcnii['layers']} × {gcnii['width']}, as Cora: {name}",
            both(ratio),
        )
    order = results["order"]
    table.add_row(
        f"the step on a mesh of {order['nodes']:,} nodes in random order / in the order found",
        both(order["ratio"]),
    )
    for kind, grown in results["growth"].items():
        exponents = ", ".join(f"{grown['exponents'][name]:.3f}" for name in GROWING)
        table.add_row(f"exponents in edges, {kind}: {', '.join(GROWING)}", exponents)
    big = results["large"]
    table.add_row(
        f"peak memory, graph, energy and gradient, {2 * big['edges']:,} entries",
        f"{big['peak bytes'] / 2**30:.1f} GiB",
    )
    return table
