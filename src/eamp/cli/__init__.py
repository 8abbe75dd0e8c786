"""The command line: ``eamp reproduce · train · sweep · work · tune · diagnose · report · bench · data · cite``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from jsonargparse import ArgumentParser, Namespace

import eamp
from eamp.cli import commands


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit status."""
    options = build().parse_args(arguments)
    run: Callable[[Namespace], int] = getattr(commands, options.subcommand)  # by its own name
    return run(options[options.subcommand])


def build() -> ArgumentParser:
    """The parser of all commands."""
    parser = ArgumentParser(
        prog="eamp",
        description="Entropy-aware message passing in graph neural networks.",
        version=eamp.__version__,
    )
    subcommands = parser.add_subcommands()

    def command(name: str, about: str) -> ArgumentParser:
        sub = ArgumentParser(description=about)
        subcommands.add_subcommand(name, sub, help=about)
        return sub

    sub = command("reproduce", "Rerun the paper, figure by figure, and end with a page to look at.")
    sub.add_argument(
        "--output",
        type=Path,
        default=Path("out"),
        help="a folder for the runs, tables, figures and the page",
    )
    sub.add_argument(
        "--quick", action="store_true", help="Cora, three depths, one seed: a few minutes"
    )
    sub.add_argument(
        "--seeds",
        type=int,
        default=1,
        help="of the table and the figures; more later cost only the new ones",
    )
    sub.add_argument(
        "--workers", type=int, default=2, help="processes, among which the cores are shared"
    )
    sub.add_argument(
        "--only",
        nargs="*",
        default=[],
        choices=["figures", "table", "variants"],
        help="parts; all when left out",
    )

    sub = command(
        "report", "Write the page, figures and tables of a reproduction anew from what it saved."
    )
    sub.add_argument("folder", type=Path, help="the output folder of `eamp reproduce`")

    sub = command("bench", "Time the entropy step beside what one would use instead, in one run.")
    sub.add_argument(
        "--output", type=Path | None, default=None, help="write the figures to this JSON file, too"
    )
    sub.add_argument("--quick", action="store_true", help="small graphs only, a few seconds")

    sub = command("cite", "Print the BibTeX of what you used.")
    sub.add_argument("names", nargs="*", help="models or keys; the paper behind eamp comes always")

    sub = command("data", "List, fetch or check datasets.")
    sub.add_argument("action", choices=["list", "get", "check"])
    sub.add_argument("names", nargs="*", help="datasets; all of the fetched ones when left out")
    sub.add_argument(
        "--folder", type=Path | None, default=None, help="a folder that holds the raw files"
    )

    sub = command(
        "sweep",
        "Run every cell of a recipe, on several processes; interrupt it as you like, it goes on.",
    )
    sub.add_argument(
        "recipe", type=Path, help="a YAML file: datasets, models, depths, seeds, protocol"
    )
    add_store(sub)
    sub.add_argument(
        "--workers", type=int, default=2, help="processes, among which the cores are shared"
    )
    sub.add_argument("--retry_failed", action="store_true", help="try once more what failed")

    sub = command(
        "tune",
        "Search for good settings of a model on a dataset, by validation accuracy; interrupt it as you like.",
    )
    add_model(sub, depth=4)
    add_protocol(sub)
    sub.add_argument(
        "--search",
        type=dict[str, Any] | None,
        default=None,
        help='what to search, as in {"entropy.weight": {"low": 0.1, "high": 30, "log": true}, "dropout": [0, 0.5]}; '
        "weight and temperature of the entropy step and the learning rate when left out",
    )
    sub.add_argument(
        "--trials",
        type=int,
        default=50,
        help="how many settings to try in all; those of earlier calls count",
    )
    sub.add_argument(
        "--seeds",
        type=int,
        default=1,
        help="a setting's value is the mean over seeds seed, seed + 1, ...",
    )
    sub.add_argument(
        "--prune",
        type=bool,
        default=True,
        help="stop settings that are worse than the median of those before",
    )
    sub.add_argument(
        "--study",
        default=None,
        type=str | None,
        help="a name for the search; made of model, dataset and depth if left out",
    )
    add_store(sub, Path("out/tune"))
    sub.add_argument(
        "--workers", type=int, default=2, help="processes, among which the cores are shared"
    )

    sub = command(
        "work", "Help a sweep or a search, here or on another machine, until nothing is left to do."
    )
    sub.add_argument(
        "--study",
        default=None,
        type=str | None,
        help="the name of the recipe; may be left out where there is only one",
    )
    add_store(sub)
    sub.add_argument(
        "--with_parent",
        type=int | None,
        default=None,
        help="end when the process of this number, which started it, ends",
    )

    sub = command(
        "train",
        "Train a model on a dataset over several seeds, and say how accurate it is under which protocol.",
    )
    add_model(sub, depth=4)
    add_protocol(sub)
    sub.add_argument("--seeds", type=int, default=1, help="train with seeds seed, seed + 1, ...")
    sub.add_argument(
        "--output",
        type=Path | None,
        default=None,
        help="a folder for checkpoints, to go on from, and results",
    )
    sub.add_argument(
        "--partition",
        type=Literal["metis"] | None,
        default=None,
        help="how to spread the graph over the processes of torchrun, as in `torchrun --nproc-per-node 4 -m eamp train --partition metis`",
    )
    sub.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        help="seconds after which a process gives up waiting for the others",
    )

    sub = command(
        "diagnose",
        "Build a model, run it once on a dataset, and say what its layers do to the embedding.",
    )
    add_model(sub, depth=64)
    sub.add_argument(
        "--output",
        type=Path | None,
        default=None,
        help="save words, table and charts in this folder",
    )
    return parser


def add_store(parser: ArgumentParser, folder: Path = Path("out/runs")) -> None:
    """The options that say where runs are kept."""
    parser.add_argument(
        "--output",
        type=Path,
        default=folder,
        help="a folder for the store, its artifacts and its tables",
    )
    parser.add_argument(
        "--storage",
        type=str | None,
        default=None,
        help="a database that many machines share, as in postgresql://...; the environment variable EAMP_STORAGE does the same",
    )


def add_model(parser: ArgumentParser, depth: int) -> None:
    """The options that choose a model and a graph."""
    parser.add_argument(
        "--model", default="gcn", help="gcn, entropic-gcn, pairnorm, g2, gcnii, ..."
    )
    parser.add_argument("--data", default="csbm", help="a dataset, as in `eamp data list`")
    parser.add_argument(
        "--depth",
        type=int,
        default=depth,
        help="number of hidden layers; most models have an output layer on top",
    )
    parser.add_argument("--width", type=int, default=64, help="hidden channels")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument(
        "--entropy",
        type=dict[str, Any] | None,
        default=None,
        help='the entropy step, as in {"weight": 10, "temperature": 1}',
    )
    parser.add_argument(
        "--options",
        type=dict[str, Any] | None,
        default=None,
        help='what else the model takes, as in {"theta": 0.5}',
    )
    parser.add_argument("--seed", type=int, default=0)


def add_protocol(parser: ArgumentParser) -> None:
    """The options that say how to train."""
    parser.add_argument(
        "--protocol",
        choices=["paper", "standard"],
        default="standard",
        help="how to train and which epoch counts",
    )
    parser.add_argument(
        "--changes",
        type=dict[str, Any] | None,
        default=None,
        help='changes to the protocol, as in {"conv_decay": 0.01}',
    )
    parser.add_argument(
        "--normalize_features",
        action="store_true",
        help="divide every node's features by their sum",
    )


if __name__ == "__main__":
    sys.exit(main())
