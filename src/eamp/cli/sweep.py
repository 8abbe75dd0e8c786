"""Train every cell of a recipe on several processes; run it again to continue."""

import sys
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from eamp.cli import options as shared
from eamp.cli.exit_status import resumable
from eamp.optional import extra

EXAMPLE = "eamp sweep quick_look.yaml --output out/runs --workers 2"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "recipe", type=Path, help="a YAML file: datasets, models, depths, seeds, protocol"
    )
    shared.add_store(parser)
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
    """Train the cells, write their tables and print the summary."""
    # heavy: imported when the command runs
    with extra("experiments"):
        from rich import print as show

    from eamp.experiments import sweep as sweeps
    from eamp.experiments.recipe import load_recipe
    from eamp.experiments.statistics import check_reference, compare
    from eamp.experiments.store import Store
    from eamp.report.comparison import comparison_table, in_terminal
    from eamp.report.table import save as save_table

    name, cells = load_recipe(options.recipe)
    if options.against is not None:  # before hours of training
        check_reference(options.against, [cell.name for cell in cells])
    store = Store(options.output, name, shared.shared_storage(options))
    table = sweeps.sweep(cells, store, options.workers, retry_failed=options.retry_failed)
    for cell, reason in sweeps.failures(cells, store):
        print(f"failed: {sweeps.label(cell)}: {reason}", file=sys.stderr)
    for line in sweeps.diverged_cells(table):
        print(f"warning: {line}", file=sys.stderr)
    if len(table):
        sweeps.save(table, options.output)
        for part in sweeps.parts_by_metric(table):
            show(sweeps.summary(part, options.by_split))
            if options.against is None or options.against not in set(part["name"]):
                continue
            *_, (column, reading) = sweeps.readings_of(part).items()
            compared = compare(part, options.against, options.by_split, column)
            own = "" if column == "test_accuracy" else f"_{part['metric'].iloc[0]}"
            beside = comparison_table(compared, options.against, reading, f"comparison{own}")
            save_table(beside, options.output)
            show(in_terminal(beside))
    print(f"{len(table)} of {len(cells)} cells are in {options.output / 'cells.csv'}")
    return 0 if len(table) == len(cells) else 1
