"""Recipes: YAML files that describe experiments as lists of cells."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from eamp.experiments.cell import Cell
from eamp.experiments.network_names import clash_of
from eamp.experiments.schema import DEFAULTS, KINDS, LISTED
from eamp.optional import extra
from eamp.spelling import did_you_mean

with extra("experiments"):
    import yaml

COUNTED = {"seeds": "seed", "splits": "split"}  # `seeds: 3` is short for `seed: [0, 1, 2]`

# Bounds that no recipe of use comes near: they stop a slip of the finger or a hostile file before
# it fills the memory.
MOST_CELLS = 1_000_000
MOST_VALUES = 1_000_000  # in a YAML file whose aliases are written out


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


def load_recipe(path: Path | str) -> tuple[str, list[Cell]]:
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
    if not isinstance(path, str | Path):
        raise TypeError(f"a recipe is read from the path of a YAML file, but got {path!r}.")
    path = Path(path)
    try:
        content = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())  # in one line
        raise RecipeError(f"{path} cannot be read as YAML: {reason}") from error
    runs = content.get("runs") if isinstance(content, dict) else None
    if not isinstance(runs, list) or not runs:
        raise RecipeError(
            f"{path} must be a mapping with a list of `runs`, as in `runs: [{{model: gcn}}]`."
        )
    common = {key: value for key, value in content.items() if key not in ("runs", "name")}
    return str(content.get("name") or path.stem), cells_of(common, runs, source=str(path))


def cells_of(
    common: dict[str, Any], runs: list[dict[str, Any]], source: str = "the recipe"
) -> list[Cell]:
    """Return the cells of all runs, sorted by seed and split, without exact duplicates.

    Cells that differ in name alone are all kept: a sweep trains one and shows a row for each.

    Raises:
        RecipeError: if a run cannot be read, or if two of one name have different settings.
    """
    cells: dict[tuple[str, str], Cell] = {}
    run_of: dict[tuple[str, str], int] = {}
    number_of_cells = 0
    for number, run in enumerate(runs, start=1):
        place = f"run {number} of {source}"
        if not isinstance(run, dict):
            raise RecipeError(f"{place} must be a mapping, as in {{model: gcn}}, but is {run!r}.")
        # A run's own `seed` replaces a common `seeds`, and the other way round.
        replaced = {name for pair in COUNTED.items() if run.keys() & set(pair) for name in pair}
        inherited = {key: value for key, value in common.items() if key not in replaced}
        try:
            settings, lists = checked({**inherited, **run})
            number_of_cells += prod(map(len, lists.values()))
            if number_of_cells > MOST_CELLS:
                raise ValueError(
                    f"up to here the recipe has {number_of_cells:,} cells, and at most "
                    f"{MOST_CELLS:,} are trained in one sweep; give it fewer {', '.join(lists)}."
                )
            found = {(cell.key, cell.name): cell for cell in expand(settings, lists)}
        except (TypeError, ValueError) as error:
            raise RecipeError(f"{place}: {error}") from error
        cells |= found
        run_of = dict.fromkeys(found, number) | run_of
    check_names(list(cells.values()), [run_of[key] for key in cells], source)
    return sorted(cells.values(), key=lambda cell: (cell.seed, cell.split))


def check_names(cells: list[Cell], runs: list[int], source: str) -> None:
    """Raise an error if two cells of one name would be averaged, but have different settings.

    Args:
        cells: all cells of a recipe.
        runs: the number of the run of every cell.
        source: the recipe, in words.
    """
    if (clash := clash_of(map(vars, cells))) is not None:
        data, name, depth = clash.network
        raise RecipeError(
            f"runs {runs[clash.first]} and {runs[clash.second]} of {source} are both called "
            f"{name!r} on {data} with depth {depth}, but differ in {', '.join(clash.settings)}; "
            "a table would show their mean. Give each a `name` of its own, as in "
            f"{{name: {name} A, model: {cells[clash.first].model}}}."
        )


def checked(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any] | range]]:
    """Return the settings of one run, and those of them that are lists, or raise an error."""
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
        settings[one] = range(number)
    if unknown := sorted(str(name) for name in settings if name not in KINDS):
        raise ValueError(
            f"there is no setting {', '.join(unknown)}; there are {', '.join([*KINDS, *COUNTED])}."
            f"{did_you_mean(unknown[0], [*KINDS, *COUNTED])}"
        )
    if missing := [name for name in KINDS if name not in DEFAULTS and name not in settings]:
        raise ValueError(f"{', '.join(missing)} must be given.")
    lists = {
        name: settings[name] for name in LISTED if isinstance(settings.get(name), list | range)
    }
    if empty := [name for name, values in lists.items() if not values]:
        raise ValueError(f"{', '.join(empty)} is an empty list.")
    for name, value in settings.items():
        if not isinstance(value, range):
            for each in lists.get(name, [value]):
                check_type(name, each)
    return settings, lists


def expand(settings: dict[str, Any], lists: dict[str, list[Any] | range]) -> Iterator[Cell]:
    """Yield the cells of one run, one for every combination of the values in its lists."""
    for values in product(*lists.values()):
        yield Cell(**{**settings, **dict(zip(lists, values, strict=True))})


def check_type(name: str, value: Any) -> None:
    """Raise an error for a value of the wrong type here, before every worker meets it."""
    accepted, expected = ACCEPTED[KINDS[name]]
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        listed = ", or a list of them" if name in LISTED else ""
        raise ValueError(f"`{name}` must be {expected}{listed}, but is {value!r}.")


class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml comes without types
    """A YAML loader that reads 1e-3 as a number, as YAML 1.2 does, and refuses a key given twice.

    PyYAML wants 1.0e-3, and keeps the last of two values without a word.
    """

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        """Compose a mapping, whose keys must differ."""
        node = super().compose_mapping_node(anchor)
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        if twice := [key for key, count in keys.items() if count > 1]:
            raise yaml.MarkedYAMLError(
                problem=f"`{twice[0]}` is there twice; keep one of them",
                problem_mark=node.start_mark,
            )
        return node


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read_yaml(text: str) -> Any:
    """Return the content of a YAML text, which is neither endless nor huge with its aliases."""
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if (number := count_values(node, {})) > MOST_VALUES:
            raise ValueError(
                f"with its aliases written out it has {number:,} values, and at most "
                f"{MOST_VALUES:,} are read; use fewer aliases (*name)."
            )
        return loader.construct_document(node)
    except RecursionError:
        raise ValueError(
            "it is nested too deeply, or an alias (*name) stands inside of its own anchor (&name); "
            "write the values out."
        ) from None
    finally:
        loader.dispose()


def count_values(node: yaml.Node, known: dict[yaml.Node, int]) -> int:
    """Return the number of values below a node; an alias counts as often as it is used."""
    if node not in known:
        parts = node.value if isinstance(node.value, list) else []
        nodes = [each for part in parts for each in (part if isinstance(part, tuple) else (part,))]
        known[node] = 1 + sum(count_values(each, known) for each in nodes)
    return known[node]
