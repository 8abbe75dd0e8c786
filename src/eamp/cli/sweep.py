"""Train every cell of a recipe on several processes, and write a page; run it again to continue."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from eamp.cli import options as shared
from eamp.cli.exit_status import resumable
from eamp.optional import MissingPackageError

if TYPE_CHECKING:
    import pandas as pd

    from eamp.experiments.cell import Cell
    from eamp.report.table import Table

EXAMPLE = "eamp sweep quick_look.yaml --output out/quick_look --workers 2"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "recipe", type=Path, help="a YAML file: datasets, models, depths, seeds, protocol"
    )
    shared.add_store(parser, folder=None)
    shared.add_workers(parser)
    parser.add_argument("--retry_failed", action="store_true", help="try failed cells once more")
    parser.add_argument(
        "--by_split", action="store_true", help="summarise every split of the data by itself"
    )
    parser.add_argument(
        "--against",
        type=str | None,
        help="name of a run: compare the others with it, in pairs of the same seed and split",
    )


@resumable
def run(options: Namespace) -> int:
    """Train the cells, write tables and page, and print the summary."""
    # heavy: imported when the command runs
    from eamp.cli.tables import show
    from eamp.experiments import sweep as sweeps
    from eamp.experiments.recipe import load_recipe
    from eamp.experiments.statistics import check_reference
    from eamp.experiments.store import Store
    from eamp.files import file_name
    from eamp.report.comparison import in_terminal, remove_comparisons
    from eamp.report.table import save as save_table

    name, cells = load_recipe(options.recipe)
    if options.against is not None:  # before hours of training
        check_reference(options.against, [cell.name for cell in cells])
    options.output = options.output or Path("out", file_name(name))
    store = Store(options.output, name, shared.shared_storage(options))
    table = sweeps.sweep(cells, store, options.workers, retry_failed=options.retry_failed)
    failed = [(sweeps.label(cell), why) for cell, why in sweeps.failures(cells, store)]
    diverged = sweeps.diverged_cells(table)
    for label, why in failed:
        print(f"failed: {label}: {why}", file=sys.stderr)
    for line in diverged:
        print(f"warning: {line}", file=sys.stderr)
    notices = [*(f"{label} failed: {why}" for label, why in failed), *diverged]
    if len(table):
        sweeps.save(table, options.output)
        remove_comparisons(options.output)
        comparisons: list[Table] = []
        for part in sweeps.parts_by_metric(table):
            show(sweeps.summary(part, options.by_split))
            if options.against is None or options.against not in set(part["name"]):
                continue
            taken = {one.key for one in comparisons}
            beside = comparison_of(part, cells, options.against, options.by_split, taken)
            comparisons.append(beside)
            save_table(beside, options.output)
            show(in_terminal(beside))
        print(page_line(options, name, table, len(cells), comparisons, notices))
    place = f" are in {options.output / 'cells.csv'}" if len(table) else " could be trained"
    print(f"{len(table)} of {len(cells)} cells{place}")
    return 0 if len(table) == len(cells) else 1


def comparison_of(
    part: pd.DataFrame, cells: Sequence[Cell], against: str, by_split: bool, taken: set[str]
) -> Table:
    """Compare the rows of one metric with those of a run, in a table whose key is not taken."""
    # heavy: imported when the command runs
    from eamp.experiments import sweep as sweeps
    from eamp.experiments.statistics import compare
    from eamp.report.comparison import comparison_table

    *_, (column, reading) = sweeps.readings_of(part).items()
    depths: dict[str, set[int]] = {cell.data: set() for cell in cells}
    for cell in cells:
        if cell.name == against:
            depths[cell.data].add(cell.depth)
    compared = compare(part, against, by_split, column, depths)
    metric = sweeps.metric_of(part)
    key = "comparison" if column == "test_accuracy" else f"comparison_{metric}"
    if key in taken:  # another rule selects the epochs
        key += f"_at_best_{part['select'].iloc[0]}"
    return comparison_table(compared, against, reading, key, metric)


def page_line(
    options: Namespace,
    name: str,
    table: pd.DataFrame,
    planned: int,
    comparisons: Sequence[Table],
    notices: Sequence[str],
) -> str:
    """Write the page, and return the line that says where it is or what it needs."""
    try:
        from eamp.report.sweep_page import write_sweep_page  # heavy, and an extra of its own
    except MissingPackageError as error:
        return f"No page was written: {error}"
    words = ["eamp", "sweep", str(options.recipe), "--output", str(options.output)]
    words += ["--by_split"] if options.by_split else []
    words += ["--against", options.against] if options.against else []
    path = write_sweep_page(
        options.output,
        name,
        table,
        planned=planned,
        comparisons=comparisons,
        by_split=options.by_split,
        notices=notices,
        command=shlex.join(words),
    )
    return f"The page: {path}"
