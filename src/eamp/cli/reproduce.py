"""Rerun the paper, figure by figure, and write a page with the results."""

from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from jsonargparse.typing import PositiveInt

from eamp.cli import options as shared
from eamp.cli.exit_status import resumable

EXAMPLE = "eamp reproduce --quick --output out"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    folder = "folder for the runs, tables, figures and the page"
    parser.add_argument("--output", type=Path, default=Path("out"), help=folder)
    parser.add_argument(
        "--quick", action="store_true", help="Cora, the cheapest cells: a few minutes"
    )
    parser.add_argument(
        "--seeds", type=PositiveInt, default=1, help="seeds of earlier calls are kept"
    )
    shared.add_workers(parser)
    parts = ["depth", "figures", "table", "variants"]
    parser.add_argument("--only", nargs="*", default=[], choices=parts, help="by default all")


@resumable
def run(options: Namespace) -> int:
    """Train what is missing, and write the page."""
    # heavy: imported when the command runs
    from eamp.cli.tables import show
    from eamp.experiments.sweep import summary
    from eamp.paper import write_report
    from eamp.paper.deep_networks import advice
    from eamp.paper.reproduce import reproduce

    words = ["eamp reproduce", "--quick" if options.quick else f"--seeds {options.seeds}"]
    if options.only:
        words.append(f"--only {' '.join(options.only)}")
    names = ("quick", "seeds", "workers", "only")
    found = reproduce(options.output, **{name: options[name] for name in names})
    page = write_report(options.output, found, notices=found.notices, command=" ".join(words))
    for table in (found.deep_cells, found.cells):
        if not table.empty:
            show(summary(table))
    if sentence := advice(found.deep_cells):
        print(sentence)
    print(f"Written to {page}")
    return 0
