"""``eamp bench``: run the measurements, print them as ratios, write them as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.backends import backend_table, compare_backends, gpu_backends
from benchmarks.diagnosis import diagnosis_costs, diagnosis_table
from benchmarks.first_call import first_call
from benchmarks.growth import TIMED, growth
from benchmarks.large import large, large_table
from benchmarks.memory import memory, memory_table, peak_of_step
from benchmarks.results import both, size_of, write_results
from benchmarks.step import compare, local_graph, random_graph, reordered
from benchmarks.timing import machine
from benchmarks.training import CASES, FASTEST, gcnii_epoch, training_step
from benchmarks.watching import monitor_table, monitors

CORA_LIKE = (2708, 10556, 256)
LARGE = (100_000, 1_000_000, 128)


def run(output: Path | None = None, quick: bool = False, device: str = "cpu") -> dict[str, Any]:
    """Measure, print, and write.

    Args:
        output: a JSON file to write to; nothing is written when left out.
        quick: take small graphs only.
        device: ``"cpu"`` measures everything. ``"cuda"`` compares the backends of a GPU, the matrix
            form and the Triton kernels, beside each other and beside ``A @ x``.

    Returns:
        What was measured, as it is written.

    Raises:
        SystemExit: if ``device`` is ``"cuda"`` and there is no CUDA device.
    """
    console = Console()
    sizes = [CORA_LIKE] if quick else [CORA_LIKE, LARGE]
    if device == "cpu":
        results, tables = measure_cpu(console, sizes, quick)
    else:
        names = gpu_backends()
        with console.status("the backends beside each other"):
            compared = [compare_backends(*size, device, names) for size in sizes]
        results, tables = {"backends": compared}, [backend_table(compared)]
    results = {"machine": machine(device), **results}
    for table in tables:
        console.print(table)
    facts = (f"{key} {value}" for key, value in results["machine"].items())
    console.print(", ".join(facts), markup=False)
    write_results(results, output)
    if output is not None:
        console.print(f"written to {output}", markup=False)
    return results


def measure_cpu(
    console: Console, sizes: list[tuple[int, int, int]], quick: bool
) -> tuple[dict[str, Any], list[Table]]:
    """Measure everything on the CPU; return the figures and the tables that show them."""
    edges = [10**k for k in range(4, 6 if quick else 9)]
    results: dict[str, Any] = {}
    with console.status("the step beside its alternatives"):
        results["step"] = [compare(*size) for size in sizes]
        results["memory"] = [peak_of_step(*size) for size in sizes]
    with console.status("training steps"):
        results["training"] = [training_step(*case) for case in (CASES[:1] if quick else CASES)]
        results["gcnii"] = gcnii_epoch(layers=8 if quick else 64)
    with console.status("a diagnosis"):
        results["diagnosis"] = diagnosis_costs(quick)
        results["monitor"] = monitors(quick)
    with console.status("the first call"):
        results["first call"] = first_call()
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
    tables = [
        step_table(results["step"], results["memory"]),
        training_table(results["training"]),
        pyg_table(results["training"]),
        diagnosis_table(results["diagnosis"]),
        monitor_table(results["monitor"]),
        growth_table(results["growth"]),
        memory_table(results["checkpoints"]),
        large_table(results["large"]),
        summary(results),
    ]
    return results, tables


def step_table(steps: list[dict[str, Any]], memories: list[dict[str, Any]]) -> Table:
    """Show the step beside its alternatives."""
    table = Table("", *map(size_of, steps), title="The entropy step")
    for name in steps[0]["ratios"]:
        table.add_row(name, *(both(step["ratios"][name]) for step in steps))
    extra = (f"{memory['extra / size of x']:.2f}" for memory in memories)
    table.add_row("extra memory / size of x", *extra)
    for name in steps[0]["bytes per second"]:
        speeds = (f"{step['bytes per second'][name] / 1e9:.1f}" for step in steps)
        table.add_row(f"{name}, GB per second", *speeds)
    errors = (f"{100 * step['error of the published gradient']:.1f} %" for step in steps)
    table.add_row("error of the published gradient", *errors)
    for name in steps[0]["seconds"]:
        table.add_row(f"{name}, ms", *(f"{1e3 * step['seconds'][name]:.3f}" for step in steps))
    return table


def training_table(cases: list[dict[str, Any]]) -> Table:
    """Show a training step of our networks beside PyG's, in its default and its fastest set-up."""
    heads = (f"{case['layers']} × {case['width']}, {case['edges']:,} edges" for case in cases)
    table = Table("", *heads, title="A training step, forward and backward")
    for name in cases[0]["ratios"]:
        table.add_row(name, *(both(case["ratios"][name]) for case in cases))
    table.add_row("the fastest PyG", *(case[FASTEST] for case in cases))
    return table


