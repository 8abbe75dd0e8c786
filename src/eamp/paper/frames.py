"""The five data frames of a reproduction: their columns, their checks and their CSV files."""

import io
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from pathlib import Path

import pandas as pd

from eamp.experiments.cell import Cell
from eamp.experiments.csv_text import unescaped, write_csv
from eamp.experiments.network_names import NETWORK, clash_of
from eamp.experiments.schema import JSON_COLUMNS, TEXT_COLUMNS

# In these columns, "None" and "NA" are names like any other.
WORDS = {*TEXT_COLUMNS, *JSON_COLUMNS, "network", "graph"}

# A column that `cells` lacks has the default of the field, as in a recipe: `sweep` leaves out those
# of split and task where they say nothing. The default of the name is empty, so it must be given.
DEFAULTS = {f.name: f.default for f in fields(Cell) if f.default not in (MISSING, "")}
SETTINGS = [f.name for f in fields(Cell)]
# Columns that `eamp.experiments.sweep` adds to a cell and that the report shows.
MEASURED = ("best_val_accuracy", "test_accuracy", "epochs", "seconds", "threads")

COLUMNS = {
    "cells": (*(f.name for f in fields(Cell)), *MEASURED),
    "deep_cells": (*(f.name for f in fields(Cell)), *MEASURED),
    "layer_energies": ("name", "data", "depth", "seed", "layer", "energy"),
    "depth_energies": ("network", "depth", "seed", "energy"),
    "thresholds": ("graph", "degree", "width", "predicted", "measured"),
}


NUMBERS = {name for names in COLUMNS.values() for name in names} - WORDS - {"normalize_features"}


class DamagedFileError(ValueError):
    """A file of a reproduction that is cut off or otherwise unreadable."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged: {reason}. Delete it and run the same `eamp reproduce` again; what "
            "has been trained is kept."
        )


@dataclass(frozen=True)
class Frames:
    """The measurements of a run, in the columns of :data:`COLUMNS`; empty if a part was not run.

    Attributes:
        cells: Table 1 and its variants, a row per trained network. A name with a comma is a
            variant of the model before the comma.
        deep_cells: The opening chart of accuracy against depth, a row per trained network.
        layer_energies: Figure 3, a row per layer of every trained network.
        depth_energies: Figure 2, a row per untrained network.
        thresholds: Thresholds of λ, a row per graph and width.
    """

    cells: pd.DataFrame = field(default_factory=pd.DataFrame)
    deep_cells: pd.DataFrame = field(default_factory=pd.DataFrame)
    layer_energies: pd.DataFrame = field(default_factory=pd.DataFrame)
    depth_energies: pd.DataFrame = field(default_factory=pd.DataFrame)
    thresholds: pd.DataFrame = field(default_factory=pd.DataFrame)


def save_frames(folder: Path, frames: Frames) -> None:
    """Write every frame to a CSV file; the file of a missing frame has only its header."""
    for which, columns in COLUMNS.items():
        frame = getattr(frames, which)
        if not isinstance(frame, pd.DataFrame):
            raise TypeError(f"{which} must be a pandas DataFrame, but is a {type(frame).__name__}.")
        saved = pd.DataFrame(columns=list(columns)) if frame.columns.empty else flat(frame)
        write_csv(saved, folder / f"{which}.csv")


def load_frames(folder: Path, rows: Mapping[str, int] | None = None) -> Frames:
    """Read and check what :func:`save_frames` wrote.

    Args:
        folder: The folder of the CSV files.
        rows: The number of rows that were written to each file, where it is known.

    Raises:
        DamagedFileError: If a file is cut off or otherwise unreadable, or has lost rows.
    """
    files = {which: folder / f"{which}.csv" for which in COLUMNS}
    found = {which: read_frame(file) if file.exists() else None for which, file in files.items()}
    for which, frame in found.items():
        written, here = (rows or {}).get(which, 0), 0 if frame is None else len(frame)
        if here < written:
            raise DamagedFileError(files[which], f"it has {here} rows of the {written} written")
    return Frames(**{which: checked(frame, which) for which, frame in found.items()})


def flat(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame in a form that CSV can hold: mappings as JSON, and no columns of lists."""
    types = {column: set(frame[column].map(type)) for column in frame.columns}
    kept = frame[[column for column in frame.columns if list not in types[column]]]
    mappings = [column for column in kept.columns if dict in types[column]]
    to_json = partial(json.dumps, sort_keys=True)
    return kept.assign(**{column: kept[column].map(to_json) for column in mappings})


def read_frame(path: Path) -> pd.DataFrame:
    """Read a CSV file; every number and text is exactly the one that was written."""
    try:
        text = path.read_bytes().decode("utf-8")
        frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    except ValueError as error:  # of pandas, or of a file that is not UTF-8
        raise DamagedFileError(path, str(error).strip()) from error
    short = frame.isna().any(axis=1)  # an empty cell is an empty text
    if short.any() or not text.endswith("\n"):
        line = int(short.argmax()) + 2 if short.any() else text.count("\n") + 1
        raise DamagedFileError(path, f"line {line} is cut off")
    frame = frame.map(unescaped).rename(columns=unescaped)
    numbers = [column for column in frame.columns if column not in WORDS]
    return frame.assign(**{column: parsed(frame[column]) for column in numbers})


def parsed(texts: Iterable[str]) -> list[int] | list[float] | list[str]:
    """Parse integers, else floats as Python does, which pandas 2 rounds differently, else text."""
    for kind in (int, float):
        with suppress(ValueError):
            return [kind(text or "nan") for text in texts]
    return list(texts)


def checked(frame: pd.DataFrame | None, which: str) -> pd.DataFrame:
    """Return the frame with all its columns, or raise an error; a missing frame becomes empty."""
    columns = COLUMNS[which]
    if frame is None or frame.columns.empty:
        return pd.DataFrame(columns=list(columns))
    trained = which in ("cells", "deep_cells")
    defaults = DEFAULTS if trained else {}
    frame = frame.assign(**{name: defaults[name] for name in defaults if name not in frame.columns})
    if absent := [column for column in columns if column not in frame.columns]:
        raise ValueError(
            f"{which} has no column {', '.join(absent)}; it needs {', '.join(columns)}. "
            "Pass the frame that `eamp.paper.reproduce.reproduce` returned, or add the column."
        )
    for column in NUMBERS & set(columns):
        if len(frame) and not pd.api.types.is_numeric_dtype(frame[column]):
            wrong = next(value for value in frame[column] if not is_number(value))
            raise ValueError(f"{column} of {which} must hold numbers, but holds {wrong!r}.")
    if trained:
        check_cells(frame)
    return frame.reset_index(drop=True)


def is_number(value: object) -> bool:
    """Return whether a value of a column is a number, or a text that Python reads as one."""
    with suppress(ValueError, TypeError):
        float(value)  # type: ignore[arg-type]  # the column may hold anything
        return True
    return False


def check_cells(cells: pd.DataFrame) -> None:
    """Raise an error if networks of one name and depth differ in more than their seeds."""
    settings = cells[SETTINGS].map(str).to_dict("records")
    if (clash := clash_of(settings, repeated=["seed"])) is not None:
        data, name, depth = clash.network
        raise ValueError(
            f"{name} with {depth} layers on {data} was run with several values of "
            f"{', '.join(clash.settings)}; give them different names."
        )
    if (twice := cells.duplicated([*NETWORK, "seed"])).any():
        row = cells[twice].iloc[0]
        raise ValueError(
            f"{row['name']} with {row['depth']} layers on {row['data']} is there twice with seed "
            f"{row['seed']}; keep one of the two rows."
        )
