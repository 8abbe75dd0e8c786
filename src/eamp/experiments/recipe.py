"""Recipes: YAML files that describe experiments as lists of cells."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from eamp.experiments.cell import Cell
from eamp.experiments.schema import DEFAULTS, KINDS, LISTED

COUNTED = {"seeds": "seed", "splits": "split"}  # `seeds: 3` is short for `seed: [0, 1, 2]`

# The Python types that a field of a given type accepts, and how an error names them.
ACCEPTED: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a string"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
    dict[str, Any] | None: ((dict, type(None)), "a mapping, as in {weight: 3, temperature: 1}"),
}


class RecipeError(ValueError):
    """A recipe that cannot be read."""


def load_recipe(path: Path) -> tuple[str, list[Cell]]:
    """Return the name of a recipe and its cells, in the order in which they are trained.

    A recipe is a YAML mapping with a list of ``runs``. The keys of a run are the fields of a
    :class:`~eamp.experiments.cell.Cell`; keys beside ``runs`` are defaults for all runs. ``data``,
    ``depth``, ``seed`` and ``split`` may be lists; a run has a cell for every combination of their
    values. ``seeds: 3`` is short for ``seed: [0, 1, 2]``, and ``splits: 10`` for the first ten
    splits of the data::

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
    runs = content.get("runs") if isinstance(content, dict) else None
    if not isinstance(runs, list) or not runs:
        raise RecipeError(
            f"{path} must be a mapping with a list of `runs`, as in `runs: [{{model: gcn}}]`."
        )
    common = {key: value for key, value in content.items() if key not in ("runs", "name")}
    return str(content.get("name", path.stem)), cells_of(common, runs, source=str(path))


def cells_of(
    common: dict[str, Any], runs: list[dict[str, Any]], source: str = "the recipe"
) -> list[Cell]:
    """Return the cells of all runs, sorted by seed and split, without exact duplicates.

    Cells that differ in name alone are all kept: a sweep trains one and shows a row for each.
    """
    cells: dict[tuple[str, str], Cell] = {}
    for number, run in enumerate(runs, start=1):
        place = f"run {number} of {source}"
        if not isinstance(run, dict):
            raise RecipeError(f"{place} must be a mapping, as in {{model: gcn}}, but is {run!r}.")
        # A run's own `seed` replaces a common `seeds`, and the other way round.
        replaced = {name for pair in COUNTED.items() if run.keys() & set(pair) for name in pair}
        inherited = {key: value for key, value in common.items() if key not in replaced}
        try:
            cells |= {(cell.key, cell.name): cell for cell in expand({**inherited, **run})}
        except (TypeError, ValueError) as error:
            raise RecipeError(f"{place}: {error}") from error
    return sorted(cells.values(), key=lambda cell: (cell.seed, cell.split))


def expand(settings: dict[str, Any]) -> list[Cell]:
    """Return the cells of one run, one for every combination of the values in its lists."""
    settings = {**settings}
    for count, one in COUNTED.items():
        if count not in settings:
            continue
        if one in settings:
            raise ValueError(f"`{count}` says how many and `{one}` says which; give one of them.")
        if type(number := settings.pop(count)) is not int or number < 1:
            raise ValueError(
                f"`{count}` must be a whole number of at least 1, but is {number!r}; "
                f"for a list of them write `{one}: [0, 1, 2]`."
            )
        settings[one] = list(range(number))
    if unknown := sorted(set(settings) - set(KINDS)):
        raise ValueError(
            f"there is no setting {', '.join(unknown)}; there are {', '.join([*KINDS, *COUNTED])}."
        )
    if missing := [name for name in KINDS if name not in DEFAULTS and name not in settings]:
        raise ValueError(f"{', '.join(missing)} must be given.")
    lists = {name: settings[name] for name in LISTED if isinstance(settings.get(name), list)}
    if empty := [name for name, values in lists.items() if not values]:
        raise ValueError(f"{', '.join(empty)} is an empty list.")
    combinations = [
        {**settings, **dict(zip(lists, values, strict=True))} for values in product(*lists.values())
    ]
    for combination in combinations:
        for name, value in combination.items():
            check_type(name, value)
    return [Cell(**combination) for combination in combinations]


def check_type(name: str, value: Any) -> None:
    """Raise an error for a value of the wrong type here, before every worker meets it."""
    accepted, expected = ACCEPTED[KINDS[name]]
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        listed = ", or a list of them" if name in LISTED else ""
        raise ValueError(f"`{name}` must be {expected}{listed}, but is {value!r}.")


class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml comes without types
    """A YAML loader that reads 1e-3 as a number, as YAML 1.2 does; PyYAML wants 1.0e-3."""


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)
