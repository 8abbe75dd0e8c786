"""Means and deviations of a sweep's results, and the sentence that sums them up."""

import pandas as pd

from eamp.experiments.sweep import readings_of
from eamp.report.number_format import format_count, format_mean
from eamp.report.table import Table
from eamp.training import METRICS

NETWORK = ["data", "name", "depth"]  # identifies a network up to its seed and split


def means_of(table: pd.DataFrame, by_split: bool = False) -> pd.DataFrame:
    """Return a row per dataset, network and depth, and per split on request.

    Args:
        table: rows of :func:`eamp.experiments.sweep.sweep` with one metric.
        by_split: keep the splits of the data apart.

    Returns:
        The number of ``runs``; ``mean`` and ``deviation`` of the test reading over them, the
        deviation of a single run being NaN; and ``validation``, the mean validation reading.

    Example:
        >>> rows = {"data": "cora", "name": "gcn", "depth": 2, "seed": [0, 1]}
        >>> rows |= {"best_val_accuracy": 0.8, "test_accuracy": [0.7, 0.9]}
        >>> means_of(pd.DataFrame(rows))[["name", "runs", "mean"]].values.tolist()
        [['gcn', 2, 0.8]]
    """
    validation, test = readings_of(table)
    keys = [*NETWORK, *(["split"] if by_split and "split" in table else [])]
    return table.groupby(keys, as_index=False, sort=False).agg(
        runs=("seed", "size"),
        mean=(test, "mean"),
        deviation=(test, "std"),
        validation=(validation, "mean"),
    )


def means_table(table: pd.DataFrame, by_split: bool = False, key: str = "means") -> Table:
    """Return the means of a sweep as a table for print."""
    means, (validation, test) = means_of(table, by_split), readings_of(table).values()
    place = means["data"].map(list(dict.fromkeys(means["data"])).index)
    means = means.loc[place.sort_values(kind="stable").index]  # one block per dataset
    labels = [column for column in ("data", "name", "depth", "split") if column in means]
    rows = tuple(
        (
            *(str(row[label]) for label in labels),
            str(row["runs"]),
            format_mean(row["validation"], float("nan")),
            format_mean(row["mean"], row["deviation"]),
        )
        for row in means.to_dict("records")
    )
    heads = ("network" if label == "name" else label for label in labels)
    caption = f"Mean {validation}, and mean ± sample standard deviation of the {test}."
    return Table(key, caption, (*heads, "runs", validation, test), rows, means, len(labels))


def takeaway(table: pd.DataFrame) -> list[str]:
    """Return a sentence per dataset: the network that validation chooses, and its test reading.

    Test nodes choose nothing, so the network is not always the one with the highest test reading.

    Example:
        >>> rows = {"data": "cora", "name": ["a", "b"], "depth": [2, 4], "seed": 0}
        >>> rows |= {"best_val_accuracy": [0.8, 0.7], "test_accuracy": [0.75, 0.76]}
        >>> takeaway(pd.DataFrame(rows))[0]
        'On cora, the validation nodes choose a with 2 layers: test accuracy at lowest validation
        loss .750 (1 run). The next is b with 4 layers: .760 (1 run).'
    """
    means, (_, test) = means_of(table), readings_of(table).values()
    metric = METRICS[metric_name(table)]
    sentences = []
    for data, part in means.groupby("data", sort=False):
        order = part["validation"].map(metric.merit).sort_values(ascending=False, kind="stable")
        chosen, *others = part.loc[order.index].to_dict("records")
        sentence = f"On {data}, the validation nodes choose {in_words(chosen, f': {test}')}."
        if others := [row for row in others if row["name"] != chosen["name"]]:
            sentence += f" The next is {in_words(others[0], ':')}."
        sentences.append(sentence)
    return sentences


def in_words(row: dict[str, object], between: str) -> str:
    """Return network, depth, mean and number of runs of a row of :func:`means_of`."""
    depth, runs = format_count(int(str(row["depth"])), "layer"), int(str(row["runs"]))
    mean = format_mean(float(str(row["mean"])), float(str(row["deviation"])))
    return f"{row['name']} with {depth}{between} {mean} ({format_count(runs, 'run')})"


def metric_name(table: pd.DataFrame) -> str:
    """Return the metric of a table whose rows have one."""
    if "metric" not in table or pd.isna(name := table["metric"].iloc[0]):
        return "accuracy"
    return str(name)
