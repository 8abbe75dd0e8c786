"""The paper, rerun: energies of untrained networks, its table, and what its shortcuts cost, in a folder that can be gone on with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

import pandas as pd

from eamp.data import DataError, load
from eamp.experiments.cell import Cell
from eamp.experiments.recipe import load_recipe
from eamp.experiments.store import Store
from eamp.experiments.sweep import layer_energies, sweep
from eamp.paper.energy_by_depth import DEPTHS, NETWORKS, energy_by_depth, thresholds

Part = Literal["figures", "table", "variants"]
PARTS: tuple[Part, ...] = ("figures", "table", "variants")
RECIPES = {"table": "table_1", "variants": "variants"}

STAND_IN = "csbm"  # for a quick look where no dataset can be had


@dataclass
class Reproduction:
    """What was found, as tables, and what a reader must be told.

    Attributes:
        depth_energies: Figure 2, see :func:`~eamp.paper.energy_by_depth.energy_by_depth`.
        thresholds: of λ, see :func:`~eamp.paper.energy_by_depth.thresholds`.
        cells: Table 1 and its variants, a row per trained network.
        layer_energies: Figure 3, a row per layer of each.
        notices: what is not as one would expect.
    """

    depth_energies: pd.DataFrame | None = None
    thresholds: pd.DataFrame | None = None
    cells: pd.DataFrame = field(default_factory=pd.DataFrame)
    layer_energies: pd.DataFrame = field(default_factory=pd.DataFrame)
    notices: list[str] = field(default_factory=list)


def reproduce(
    folder: Path,
    *,
    quick: bool = False,
    seeds: int = 1,
    workers: int = 2,
    only: Sequence[Part] = (),
    say: Callable[[str], None] = print,
) -> Reproduction:
    """Run what is not in ``folder`` yet. More seeds later cost only the new ones.

    Args:
        folder: for the runs and what they found.
        quick: one dataset, three depths, one seed: minutes instead of hours.
        seeds: of the table and the figures.
        workers: processes that train.
        only: some of ``"figures"`` (untrained networks), ``"table"`` and ``"variants"``; all when left out.
        say: told what is going on.
    """
    parts = tuple(only) or (("figures", "table") if quick else PARTS)
    found = Reproduction()
    if quick:
        seeds = 1
    if "figures" in parts:
        say("Energies of untrained networks, to a thousand layers")
        measure_untrained(found, folder / "untrained", quick, seeds)
    names = dict.fromkeys(
        "quick" if quick else RECIPES[part] for part in parts if part != "figures"
    )
    cells = [cell for name in names for cell in recipe(name, seeds)]
    if cells:
        if quick:
            cells = with_data_in_reach(cells, found.notices, say)
        cells.sort(
            key=lambda cell: (cell.seed, -cell.depth)
        )  # the longest first, so that workers end together
        say(
            f"Training {len(cells)} networks with {workers} workers; interrupt as you like, the same command goes on"
        )
        found.cells = sweep(cells, Store(folder / "runs", "reproduction"), workers)
        found.layer_energies = layer_energies(found.cells)
        if len(found.cells) < len(cells):
            found.notices.append(
                f"{len(cells) - len(found.cells)} of {len(cells)} networks are missing: their training failed."
            )
    return found


def recipe(name: str, seeds: int) -> list[Cell]:
    """The cells of a recipe that comes with eamp, for so many seeds."""
    with as_file(files("eamp.paper") / "recipes" / f"{name}.yaml") as path:
        _, cells = load_recipe(path)
    return [replace(cell, seed=seed) for seed in range(seeds) for cell in cells if cell.seed == 0]


def with_data_in_reach(
    cells: list[Cell], notices: list[str], say: Callable[[str], None]
) -> list[Cell]:
    """The same cells, on a graph made from a seed where a dataset cannot be had."""
    reached: dict[str, str] = {}
    for name in dict.fromkeys(cell.data for cell in cells):
        reached[name] = name
        try:
            load(name)
        except DataError as error:
            reached[name] = STAND_IN
            notices.append(
                f"{name} could not be had, so everything trained here was trained on `{STAND_IN}`, a random graph with communities. "
                f"Its accuracies say nothing about {name}. What was tried: {error}"
            )
            say(f"NOTICE: {notices[-1]}")
    return [replace(cell, data=reached[cell.data]) for cell in cells]


def measure_untrained(found: Reproduction, folder: Path, quick: bool, seeds: int) -> None:
    """Figure 2 and the thresholds, a file per network, so that an interrupted run goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    depths = (1, 10, 100, 1000) if quick else DEPTHS
    kind = "quick" if quick else f"{seeds}_seeds"
    found.depth_energies = pd.concat(
        kept(folder / f"{kind}_{number}.csv", partial(energy_by_depth, [network], depths, seeds))
        for number, network in enumerate(NETWORKS)
    )
    found.thresholds = kept(
        folder / f"{kind}_thresholds.csv",
        lambda: thresholds((256,) if quick else (64, 128, 256, 512)),
    )


def kept(file: Path, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """A table from its file, or made and put there."""
    if not file.exists():
        unfinished = file.with_suffix(".part")
        make().to_csv(unfinished, index=False)
        unfinished.replace(file)
    return pd.read_csv(file)
