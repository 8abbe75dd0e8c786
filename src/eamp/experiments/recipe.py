"""Recipes: experiments as data. What is a list is gone through, what is left out of a run is taken from the top."""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from eamp.experiments.cell import Cell

LISTED = ("seed", "data", "depth")  # may be lists; the first changes slowest, so that every network is there once before a second seed
FIELDS = tuple(field.name for field in fields(Cell))


class RecipeError(ValueError):
    """A recipe that cannot be read."""


def load_recipe(path: Path) -> tuple[str, list[Cell]]:
    """The recipe's name and its cells, in the order they will be taken.

    A recipe is a YAML mapping with ``runs``, a list of mappings whose keys are those of a
    :class:`~eamp.experiments.cell.Cell`; the keys beside ``runs`` hold for all of them. ``data``, ``depth`` and ``seed`` may be
    lists, and ``seeds: 3`` is short for ``seed: [0, 1, 2]``::

        name: quick look
        protocol: standard
        data: [cora, citeseer]
        depth: [4, 16, 64]
        seeds: 3
        runs:
          - {model: gcn}
          - {model: entropic-gcn, entropy: {weight: 3, temperature: 1, detach: false}}
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise RecipeError(f"{path} cannot be read as YAML: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("runs"), list) or not content["runs"]:
        raise RecipeError(f"{path} must be a mapping with a list of `runs`, as in `runs: [{{model: gcn}}]`.")
    common = {key: value for key, value in content.items() if key not in ("runs", "name")}
    name = str(content.get("name", path.stem))
    return name, cells_of(common, content["runs"], source=str(path))


def cells_of(common: dict[str, Any], runs: list[dict[str, Any]], source: str = "the recipe") -> list[Cell]:
    """Every combination of every run; equal ones once."""
    cells: dict[str, Cell] = {}
    for number, run in enumerate(runs, start=1):
        place = f"run {number} of {source}"
        if not isinstance(run, dict):
            raise RecipeError(f"{place} must be a mapping, but is {run!r}.")
        for cell in expand({**common, **run}, place):
            cells.setdefault(cell.key, cell)
    return sorted(cells.values(), key=lambda cell: cell.seed)


def expand(settings: dict[str, Any], place: str) -> list[Cell]:
    """The cells of one run."""
    settings = dict(settings)
    if "seeds" in settings:
        settings["seed"] = list(range(int(settings.pop("seeds"))))
    if unknown := sorted(set(settings) - set(FIELDS)):
        raise RecipeError(f"{place} has {unknown}, which nothing reads; known are {', '.join([*FIELDS, 'seeds'])}.")
    if missing := [key for key in ("model", "data", "depth") if key not in settings]:
        raise RecipeError(f"{place} lacks {', '.join(missing)}.")
    choices = [value if isinstance(value := settings.get(key, 0), list) else [value] for key in LISTED]
    try:
        return [Cell(**{**settings, **dict(zip(LISTED, combination, strict=True))}) for combination in product(*choices)]
    except (TypeError, ValueError) as error:
        raise RecipeError(f"{place}: {error}") from error
