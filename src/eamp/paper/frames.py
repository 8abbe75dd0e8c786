"""The four data frames of a reproduction: their columns, their checks and their CSV files."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path

import pandas as pd

from eamp.experiments.cell import Cell

# Columns of a cell that hold text and JSON, read from the annotations of its fields.
TEXT_COLUMNS = tuple(field.name for field in fields(Cell) if field.type == "str")
JSON_COLUMNS = tuple(field.name for field in fields(Cell) if str(field.type).startswith("dict"))

# A column that `cells` lacks has the default of the field, as in a recipe: files that were written
# before the field existed stay readable. The default of the name is empty, so it must be given.
DEFAULTS = {
    field.name: field.default for field in fields(Cell) if field.default not in (MISSING, "")
}
NETWORK = ["data", "name", "depth"]  # identifies a trained network up to its seed

COLUMNS = {
    "cells": (
        *(field.name for field in fields(Cell)),
        # Columns that `eamp.experiments.sweep` adds.
        "best_val_accuracy",
        "test_accuracy",
        "epochs",
        "seconds",
        "threads",
    ),
    "layer_energies": ("name", "data", "depth", "seed", "layer", "energy"),
    "depth_energies": ("network", "depth", "seed", "energy"),
    "thresholds": ("graph", "degree", "width", "predicted", "measured"),
}
# In these columns, "None" and "NA" are names like any other.
WORDS = {*TEXT_COLUMNS, *JSON_COLUMNS, "network", "graph"}


@dataclass(frozen=True)
class Frames:
    """The measurements of a run; a frame is empty if its part was not run.

    Attributes:
        cells: A row per trained network: the fields of :class:`~eamp.experiments.cell.Cell`,
            ``best_val_accuracy``, ``test_accuracy``, ``epochs``, ``seconds`` and ``threads``.
        layer_energies: A row per layer of every trained network.
        depth_energies: A row per untrained network, depth and seed.
        thresholds: A row per graph and width.
    """

    cells: pd.DataFrame
    layer_energies: pd.DataFrame
    depth_energies: pd.DataFrame
    thresholds: pd.DataFrame


def save_frames(folder: Path, **frames: pd.DataFrame | None) -> None:
    """Write every frame to a CSV file; the file of a missing frame has only its header."""
    for which, columns in COLUMNS.items():
        frame = frames[which]
        empty = frame is None or frame.columns.empty
        saved = pd.DataFrame(columns=list(columns)) if empty else flat(frame)
        saved.to_csv(folder / f"{which}.csv", index=False, lineterminator="\n")


def load_frames(folder: Path) -> Frames:
    """Read and check what :func:`save_frames` wrote."""
    files = {which: folder / f"{which}.csv" for which in COLUMNS}
    return Frames(
        **{
            which: checked(read_frame(file) if file.exists() else None, which)
            for which, file in files.items()
        }
    )


def flat(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame in a form that CSV can hold: mappings as JSON, and no columns of lists."""

    def holds(column: str, kind: type) -> bool:
        return bool(frame[column].map(lambda value: isinstance(value, kind)).any())

    kept = frame[[column for column in frame.columns if not holds(column, list)]]
    mappings = [column for column in kept.columns if holds(column, dict)]
    to_json = partial(json.dumps, sort_keys=True)
    return kept.assign(**{column: kept[column].map(to_json) for column in mappings})


def read_frame(path: Path) -> pd.DataFrame:
    """Read a CSV file; every number is exactly the one that was written."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    numbers = [column for column in frame.columns if column not in WORDS]
    return frame.assign(**{column: parsed(list(frame[column])) for column in numbers})


def parsed(texts: list[str]) -> list[int] | list[float] | list[str]:
    """Parse a column as integers, else as floats, else leave it as text."""
    for kind in (int, float):
        try:
            return [kind(text or "nan") for text in texts]
        except ValueError:
            continue
    return texts


def checked(frame: pd.DataFrame | None, which: str) -> pd.DataFrame:
    """Return the frame with all its columns; a missing frame becomes an empty one.

    Raises:
        ValueError: If columns are missing, or if cells that differ would be averaged.
    """
    columns = COLUMNS[which]
    if frame is None or frame.columns.empty:
        return pd.DataFrame(columns=list(columns))
    if which == "cells":
        missing = {name: value for name, value in DEFAULTS.items() if name not in frame.columns}
        frame = frame.assign(**missing)
    if absent := [column for column in columns if column not in frame.columns]:
        raise ValueError(
            f"{which} has no column {', '.join(absent)}; it needs {', '.join(columns)}. "
            "Pass the frame that `eamp.paper.reproduce.reproduce` returned, or add the column."
        )
    if which == "cells":
        check_cells(frame)
    if which == "depth_energies":  # use one name per model in all frames
        frame = frame.assign(network=frame["network"].replace({"GCN": "Basic GCN"}))
    return frame.reset_index(drop=True)


def check_cells(cells: pd.DataFrame) -> None:
    """Raise an error if networks of one name and depth differ in more than their seeds."""
    for field in fields(Cell):
        if field.name in (*NETWORK, "seed"):
            continue
        number = cells.assign(**{field.name: cells[field.name].astype(str)})
        number = number.groupby(NETWORK)[field.name].nunique()
        if (number > 1).any():
            data, name, depth = number.idxmax()
            raise ValueError(
                f"{name} with {depth} layers on {data} was run with several values of "
                f"{field.name}; give them different names."
            )
    if (twice := cells.duplicated([*NETWORK, "seed"])).any():
        row = cells[twice].iloc[0]
        raise ValueError(
            f"{row['name']} with {row['depth']} layers on {row['data']} is there twice with seed "
            f"{row['seed']}; keep one of the two rows."
        )
