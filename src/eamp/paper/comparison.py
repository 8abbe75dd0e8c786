"""Compare trained networks with the paper's numbers, and variants with the models they vary."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from eamp.experiments.network_names import NETWORK
from eamp.paper.naming import READINGS, is_variant, sorted_by, without_variants
from eamp.paper.published import table_1
from eamp.report.colours import family
from eamp.report.number_format import format_mean

TOLERANCE = 0.06  # a mean further than this from the paper's number is marked


def summarised(cells: pd.DataFrame, *, variants: bool = False) -> pd.DataFrame:
    """Return a row per dataset, model and depth, with or without the variants of models.

    Its columns are the number of ``seeds``; mean and sample standard deviation of both readings;
    the ``published`` number; ``difference``, our mean minus it; and ``far``, whether the difference
    exceeds the tolerance. Values that do not exist, as a deviation of one seed, are missing.
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
    """Compare variants with their parents, over the ``seeds`` that both have.

    A row per dataset, variant and depth holds, for both readings, the means of variant and parent,
    and mean and sample standard deviation of the change.
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
