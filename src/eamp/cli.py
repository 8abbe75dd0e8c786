"""The command line: ``eamp reproduce · train · sweep · work · tune · diagnose · report · bench · data · cite``."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from jsonargparse import ArgumentParser, Namespace

import eamp

Runner = Callable[[Namespace], int]


def resumable(command: Runner) -> Runner:
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
            return fail(f"the store was lost: {lost}. What has been trained is safe; start this again when the store is back.")

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit status."""
    parser, runners = build()
    options = parser.parse_args(arguments)
    return runners[options.subcommand](options[options.subcommand])


def build() -> tuple[ArgumentParser, dict[str, Runner]]:
    """The parser, and what each command runs. Nothing heavy is imported before its command is chosen."""
    parser = ArgumentParser(prog="eamp", description="Entropy-aware message passing in graph neural networks.", version=eamp.__version__)
    commands = parser.add_subcommands()
    runners: dict[str, Runner] = {}

    def command(name: str, run: Runner, about: str) -> ArgumentParser:
        sub = ArgumentParser(description=about)
        commands.add_subcommand(name, sub, help=about)
        runners[name] = run
        return sub

    sub = command("reproduce", reproduce, "Rerun the paper, figure by figure, and end with a page to look at.")
    sub.add_argument("--output", type=Path, default=Path("out"), help="a folder for the runs, tables, figures and the page")
    sub.add_argument("--quick", action="store_true", help="Cora, three depths, one seed: a few minutes")
    sub.add_argument("--seeds", type=int, default=1, help="of the table and the figures; more later cost only the new ones")
    sub.add_argument("--workers", type=int, default=2, help="processes, among which the cores are shared")
    sub.add_argument("--only", nargs="*", default=[], choices=["figures", "table", "variants"], help="parts; all when left out")

    sub = command("report", report, "Write the page, figures and tables of a reproduction anew from what it saved.")
    sub.add_argument("folder", type=Path, help="the output folder of `eamp reproduce`")

    sub = command("bench", bench, "Time the entropy step beside what one would use instead, in one run.")
    sub.add_argument("--output", type=Path | None, default=None, help="write the figures to this JSON file, too")
    sub.add_argument("--quick", action="store_true", help="small graphs only, a few seconds")

    sub = command("cite", cite, "Print the BibTeX of what you used.")
    sub.add_argument("names", nargs="*", help="models or keys; the paper behind eamp comes always")

    sub = command("data", data, "List, fetch or check datasets.")
    sub.add_argument("action", choices=["list", "get", "check"])
    sub.add_argument("names", nargs="*", help="datasets; all of the fetched ones when left out")
    sub.add_argument("--folder", type=Path | None, default=None, help="a folder that holds the raw files")

    sub = command("sweep", sweep, "Run every cell of a recipe, on several processes; interrupt it as you like, it goes on.")
    sub.add_argument("recipe", type=Path, help="a YAML file: datasets, models, depths, seeds, protocol")
    add_store(sub)
    sub.add_argument("--workers", type=int, default=2, help="processes, among which the cores are shared")
    sub.add_argument("--retry_failed", action="store_true", help="try once more what failed")

    sub = command("tune", tune, "Search for good settings of a model on a dataset, by validation accuracy; interrupt it as you like.")
    add_model(sub, depth=4)
    add_protocol(sub)
    sub.add_argument(
        "--search",
        type=dict[str, Any] | None,
        default=None,
        help='what to search, as in {"entropy.weight": {"low": 0.1, "high": 30, "log": true}, "dropout": [0, 0.5]}; '
        "weight and temperature of the entropy step and the learning rate when left out",
    )
    sub.add_argument("--trials", type=int, default=50, help="how many settings to try in all; those of earlier calls count")
    sub.add_argument("--seeds", type=int, default=1, help="a setting's value is the mean over seeds seed, seed + 1, ...")
    sub.add_argument("--prune", type=bool, default=True, help="stop settings that are worse than the median of those before")
    sub.add_argument("--study", default=None, type=str | None, help="a name for the search; made of model, dataset and depth if left out")
    add_store(sub, Path("out/tune"))
    sub.add_argument("--workers", type=int, default=2, help="processes, among which the cores are shared")

    sub = command("work", work, "Help a sweep or a search, here or on another machine, until nothing is left to do.")
    sub.add_argument("--study", default=None, type=str | None, help="the name of the recipe; may be left out where there is only one")
    add_store(sub)
    sub.add_argument("--with_parent", type=int | None, default=None, help="end when the process of this number, which started it, ends")

    sub = command("train", train, "Train a model on a dataset over several seeds, and say how accurate it is under which protocol.")
    add_model(sub, depth=4)
    add_protocol(sub)
    sub.add_argument("--seeds", type=int, default=1, help="train with seeds seed, seed + 1, ...")
    sub.add_argument("--output", type=Path | None, default=None, help="a folder for checkpoints, to go on from, and results")
    sub.add_argument(
        "--partition",
        type=Literal["metis"] | None,
        default=None,
        help="how to spread the graph over the processes of torchrun, as in `torchrun --nproc-per-node 4 -m eamp train --partition metis`",
    )
    sub.add_argument("--timeout", type=float, default=600.0, help="seconds after which a process gives up waiting for the others")

    sub = command("diagnose", diagnose, "Build a model, run it once on a dataset, and say what its layers do to the embedding.")
    add_model(sub, depth=64)
    sub.add_argument("--output", type=Path | None, default=None, help="save words, table and charts in this folder")
    return parser, runners


