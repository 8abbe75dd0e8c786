"""Compare trained networks with the paper's numbers, and variants with the models they vary."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from eamp.paper.frames import NETWORK
from eamp.paper.published import MODELS, table_1
from eamp.report.colours import family
from eamp.report.number_format import format_mean

TOLERANCE = 0.06  # a mean further than this from the paper's number is marked

# Two accuracies are read from every training. Every column, axis and sentence uses these words.
PAPER_READING = "highest validation accuracy"
TEST_READING = "test accuracy at lowest validation loss"
READINGS = {"best_val_accuracy": PAPER_READING, "test_accuracy": TEST_READING}

TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "csbm": "csbm (synthetic)"}


def summarised(cells: pd.DataFrame, *, variants: bool = False) -> pd.DataFrame:
    """Return a row per dataset, model and depth, with or without the variants of models.

    Its columns are the number of ``seeds``; for both readings the mean over the seeds and the
    sample standard deviation, which is missing for one seed; the ``published`` number, if there is
    one; ``difference``, our mean minus the published number; and ``far``, whether the difference
    exceeds the tolerance.
    """
    cells = cells if variants else without_variants(cells)
    spread: dict[str, tuple[str, str]] = {"seeds": ("seed", "nunique")}
    for reading in READINGS:
        spread |= {reading: (reading, "mean"), f"{reading}_deviation": (reading, "std")}
    means = cells.groupby(NETWORK, as_index=False, sort=False).agg(**spread)
    joined = means.merge(table_1(), on=NETWORK, how="left")
    joined["difference"] = joined["best_val_accuracy"] - joined["published"]
    # The margin is for rounding: a difference of exactly .06 is not further than .06.
    joined["far"] = joined["difference"].abs() > TOLERANCE + 1e-9
    return sorted_by(joined, NETWORK)


def paired(cells: pd.DataFrame) -> pd.DataFrame:
    """Compare variants with their parents, seed by seed.

    Returns:
        A row per dataset, variant and depth, over the ``seeds`` that variant and ``parent`` share:
        for both readings the means of variant and parent, and mean and sample standard deviation
        of the change.
    """
    parents = without_variants(cells).rename(columns={"name": "parent"})
    variants = cells[cells["name"].map(is_variant).astype(bool)]
    variants = variants.assign(parent=variants["name"].map(family))
    keys = ["data", "parent", "depth", "seed"]
    both = variants.merge(parents, on=keys, suffixes=("", "_parent"))
    changes: dict[str, tuple[str, str]] = {"seeds": ("seed", "nunique")}
    for reading in READINGS:
        parent, change = f"{reading}_parent", f"{reading}_change"
        both[change] = both[reading] - both[parent]
        changes |= {column: (column, "mean") for column in (reading, parent, change)}
        changes[f"{change}_deviation"] = (change, "std")
    groups = both.groupby(["data", "parent", "name", "depth"], as_index=False, sort=False)
    return groups.agg(**changes)


def mean_text(row: Mapping[str, Any], reading: str) -> str:
    """Format mean and deviation of one reading of a row of :func:`summarised`."""
    return format_mean(row[reading], row[f"{reading}_deviation"])


def sorted_by(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Sort by these columns: datasets and models in the paper's order, depths ascending."""
    orders = {"name": in_order(frame["name"]), "data": data_order(frame["data"])}
    keys = {column: frame[column].map(order.index) for column, order in orders.items()}
    keys["depth"] = frame["depth"]
    return frame.loc[pd.DataFrame(keys).sort_values(columns).index].reset_index(drop=True)


def is_variant(name: str) -> bool:
    """Return whether the name is that of a variant: a model, a comma and the change."""
    return "," in name


def without_variants(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of models under their own names."""
    return frame[~frame["name"].map(is_variant).astype(bool)]


def in_order(names: Iterable[str]) -> list[str]:
    """Order names: the paper's models, then the others as they came, each before its variants."""
    met = list(dict.fromkeys(names))
    parents = list(dict.fromkeys([*MODELS, *map(family, met)]))
    return sorted(met, key=lambda name: (parents.index(family(name)), is_variant(name)))


def data_order(data: Iterable[str]) -> list[str]:
    """Order datasets as in :data:`TITLES`, then the others as they came."""
    met = list(dict.fromkeys(data))
    return sorted(met, key=[*TITLES, *met].index)


def title(data: str) -> str:
    """Return the usual spelling of a dataset's name."""
    return TITLES.get(data, data)
