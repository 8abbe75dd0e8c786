"""Train every cell of a recipe on several processes; run it again to continue."""

import sys
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from eamp.cli import options as shared
from eamp.cli.exit_status import resumable
from eamp.optional import extra


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


@resumable
def run(options: Namespace) -> int:
    """Train the cells, write their tables and print the summary."""
    # heavy: imported when the command runs
    with extra("experiments"):
        from rich import print as show

    from eamp.experiments.recipe import load_recipe
    from eamp.experiments.store import Store
    from eamp.experiments.sweep import diverged_cells, failures, label, save, summary, sweep

    name, cells = load_recipe(options.recipe)
    store = Store(options.output, name, shared.shared_storage(options))
    table = sweep(cells, store, options.workers, retry_failed=options.retry_failed)
    for cell, reason in failures(cells, store):
        print(f"failed: {label(cell)}: {reason}", file=sys.stderr)
    for line in diverged_cells(table):
        print(f"warning: {line}", file=sys.stderr)
    if len(table):
        save(table, options.output)
        show(summary(table, options.by_split))
    print(f"{len(table)} of {len(cells)} cells are in {options.output / 'cells.csv'}")
    return 0 if len(table) == len(cells) else 1