def add_store(parser: ArgumentParser, folder: Path = Path("out/runs")) -> None:
    """The options that say where runs are kept."""
    parser.add_argument("--output", type=Path, default=folder, help="a folder for the store, its artifacts and its tables")
    parser.add_argument(
        "--storage",
        type=str | None,
        default=None,
        help="a database that many machines share, as in postgresql://...; the environment variable EAMP_STORAGE does the same",
    )


def add_model(parser: ArgumentParser, depth: int) -> None:
    """The options that choose a model and a graph."""
    parser.add_argument("--model", default="gcn", help="gcn, entropic-gcn, pairnorm, g2, gcnii, ...")
    parser.add_argument("--data", default="csbm", help="a dataset, as in `eamp data list`")
    parser.add_argument("--depth", type=int, default=depth, help="number of hidden layers; most models have an output layer on top")
    parser.add_argument("--width", type=int, default=64, help="hidden channels")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument(
        "--entropy", type=dict[str, Any] | None, default=None, help='the entropy step, as in {"weight": 10, "temperature": 1}'
    )
    parser.add_argument("--options", type=dict[str, Any] | None, default=None, help='what else the model takes, as in {"theta": 0.5}')
    parser.add_argument("--seed", type=int, default=0)


def add_protocol(parser: ArgumentParser) -> None:
    """The options that say how to train."""
    parser.add_argument("--protocol", choices=["paper", "standard"], default="standard", help="how to train and which epoch counts")
    parser.add_argument("--changes", type=dict[str, Any] | None, default=None, help='changes to the protocol, as in {"conv_decay": 0.01}')
    parser.add_argument("--normalize_features", action="store_true", help="divide every node's features by their sum")


def train(options: Namespace) -> int:
    """``eamp train``."""
    from eamp.distributed.exchange import PeerError
    from eamp.distributed.peers import under_torchrun
    from eamp.experiments.cell import Cell
    from eamp.experiments.repeated import repeated, summary

    settings = options.as_dict()
    seeds, output, partition, timeout = (settings.pop(name) for name in ("seeds", "output", "partition", "timeout"))
    try:
        with under_torchrun(partition, timeout) as peers:
            results = repeated(cell := Cell(**settings), seeds, output, progress=True, peers=peers)
    except (ValueError, PeerError) as error:  # of a name, an option or the data: what came, what was expected; or of a process that is gone
        return fail(error)
    if peers.leads:
        print(summary(results, cell))
    return 0


@resumable
def reproduce(options: Namespace) -> int:
    """``eamp reproduce``."""
    from rich import print as show

    from eamp.data import DataError
    from eamp.experiments.reproduce import reproduce as run
    from eamp.experiments.sweep import SweepError, summary
    from eamp.report import write_report

    said = ["eamp reproduce", "--quick" if options.quick else f"--seeds {options.seeds}"]
    if options.only:
        said.append(f"--only {' '.join(options.only)}")
    try:
        found = run(options.output, quick=options.quick, seeds=options.seeds, workers=options.workers, only=options.only)
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
    from eamp.report import from_folder

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
        print(f"failed: {cell.data} {cell.name} depth {cell.depth} seed {cell.seed}: {reason}", file=sys.stderr)
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
    from eamp.experiments.crew import SweepError
    from eamp.experiments.store import Store

    own = ("search", "trials", "seeds", "prune", "study", "output", "storage", "workers")
    settings = {name: value for name, value in options.as_dict().items() if name not in own}
    try:
        search = tune.Search(Cell(**settings), options.search or tune.DEFAULT_SPACE, options.seeds, options.prune)
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
    print(f"The best again: {tune.train_command(best, options.seeds)}\nAs a recipe for `eamp sweep`: {recipe}")
    return 0


@resumable
def work(options: Namespace) -> int:
    """``eamp work``."""
    from eamp.experiments.storage import StoreError
    from eamp.experiments.store import Store
    from eamp.experiments.sweep import run_cell
    from eamp.experiments.tune import Search, run_try
    from eamp.experiments.worker import end_with_parent
    from eamp.experiments.worker import work as run

    if options.with_parent is not None:
        end_with_parent(options.with_parent)
    try:
        store = Store.existing(options.output, options.study, shared_storage(options))
        run(store, run_cell if Search.kept_in(store) is None else run_try, announce=lambda line: print(line, flush=True))
    except StoreError as error:
        return fail(error)
    return 0


def shared_storage(options: Namespace) -> str | None:
    """The address of a database, from the command line or, where nobody can read it there, from the environment."""
    return options.storage or os.environ.get("EAMP_STORAGE")


def bench(options: Namespace) -> int:
    """``eamp bench``."""
    from eamp.benchmarks.report import run

    run(options.output, quick=options.quick)
    return 0


def cite(options: Namespace) -> int:
    """``eamp cite``."""
    from eamp.citations import cite

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


if __name__ == "__main__":
    sys.exit(main())