def pyg_table(cases: list[dict[str, Any]]) -> Table:
    """Show the median milliseconds of every set-up, and what became of ``torch.compile``."""
    heads = (f"{case['layers']} × {case['width']}" for case in cases)
    table = Table("", *heads, title="A training step, milliseconds")
    for name in dict.fromkeys(name for case in cases for name in case["seconds"]):
        seconds = (case["seconds"].get(name) for case in cases)
        table.add_row(name, *("" if s is None else f"{1e3 * s:.1f}" for s in seconds))
    table.add_row("torch.compile", *(compilation(case["compilation"]) for case in cases))
    return table


def compilation(found: dict[str, Any]) -> str:
    """Return in words how long ``torch.compile`` took, or why it failed."""
    if not found:
        return "not tried"
    if "error" in found:
        return f"failed on {found['of']}: {found['error']}"
    return f"took {found['seconds']:.0f} s"


def growth_table(kinds: dict[str, dict[str, Any]]) -> Table:
    """Show how time grows with edges."""
    features = next(iter(kinds.values()))["features"]
    heads = (f"{name}: {kind}" for kind in kinds for name in TIMED)
    title = f"Growth: nanoseconds per edge, {features} features"
    table = Table("edges", *heads, title=title)
    for row in zip(*(kind["points"] for kind in kinds.values()), strict=True):
        cells = (f"{1e9 * point[name] / point['edges']:.1f}" for point in row for name in TIMED)
        table.add_row(f"{row[0]['nodes'] * 10:,}", *cells)
    exponents = (f"{kind['exponents'][name]:.3f}" for kind in kinds.values() for name in TIMED)
    table.add_row("exponent", *exponents)
    return table


def summary(results: dict[str, Any]) -> Table:
    """Show the ratios that matter to someone who wonders what the step costs."""
    table = Table("", "", title="In short: the median ratio, and that of the fastest rounds")
    for step in results["step"]:
        label = f"the step / one A @ x, {size_of(step)}"
        table.add_row(label, both(step["ratios"]["step / A @ x"]))
    for case in results["training"]:
        shape = f"{case['layers']} × {case['width']}"
        size = f"{case['nodes']:,} nodes, {case['edges']:,} edges"
        label = f"training step of our entropic GCN / PyG's plain GCN, {shape}, {size}"
        table.add_row(label, both(case["ratios"]["entropic / PyG"]))
        label = f"the same / the fastest set-up of PyG's ({case[FASTEST]})"
        table.add_row(label, both(case["ratios"][f"entropic / {FASTEST}"]))
    gcnii = results["gcnii"]
    for name, ratio in gcnii["ratios"].items():
        shape = f"{gcnii['layers']} × {gcnii['width']}"
        table.add_row(f"epoch of GCNII with dropout, {shape}, as Cora: {name}", both(ratio))
    for name, seconds in results["first call"].items():
        label = f"import torch and PyG, then import eamp and a first training step, {name}"
        table.add_row(label, " + ".join(f"{value:.1f} s" for value in seconds.values()))
    order = results["order"]
    label = f"the step on a mesh of {order['nodes']:,} nodes in random order / in the order found"
    table.add_row(label, both(order["ratio"]))
    for kind, grown in results["growth"].items():
        exponents = ", ".join(f"{grown['exponents'][name]:.3f}" for name in TIMED)
        table.add_row(f"exponents in edges, {kind}: {', '.join(TIMED)}", exponents)
    big = results["large"]
    label = f"peak memory, graph, energy and gradient, {2 * big['edges']:,} entries"
    table.add_row(label, f"{big['peak bytes'] / 2**30:.1f} GiB")
    return table
