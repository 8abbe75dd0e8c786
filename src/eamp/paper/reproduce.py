"""Run the experiments: accuracy against depth, untrained energies, Table 1, and its variants."""

import json
from collections.abc import Callable, Iterable, Sequence
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
from eamp.files import check_writable
from eamp.paper.cache import cached
from eamp.paper.energy_by_depth import DEPTHS, GRID, NETWORKS, OUTPUTS, Network, energy_by_depth
from eamp.paper.frames import Frames
from eamp.paper.published import WIDTH
from eamp.paper.threshold import SETTING, WIDTHS, threshold, threshold_graphs

Part = Literal["depth", "figures", "table", "variants"]
PARTS: tuple[Part, ...] = ("depth", "figures", "table", "variants")
RECIPES = {"table": "table_1", "variants": "variants"}
# Seeds of the chart of accuracy against depth, at least: its bands need several.
DEPTH_SEEDS, QUICK_DEPTH_SEEDS = 3, 2
QUICK_DEPTHS = (1, 10, 100, 1000)
QUICK_NETWORKS = 6  # the paper's models and GCNII
STAND_IN = "csbm"  # generated data for a quick run without a dataset


@dataclass(frozen=True)
class Reproduction(Frames):
    """The measurements of a reproduction, and ``notices`` for the top of its report."""

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
    """Run the experiments that ``folder`` does not hold yet; more seeds cost only the new ones.

    Args:
        folder: Folder of runs and measurements.
        quick: Take one dataset and a few cells of the table, which takes minutes instead of hours.
        seeds: Number of seeds; the chart of accuracy against depth has three at least, and two
            in a quick run.
        workers: Number of processes that train.
        only: Some of ``"depth"`` (accuracy against depth), ``"figures"`` (untrained networks),
            ``"table"`` and ``"variants"``; default all of them, or the first three of a quick run.
        say: Called with messages on the progress.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be a whole number of at least 1, but is {seeds!r}.")
    if unknown := [part for part in only if part not in PARTS]:
        raise ValueError(f"only must name some of {', '.join(PARTS)}, but names {unknown[0]!r}.")
    check_writable(folder)
    parts = tuple(only) or (PARTS[:3] if quick else PARTS)
    found: dict[str, pd.DataFrame] = {}
    notices: list[str] = []
    if quick:
        seeds = 1
    if "figures" in parts:
        say("Energies of untrained networks, to a thousand layers")
        untrained, depths = folder / "untrained", QUICK_DEPTHS if quick else DEPTHS
        networks = NETWORKS[:QUICK_NETWORKS] if quick else NETWORKS
        found["depth_energies"] = measure_energies(untrained, networks, depths, seeds)
        found["thresholds"] = measure_thresholds(untrained, (WIDTH,) if quick else WIDTHS)

    def train(cells: list[Cell], what: str) -> pd.DataFrame:
        if quick:
            cells = with_available_data(cells, notices, say)
        # Deep networks train longest; they come first, so that the workers finish together.
        cells.sort(key=lambda cell: (-cell.depth, cell.seed))
        number = len(cells)
        say(
            f"{what}: training {number} networks with {workers} workers; "
            "you may interrupt this, and the same command will continue it"
        )
        table = sweep(cells, Store(folder / "runs", "reproduction"), workers)
        if failed := number - len(table):
            notices.append(f"{failed} of {number} networks are missing: their training failed.")
        return table

    if "depth" in parts:
        cells = recipe("depth", max(seeds, QUICK_DEPTH_SEEDS if quick else DEPTH_SEEDS))
        order = list(dict.fromkeys(cell.name for cell in cells))
        table = train(cells, "Accuracy against depth")
        found["deep_cells"] = in_recipe_order(table, order)
    trained = (part for part in parts if part in RECIPES)
    names = dict.fromkeys("quick" if quick else RECIPES[part] for part in trained)
    if names:
        table = train([cell for name in names for cell in recipe(name, seeds)], "The paper's table")
        found |= {"cells": table, "layer_energies": layer_energies(table)}
    return Reproduction(**found, notices=list(dict.fromkeys(notices)))


def in_recipe_order(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return the rows by name in the order of the recipe, then by depth and seed."""
    if table.empty:
        return table
    place = table["name"].map(names.index)
    return table.assign(place=place).sort_values(["place", "depth", "seed"]).drop(columns="place")


def recipe(name: str, seeds: int) -> list[Cell]:
    """Return the cells of a shipped recipe for the first ``seeds`` seeds."""
    with as_file(files("eamp.paper") / "recipes" / f"{name}.yaml") as path:
        _, cells = load_recipe(path)
    return [replace(cell, seed=seed) for seed in range(seeds) for cell in cells if cell.seed == 0]


def with_available_data(
    cells: list[Cell], notices: list[str], say: Callable[[str], None]
) -> list[Cell]:
    """Return the cells with generated data in place of each dataset that cannot be loaded."""
    available: dict[str, str] = {}
    for name in dict.fromkeys(cell.data for cell in cells):
        available[name] = name
        try:
            load(name)
        except DataError as error:
            available[name] = STAND_IN
            notices.append(
                f"{name} could not be loaded, so everything trained here was trained on "
                f"`{STAND_IN}`, a random graph with communities. "
                f"Its accuracies say nothing about {name}. What was tried: {error}"
            )
            say(f"NOTICE: {notices[-1]}")
    return [replace(cell, data=available[cell.data]) for cell in cells]


def measure_energies(
    folder: Path, networks: Sequence[Network], depths: Sequence[int], seeds: int
) -> pd.DataFrame:
    """Return the ``depth_energies`` of some networks, with a file per network and seed."""
    frames = []
    for network in networks:
        what = {"model": network.model, "options": network.options, "outputs": OUTPUTS}
        what |= {"depths": list(depths), "width": WIDTH, "grid": GRID}
        options = json.dumps(network.options, sort_keys=True)
        of_seeds = [
            cached(
                folder,
                f"{network.model} {options} seed {seed}",
                {**what, "seed": seed},
                partial(energy_by_depth, network, seed, depths, WIDTH, GRID),
            )
            for seed in range(seeds)
        ]
        frames.append(pd.concat(of_seeds).sort_values(["depth", "seed"]))
        frames[-1]["network"] = network.label  # a file may have been written under another label
    return pd.concat(frames, ignore_index=True)


def measure_thresholds(folder: Path, widths: Iterable[int]) -> pd.DataFrame:
    """Return the ``thresholds`` on all graphs, with a file per graph and width."""
    frames = [
        cached(
            folder,
            f"threshold degree {graph.degree.mean():.1f} width {width}",
            {"edges": graph.edge_index.tolist(), "width": width, **SETTING},
            partial(threshold, name, graph, width),
        ).assign(graph=name)
        for name, graph in threshold_graphs().items()
        for width in widths
    ]
    return pd.concat(frames, ignore_index=True)
