"""Means and deviations of a sweep's results, and the sentence that sums them up."""

import math

import pandas as pd

from eamp.experiments.network_names import NETWORK
from eamp.experiments.sweep import further_metrics, metric_of, readings_of
from eamp.report.number_format import format_count, format_mean, format_value
from eamp.report.table import MARK, Table
from eamp.training import METRICS


def means_of(table: pd.DataFrame, by_split: bool = False) -> pd.DataFrame:
    """Return a row per dataset, network and depth, and per split on request.

    Args:
        table: rows of :func:`eamp.experiments.sweep.sweep` with one metric.
        by_split: keep the splits of the data apart.

    Returns:
        The number of ``runs``; ``mean`` and ``deviation`` of the test reading over them, the
        deviation of a single run being NaN; ``validation``, the mean validation reading; means of
        further metrics, such as ``test_rmse``; ``diverged``, the number of runs whose training
        diverged; and ``value``, mean and deviation as text.

    Example:
        >>> rows = {"data": "cora", "name": "gcn", "depth": 2, "seed": [0, 1]}
        >>> rows |= {"best_val_accuracy": 0.8, "test_accuracy": [0.7, 0.9]}
        >>> means_of(pd.DataFrame(rows))[["name", "runs", "mean"]].values.tolist()
        [['gcn', 2, 0.8]]
    """
    validation, test = readings_of(table)
    if "diverged" not in table:
        table = table.assign(diverged=math.nan)
    keys = [*NETWORK, *(["split"] if by_split and "split" in table else [])]
    means = table.groupby(keys, as_index=False, sort=False).agg(
        runs=("seed", "size"),
        mean=(test, "mean"),
        deviation=(test, "std"),
        validation=(validation, "mean"),
        diverged=("diverged", "count"),
        **{column: (column, "mean") for column in further_metrics(table)},
    )
    written = format_mean if METRICS[metric_of(table)].percent else format_value
    pairs = zip(means["mean"], means["deviation"], strict=True)
    return means.assign(value=[written(*pair) for pair in pairs])


def means_table(table: pd.DataFrame, by_split: bool = False, key: str = "means") -> Table:
    """Return the means of a sweep as a table for print."""
    means, (validation, test) = means_of(table, by_split), readings_of(table).values()
    place = means["data"].map(list(dict.fromkeys(means["data"])).index)
    means = means.loc[place.sort_values(kind="stable").index]  # one block per dataset
    labels = [column for column in ("data", "name", "depth", "split") if column in means]
    metric, further = METRICS[metric_of(table)], further_metrics(table)
    written = format_mean if metric.percent else format_value
    rows = []
    for row in means.to_dict("records"):
        values = (written(row["validation"]), row["value"], *(written(row[it]) for it in further))
        marked = (f"{value}{MARK}" if row["diverged"] else value for value in values)
        rows.append((*(str(row[label]) for label in labels), str(row["runs"]), *marked))
    heads = ("network" if label == "name" else label for label in labels)
    caption = f"Mean {validation}, and mean ± sample standard deviation of the {test}."
    if metric is not METRICS["accuracy"]:
        caption += f" {metric.described}."
    others = (f"test {METRICS[name].words}" for name in further.values())
    columns = (*heads, "runs", validation, test, *others)
    raw, note = means.drop(columns="value"), f"{MARK} Training diverged."
    if not raw["diverged"].any():
        raw, note = raw.drop(columns="diverged"), ""
    return Table(key, caption, columns, tuple(rows), raw, len(labels), note)


def takeaway(table: pd.DataFrame) -> list[str]:
    """Return a sentence per dataset: the network that validation chooses, and its test reading.

    Tests choose nothing, so the network is not always the one with the highest test reading. No
    network whose training diverged is chosen.

    Example:
        >>> rows = {"data": "cora", "name": ["a", "b"], "depth": [2, 4], "seed": 0}
        >>> rows |= {"best_val_accuracy": [0.8, 0.7], "test_accuracy": [0.75, 0.76]}
        >>> takeaway(pd.DataFrame(rows))[0]
        'On cora, the validation nodes choose a with 2 layers: test accuracy at lowest validation
        loss .750 (1 run). The next is b with 4 layers: .760 (1 run).'
    """
    means, (_, test) = means_of(table), readings_of(table).values()
    metric, rows = METRICS[metric_of(table)], rows_of(table)
    sentences = []
    for data, part in means.groupby("data", sort=False):
        part = part[part["diverged"] == 0]
        if part.empty:
            sentences.append(f"On {data}, the training of every network diverged.")
            continue
        order = part["validation"].map(metric.merit).sort_values(ascending=False, kind="stable")
        chosen, *others = part.loc[order.index].to_dict("records")
        sentence = f"On {data}, the validation {rows} choose {in_words(chosen, f': {test}')}."
        if others := [row for row in others if row["name"] != chosen["name"]]:
            sentence += f" The next is {in_words(others[0], ':')}."
        sentences.append(sentence)
    return sentences


def in_words(row: dict[str, object], between: str) -> str:
    """Return network, depth, mean and number of runs of a row of :func:`means_of`."""
    depth, runs = format_count(int(str(row["depth"])), "layer"), int(str(row["runs"]))
    return f"{row['name']} with {depth}{between} {row['value']} ({format_count(runs, 'run')})"


def rows_of(table: pd.DataFrame) -> str:
    """Return what the networks of a table are judged on, in words."""
    tasks = set(table["task"]) if "task" in table else set()
    if tasks == {"links"}:
        return "links"
    return "graphs" if tasks == {"graphs"} else "nodes"
