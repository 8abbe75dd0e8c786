"""Recipes: experiments as data. What is a list is gone through, what is left out of a run is taken from the top."""

from __future__ import annotations

import re
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from eamp.experiments.cell import Cell

LISTED = (
    "seed",
    "data",
    "depth",
)  # may be lists; the first changes slowest, so that every network is there once before a second seed
FIELDS = tuple(field.name for field in fields(Cell))
KINDS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("model", "name", "protocol"), (str, "text")),
    "data": (str, "text, or a list of it"),
    **dict.fromkeys(("depth", "seed"), (int, "a whole number, or a list of them")),
    "width": (int, "a whole number"),
    "dropout": ((int, float), "a number"),
    **dict.fromkeys(
        ("entropy", "options", "changes"),
        ((dict, type(None)), "a mapping, as in {weight: 3, temperature: 1}"),
    ),
    "normalize_features": (bool, "true or false"),
}


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
        content = yaml.load(path.read_text(encoding="utf-8"), Loader)  # a SafeLoader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecipeError(f"{path} cannot be read as YAML: {error}") from error
    if (
        not isinstance(content, dict)
        or not isinstance(content.get("runs"), list)
        or not content["runs"]
    ):
        raise RecipeError(
            f"{path} must be a mapping with a list of `runs`, as in `runs: [{{model: gcn}}]`."
        )
    common = {key: value for key, value in content.items() if key not in ("runs", "name")}
    name = str(content.get("name", path.stem))
    return name, cells_of(common, content["runs"], source=str(path))


def cells_of(
    common: dict[str, Any], runs: list[dict[str, Any]], source: str = "the recipe"
) -> list[Cell]:
    """Every combination of every run; equal ones once."""
    cells: dict[str, Cell] = {}
    for number, run in enumerate(runs, start=1):
        place = f"run {number} of {source}"
        if not isinstance(run, dict):
            raise RecipeError(f"{place} must be a mapping, as in {{model: gcn}}, but is {run!r}.")
        try:
            # Seeds go by two names; what a run says in either is what counts for it.
            overruled = {"seed", "seeds"} if {"seed", "seeds"} & run.keys() else set()
            inherited = {key: value for key, value in common.items() if key not in overruled}
            cells |= {cell.key: cell for cell in expand({**inherited, **run})}
        except (TypeError, ValueError) as error:
            raise RecipeError(f"{place}: {error}") from error
    return sorted(cells.values(), key=lambda cell: cell.seed)


def expand(settings: dict[str, Any]) -> list[Cell]:
    """The cells of one run."""
    settings = dict(settings)
    if "seeds" in settings and "seed" in settings:
        raise ValueError("`seeds` says how many, `seed` which: one of them.")
    if "seeds" in settings:
        if not isinstance(number := settings.pop("seeds"), int) or number < 1:
            raise ValueError(
                f"`seeds` is how many there are, a number from 1 on, but is {number!r}; `seed` takes a list."
            )
        settings["seed"] = list(range(number))
    if unknown := sorted(set(settings) - set(FIELDS)):
        raise ValueError(
            f"nothing reads {', '.join(unknown)}; known are {', '.join([*FIELDS, 'seeds'])}."
        )
    if missing := [key for key in ("model", "data", "depth") if key not in settings]:
        raise ValueError(f"{', '.join(missing)} must be given.")
    choices = [
        value if isinstance(value := settings.get(key, 0), list) else [value] for key in LISTED
    ]
    if empty := [key for key, values in zip(LISTED, choices, strict=True) if not values]:
        raise ValueError(f"{', '.join(empty)} is an empty list.")
    combinations = [
        {**settings, **dict(zip(LISTED, combination, strict=True))}
        for combination in product(*choices)
    ]
    for name, value in (
        (name, value) for combination in combinations for name, value in combination.items()
    ):
        check_kind(name, value)
    return [Cell(**combination) for combination in combinations]


def check_kind(name: str, value: Any) -> None:
    """Whether a value is of its field's kind, so that a slip is found here and not by every worker."""
    kind, expected = KINDS[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"`{name}` must be {expected}, but is {value!r}.")


class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml comes without types
    """YAML, but 1e-3 is a number, as everywhere else."""


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)
