"""What each command of ``eamp`` does with its options; the value is the exit status. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import TypeAlias

from jsonargparse import Namespace

Command: TypeAlias = Callable[[Namespace], int]


def resumable(command: Command) -> Command:
    """A command that goes on where it stopped: after Ctrl-C, with the status that shells give it, or after its store has been away."""

    @functools.wraps(command)
    def run(options: Namespace) -> int:
        from optuna.exceptions import StorageInternalError

        try:
            return command(options)
        except KeyboardInterrupt:
            fail("interrupted; the same command goes on from here.")
            return 130
        except StorageInternalError as error:  # Optuna's word for whatever the database said last
            lost = str(error.__cause__ or error).strip().splitlines()[0]
            return fail(
                f"the store was lost: {lost}. What has been trained is safe; start this again when the store is back."
            )

    return run


def train(options: Namespace) -> int:
    """``eamp train``."""
    from eamp.experiments.cell import Cell
    from eamp.experiments.several_seeds import repeated, summary
    from eamp.scale.halo_exchange import PeerError
    from eamp.scale.process_group import under_torchrun

    settings = options.as_dict()
    seeds, output, partition, timeout = (
        settings.pop(name) for name in ("seeds", "output", "partition", "timeout")
    )
    try:
        with under_torchrun(partition, timeout) as peers:
            results = repeated(cell := Cell(**settings), seeds, output, progress=True, peers=peers)
    except (
        ValueError,
        PeerError,
    ) as error:  # of a name, an option or the data: what came, what was expected; or of a process that is gone
        return fail(error)
    if peers.leads:
        print(summary(results, cell))
    return 0


@resumable
def reproduce(options: Namespace) -> int:
    """``eamp reproduce``."""
    from rich import print as show

    from eamp.data import DataError
    from eamp.experiments.sweep import SweepError, summary
    from eamp.paper.reproduce import reproduce as run
    from eamp.paper.write_report import write_report

    said = ["eamp reproduce", "--quick" if options.quick else f"--seeds {options.seeds}"]
    if options.only:
        said.append(f"--only {' '.join(options.only)}")
    try:
        found = run(
            options.output,
            quick=options.quick,
            seeds=options.seeds,
            workers=options.workers,
            only=options.only,
        )
    except (DataError, SweepError) as error:
        return fail(error)
    page = write_report(
        options.output,
        cells=found.cells,
        layer_energies=found.layer_energies,
        depth_energies=found.depth_energies,
        thresholds=found.thresholds,
        notices=found.notices,
        command=" ".join(said),
    )
    if not found.cells.empty:
        show(summary(found.cells))
    print(f"Written to {page}")
    return 0


def report(options: Namespace) -> int:
    """``eamp report``."""
    from eamp.paper.write_report import from_folder

    try:
        print(f"Written to {from_folder(options.folder)}")
    except (OSError, ValueError) as error:
        return fail(error)
    return 0


@resumable
def sweep(options: Namespace) -> int:
    """``eamp sweep``."""
    from rich import print as show

    from eamp.experiments.recipe import load_recipe
    from eamp.experiments.store import Store
    from eamp.experiments.sweep import SweepError, failures, save, summary
    from eamp.experiments.sweep import sweep as run

    try:
        name, cells = load_recipe(options.recipe)
        store = Store(options.output, name, shared_storage(options))
        table = run(cells, store, options.workers, retry_failed=options.retry_failed)
    except (ValueError, SweepError) as error:
        return fail(error)
    for cell, reason in failures(cells, store):
        print(
            f"failed: {cell.data} {cell.name} depth {cell.depth} seed {cell.seed}: {reason}",
            file=sys.stderr,
        )
    if len(table):
        save(table, options.output)
        show(summary(table))
    print(f"{len(table)} of {len(cells)} cells are in {options.output / 'cells.csv'}")
    return 0 if len(table) == len(cells) else 1


@resumable
def tune(options: Namespace) -> int:
    """``eamp tune``."""
    from rich import print as show

    from eamp.experiments import tune
    from eamp.experiments.cell import Cell
    from eamp.experiments.store import Store
    from eamp.experiments.worker_pool import SweepError

    own = ("search", "trials", "seeds", "prune", "study", "output", "storage", "workers")
    settings = {name: value for name, value in options.as_dict().items() if name not in own}
    try:
        search = tune.Search(
            Cell(**settings), options.search or tune.DEFAULT_SPACE, options.seeds, options.prune
        )
        name = options.study or f"{options.model} on {options.data}, depth {options.depth}"
        store = Store(options.output, name, shared_storage(options))
        trials = tune.tune(search, store, options.trials, options.workers)
    except (ValueError, SweepError) as error:
        return fail(error)
    for reason in tune.failures(store):
        print(f"failed: {reason}", file=sys.stderr)
    if not trials:
        return fail("no trial has finished.")
    best, recipe = tune.best_cell(trials), options.output / "best.yaml"
    tune.save_recipe(best, options.seeds, recipe)
    tune.save_trials(store, table := options.output / "trials.csv")
    show(tune.best_table(trials, tune.importances(store)))
    print(f"{tune.counted(store)} All of them: {table}")
    print(
        f"The best again: {tune.train_command(best, options.seeds)}\nAs a recipe for `eamp sweep`: {recipe}"
    )
    return 0


@resumable
def work(options: Namespace) -> int:
    """``eamp work``."""
    from eamp.experiments.database import StoreError
    from eamp.experiments.store import Store
    from eamp.experiments.sweep import run_cell
    from eamp.experiments.tune import Search, run_try
    from eamp.experiments.worker import end_with_parent
    from eamp.experiments.worker import work as run

    if options.with_parent is not None:
        end_with_parent(options.with_parent)
    try:
        store = Store.existing(options.output, options.study, shared_storage(options))
        run(
            store,
            run_cell if Search.kept_in(store) is None else run_try,
            announce=lambda line: print(line, flush=True),
        )
    except StoreError as error:
        return fail(error)
    return 0


def shared_storage(options: Namespace) -> str | None:
    """The address of a database, from the command line or, where nobody can read it there, from the environment."""
    return options.storage or os.environ.get("EAMP_STORAGE")


def bench(options: Namespace) -> int:
    """``eamp bench``."""
    from benchmarks.report import run

    run(options.output, quick=options.quick)
    return 0


def cite(options: Namespace) -> int:
    """``eamp cite``."""
    from eamp.report.citations import cite

    try:
        print(cite(*options.names))
    except ValueError as error:
        return fail(error)
    return 0


def data(options: Namespace) -> int:
    """``eamp data``."""
    from eamp.data import DataError, available, check, get

    if options.action == "list":
        print("\n".join(map(str, available())))
        return 0
    names = options.names or [entry.name for entry in available() if entry.cached is not None]
    try:
        if options.action == "get":
            for name in names:
                print(get(name, folder=options.folder))
            return 0
        results = [check(name) for name in names]
    except DataError as error:
        return fail(error)
    print("\n".join(map(str, results)))
    return 0 if all(result.ok for result in results) else 1


def diagnose(options: Namespace) -> int:
    """``eamp diagnose``."""
    from eamp.diagnostics import report
    from eamp.experiments.cell import Cell, load_graph

    settings = options.as_dict()
    output = settings.pop("output")
    try:
        graph, model = load_graph(options.data), Cell(**settings).build()
        report(model, (graph.x, graph.edge_index), folder=output)
    except ValueError as error:
        return fail(error)
    return 0


def fail(message: object) -> int:
    """Say what went wrong on standard error."""
    print(f"eamp: {message}", file=sys.stderr)
    return 2
