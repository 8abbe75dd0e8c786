"""Trained networks beside the paper's: means and sample deviations over seeds, joined with what was published."""

from __future__ import annotations

import json

import pandas as pd

from eamp.paper.published import MODELS, table_1
from eamp.report.colours import family

TOLERANCE = 0.06  # a cell further than this from the paper's number is marked

# What the two accuracies are; every column, axis and sentence uses these words.
PAPER_READING = "highest validation accuracy"
TEST_READING = "test accuracy at lowest validation loss"

READINGS = {"best_val_accuracy": PAPER_READING, "test_accuracy": TEST_READING}
CELL = ["data", "name", "depth"]

TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "csbm": "csbm (synthetic)"}

COLUMNS = {
    "cells": (
        "name",
        "data",
        "depth",
        "width",
        "seed",
        "protocol",
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


def checked(frame: pd.DataFrame | None, which: str) -> pd.DataFrame:
    """The frame, known to have its columns; an empty one with those columns where nothing was run."""
    columns = COLUMNS[which]
    if frame is None or (frame.empty and frame.columns.empty):
        return pd.DataFrame(columns=list(columns))
    if missing := [column for column in columns if column not in frame.columns]:
        raise ValueError(
            f"{which} has no column {', '.join(missing)}; it needs {', '.join(columns)}."
        )
    if which == "cells":
        check_cells(frame)
    if which == "depth_energies":
        frame = frame.assign(
            network=frame["network"].replace({"GCN": "Basic GCN"})
        )  # one name per model throughout
    return frame.reset_index(drop=True)


def flat(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as it can be saved: settings as JSON, and without curves, which have frames of their own."""
    kinds = {
        column: type(frame[column].dropna().iloc[0]) if frame[column].notna().any() else str
        for column in frame.columns
    }
    kept = frame[[column for column, kind in kinds.items() if kind is not list]]
    settings = [column for column in kept.columns if kinds[column] is dict]
    return kept.assign(
        **{
            column: kept[column].map(lambda value: json.dumps(value, sort_keys=True))
            for column in settings
        }
    )


def deepest(layer_energies: pd.DataFrame) -> pd.DataFrame:
    """The layers of the deepest networks of each dataset, which is where Figure 3 looks."""
    return layer_energies[
        layer_energies["depth"] == layer_energies.groupby("data")["depth"].transform("max")
    ]


def check_cells(cells: pd.DataFrame) -> None:
    """Nothing that was run differently may end up in one mean."""
    if (twice := cells.duplicated([*CELL, "seed"])).any():
        row = cells[twice].iloc[0]
        raise ValueError(
            f"{row['name']} with {row['depth']} layers on {row['data']} is there twice with seed {row['seed']}."
        )
    for column in ("width", "protocol"):
        number = cells.groupby(CELL)[column].nunique()
        if (number > 1).any():
            data, name, depth = number.idxmax()
            raise ValueError(
                f"{name} with {depth} layers on {data} was run with several values of {column}; give them different names."
            )


def summarised(cells: pd.DataFrame) -> pd.DataFrame:
    """A row per dataset, model and depth: ``seeds``, the published number if there is one, and mean and deviation of both readings.

    The deviation is the sample's, and missing where there is one seed. ``difference`` is ours less the paper's, in its own reading.
    """
    spread: dict[str, tuple[str, str]] = {"seeds": ("seed", "nunique")}
    for reading in READINGS:
        spread |= {reading: (reading, "mean"), f"{reading}_deviation": (reading, "std")}
    means = cells.groupby(CELL, as_index=False, sort=False).agg(**spread)
    joined = means.merge(table_1(), on=CELL, how="left")
    joined["difference"] = joined["best_val_accuracy"] - joined["published"]
    joined["far"] = (
        joined["difference"].abs() > TOLERANCE + 1e-9
    )  # two-digit decimals: .06 itself is not further
    joined["variant"] = [is_variant(name) for name in joined["name"]]
    return sorted_by(joined, CELL)


def sorted_by(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Rows in the order of the report: datasets and models in the paper's order, depths ascending."""
    names = {name: place for place, name in enumerate(in_order(frame["name"]))}
    datasets = {data: place for place, data in enumerate(data_order(frame["data"]))}
    keys = pd.DataFrame(
        {
            "name": frame["name"].map(names),
            "data": frame["data"].map(datasets),
            "depth": frame["depth"],
        }
    )
    return frame.loc[keys.sort_values(columns).index].reset_index(drop=True)


def is_variant(name: str) -> bool:
    """Whether the name is a model's with something after a comma."""
    return "," in name


def in_order(names: pd.Series) -> list[str]:
    """The paper's models in the paper's order, then the others as they came, variants behind their parents."""
    met = list(dict.fromkeys(names))
    parents = list(dict.fromkeys([*MODELS, *map(family, met)]))
    return sorted(met, key=lambda name: (parents.index(family(name)), is_variant(name)))


def data_order(data: pd.Series) -> list[str]:
    """Cora, CiteSeer, then the others as they came."""
    met = list(dict.fromkeys(data))
    return sorted(met, key=lambda name: list(TITLES).index(name) if name in TITLES else len(TITLES))


def title(data: str) -> str:
    """A dataset's name as one writes it."""
    return TITLES.get(data, data)


def paired(cells: pd.DataFrame) -> pd.DataFrame:
    """Variants less their parents, seed by seed: both readings' mean difference and its deviation over the seeds that both have."""
    cells = cells.assign(parent=cells["name"].map(family), variant=cells["name"].map(is_variant))
    parents = cells[~cells["variant"].astype(bool)].drop(columns=["parent", "variant"])
    keys = ["data", "parent", "depth", "seed"]
    both = cells[cells["variant"].astype(bool)].merge(
        parents.rename(columns={"name": "parent"}), on=keys, suffixes=("", "_parent")
    )
    for reading in READINGS:
        both[f"{reading}_change"] = both[reading] - both[f"{reading}_parent"]
    changes: dict[str, tuple[str, str]] = {"seeds": ("seed", "nunique")}
    for reading in READINGS:
        column = f"{reading}_change"
        changes |= {reading: (reading, "mean"), f"{reading}_parent": (f"{reading}_parent", "mean")}
        changes |= {column: (column, "mean"), f"{column}_deviation": (column, "std")}
    return both.groupby(["data", "parent", "name", "depth"], as_index=False, sort=False).agg(
        **changes
    )
