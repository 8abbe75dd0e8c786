"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import ArgumentParser, Namespace
from jsonargparse.typing import PositiveInt

from eamp.experiments import schema
from eamp.experiments.schema import DEFAULTS, HELP, KINDS
from eamp.report.citations import KEYS_OF_MODELS

if TYPE_CHECKING:
    from eamp.experiments.cell import Cell

DATA = "csbm"  # unless --data says otherwise


def add_cell(parser: ArgumentParser, depth: int, without: tuple[str, ...] = ()) -> None:
    """Add an option for every setting of a cell, except for its name and those in ``without``."""
    defaults = {**DEFAULTS, "model": "gcn", "data": DATA, "depth": depth}
    for name, kind in KINDS.items():
        if kind is bool and name not in without:
            parser.add_argument(f"--{name}", action="store_true", help=HELP.get(name))
        elif name not in ("name", *without):
            parser.add_argument(f"--{name}", type=kind, default=defaults[name], help=HELP.get(name))


def check_model(options: Namespace) -> None:
    """Raise an error for a misspelt model at once; torch takes seconds to import."""
    # The keys of citations are the names of the models, as a test checks.
    schema.check_model(options.model, KEYS_OF_MODELS)


def cell_from(options: Namespace) -> Cell:
    """Return the cell that the options describe."""
    from eamp.experiments.cell import Cell  # heavy: imported when the command runs

    given: dict[str, Any] = options.as_dict()
    return Cell(**{name: given[name] for name in KINDS if name in given})


def add_store(parser: ArgumentParser, folder: str | None = "out/runs") -> None:
    """Add the options that say where runs are kept; without a folder, the recipe's name says it."""
    what = "folder of the store, its artifacts and its tables"
    if folder is None:
        what += "; by default out/ with the name of the recipe"
        parser.add_argument("--output", type=Path | None, help=what)
    else:
        parser.add_argument("--output", type=Path, default=Path(folder), help=what)
    parser.add_argument(
        "--storage",
        type=str | None,
        help="a database that many machines share, as in postgresql://...; "
        "the environment variable EAMP_STORAGE does the same",
    )


def shared_storage(options: Namespace) -> str | None:
    """Return the address of a shared database; other users cannot read it in the environment."""
    return options.storage or os.environ.get("EAMP_STORAGE")


def add_workers(parser: ArgumentParser) -> None:
    """Add the option for the number of worker processes."""
    parser.add_argument(
        "--workers", type=PositiveInt, default=2, help="processes, which share the cores"
    )
