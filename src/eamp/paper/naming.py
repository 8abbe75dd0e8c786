"""Names of readings, datasets, models and variants, and their order in the report."""

from collections.abc import Iterable

import pandas as pd

from eamp.paper.published import MODELS
from eamp.report.colours import family

# Two accuracies are read from every training. Every column, axis and sentence uses these words.
PAPER_READING = "highest validation accuracy"
TEST_READING = "test accuracy at lowest validation loss"
READINGS = {"best_val_accuracy": PAPER_READING, "test_accuracy": TEST_READING}

TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "csbm": "csbm (synthetic)"}


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
