"""The opening of the report: which networks stay accurate with depth, and what to do."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from eamp.paper.naming import TEST_READING, title
from eamp.paper.published import BASIC
from eamp.report.depth_chart import depth_chart
from eamp.report.figure import Figure
from eamp.report.means import means_of, means_table
from eamp.report.number_format import format_count, format_mean
from eamp.report.provenance import seeds_in_words
from eamp.report.table import Table

NEAR = 0.02  # accuracies that differ by less count as equal
KEY = "deep_networks"
# How `depth.yaml` trains; a test compares it with the recipe.
TRAINING = (
    "100 epochs, width 64, public split, row-normalised features, constant learning rates. "
    "Basic GCN, the paper's step (λ = 1, T = 10) and PairNorm: learning rate 1e-3, loss summed "
    "over the training nodes, neither decay nor dropout. "
    "Strong step: the same with λ of 2.4 times its threshold, T = 1, initial weights × 1.6, label "
    "smoothing .2, and a learning rate of 3e-4 from 16 layers on. "
    "Basic GCN, weights × 1.6: the network of the strong step without its step. "
    "Mirrored GCN: mirrored initial weights, label smoothing .2, and a learning rate of 3e-4 from "
    "8 layers on. "
    "GCNII and entropic-deep-gcn: learning rate .01, dropout .6, weight decay 5e-4, and .01 in the "
    "layers of GCNII. "
    "Seed 100 chose the learning rates, of more candidates for the strong step than for others."
)


def deep_networks(cells: pd.DataFrame) -> Figure | None:
    """Draw the test accuracy of all networks against depth."""
    if cells.empty:
        return None
    seeds = seeds_in_words(cells["seed"])
    caption = f"{TEST_READING.capitalize()}, mean over {seeds}. {TRAINING}"
    data = cells["data"].iloc[0]
    return depth_chart(
        means_of(cells),
        TEST_READING,
        key=KEY,
        title="Which networks stay accurate with depth?",
        caption=caption,
        titles={data: title(data)},
    )


def deep_networks_table(cells: pd.DataFrame) -> Table | None:
    """Return the numbers of the figure, a row per network and depth."""
    return None if cells.empty else means_table(cells, key=KEY)


def advice(cells: pd.DataFrame) -> str:
    """Return two sentences on the networks to choose, from the accuracies of this run.

    Example:
        >>> rows = {"data": "cora", "depth": [2, 64, 2, 64], "seed": 0}
        >>> rows |= {"name": ["Basic GCN", "Basic GCN", "GCNII", "GCNII"]}
        >>> rows |= {"test_accuracy": (read := [0.81, 0.2, 0.8, 0.84]), "best_val_accuracy": read}
        >>> advice(pd.DataFrame(rows))
        'With 64 layers, GCNII (.840) is the most accurate on Cora; Basic GCN has .200. Of all
        depths, validation chooses 64 layers of GCNII (.840), and for Basic GCN 2 layers (.810).'
    """
    if cells.empty:
        return ""
    means = means_of(cells).dropna(subset=["mean", "validation"])
    means = means[means["diverged"] == 0]
    depth, data = means["depth"].max(), title(cells["data"].iloc[0])
    deep = means[means["depth"] == depth].sort_values("mean", ascending=False, kind="stable")
    if deep.empty:
        return ""
    good = deep["mean"] > deep["mean"].max() - NEAR
    first = [f"{row['name']} ({text(row)})" for row in deep[good].to_dict("records")]
    verb = "is" if len(first) == 1 else "are"
    deepest = f"With {format_count(depth, 'layer')}, {listed(first)} {verb} the most accurate"
    deepest += f" on {data}{of_the_others(deep[~good].to_dict('records'))}."
    # Test nodes choose nothing: of all depths, take the network that validates best.
    chosen = means.loc[means["validation"].idxmax()].to_dict()
    overall = f"Of all depths, validation chooses {layers(chosen)} of {chosen['name']}"
    overall += f" ({text(chosen)})"
    plain = means[means["name"] == BASIC]
    if not plain.empty and chosen["name"] != BASIC:
        best = plain.loc[plain["validation"].idxmax()].to_dict()
        overall += f", and for {BASIC} {layers(best)} ({text(best)})"
    return f"{deepest} {overall}."


def of_the_others(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the accuracies of the other networks, from the highest to the lowest."""
    if len(rows) < 2:
        return "".join(f"; {row['name']} has {text(row)}" for row in rows)
    ends = (f"{text(row)} ({row['name']})" for row in (rows[0], rows[-1]))
    return f"; the others have {' to '.join(ends)}"


def listed(names: Sequence[str]) -> str:
    """Join names with commas, and the last with "and"."""
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def layers(row: Mapping[str, Any]) -> str:
    """Return the depth of a row in words."""
    return format_count(row["depth"], "layer")


def text(row: Mapping[str, Any]) -> str:
    """Return mean and deviation of a row of :func:`~eamp.report.means.means_of`."""
    return format_mean(row["mean"], row["deviation"])
