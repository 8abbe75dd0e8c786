"""Join a sweep or a search, here or on another machine, until nothing is left to do."""

from jsonargparse import ArgumentParser, Namespace

from eamp.cli import options as shared
from eamp.cli.exit_status import resumable
from eamp.experiments.parent_process import end_with_parent

EXAMPLE = "eamp work --output out/quick_look"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--study", type=str, help="needed if the store holds several")
    shared.add_store(parser)
    parser.add_argument(
        "--with_parent", type=int | None, help="end when the process of this number has ended"
    )


@resumable
def run(options: Namespace) -> int:
    """Run the jobs of a store."""
    if options.with_parent is not None:
        end_with_parent(options.with_parent)
    # heavy: imported when the command runs
    from eamp.experiments.search import Search
    from eamp.experiments.store import Store
    from eamp.experiments.sweep import run_cell
    from eamp.experiments.tune import run_try
    from eamp.experiments.worker import work

    store = Store.existing(options.output, options.study, shared.shared_storage(options))
    run_job = run_cell if Search.saved_in(store) is None else run_try
    work(store, run_job, announce=lambda line: print(line, flush=True))
    return 0
