"""A sweep: the cells of a recipe, trained by a pool of workers, and the table of their results."""

import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import pandas as pd
import torch

import eamp
from eamp.experiments.cell import Cell, load_graph
from eamp.experiments.csv_text import write_csv
from eamp.experiments.schema import JSON_COLUMNS, job_key, job_label
from eamp.experiments.several_seeds import mean_and_deviation, rule_in_words
from eamp.experiments.store import Claim, Store, failure
from eamp.experiments.worker_pool import count_settled, run_jobs
from eamp.files import remove_leftovers
from eamp.optional import extra
from eamp.training import METRICS, PROTOCOLS, Result, selected
from eamp.training.protocols import Figures, advice_on_divergence, diverged
from eamp.training.targets import DEFAULTS as TASK_METRICS
from eamp.training.tasks import task_of

with extra("experiments"):
    from optuna.trial import TrialState
    from rich.table import Table
    from rich.text import Text

CHECKPOINT_EVERY = 10  # epochs
REPORT_EVERY = 10
# Test values of further metrics at the selected epoch; only where labels are no classes.
ALSO = {f"test_{name}": name for kind in ("labels", "numbers") for name in TASK_METRICS[kind]}
# The columns that a sweep adds to the settings of a cell. Databases return them in any order.
FINDINGS = (
    "best_val_accuracy",  # the number of the paper's protocol
    "test_accuracy",  # at the epoch of lowest validation loss
    "val_loss",
    "epochs",
    "seconds",
    "threads",
    "version",  # of eamp and torch
    "energy",
    "final_energy",
    "num_splits",  # only where the data have several
    "diverged",  # the epoch; only where a training loss was not finite
    "metric",  # this and the next three: see `metric_findings`
    "select",
    "best_val_metric",
    "test_metric",
    *ALSO,
    "task",  # only where it is not that of nodes
)


def sweep(
    cells: Sequence[Cell], store: Store, workers: int = 2, retry_failed: bool = False
) -> pd.DataFrame:
    """Train the cells that the store does not hold yet, as :func:`~.worker_pool.run_jobs` does.

    Returns:
        A row for every finished cell. There is a column ``split`` only if a cell has another split
        than 0, or its data have several.
    """
    jobs = [cell.job for cell in cells]
    if retry_failed or count_settled(store, jobs) < len(jobs):
        check_graphs(cells)
        check_models(cells)
    run_jobs(store, jobs, workers, retry_failed)
    results = finished(store)
    done = [(cell, results[cell.key]) for cell in cells if cell.key in results]
    for cell, _ in done:  # a worker may have been killed before it removed its checkpoint
        remove_checkpoint(store.checkpoint(cell.key))
    table = pd.DataFrame([{**asdict(cell), **result} for cell, result in done])
    several = any(cell.split or "num_splits" in result for cell, result in done)
    hidden = ["num_splits"] if several else ["num_splits", "split"]
    if "task" in table and set(table["task"]) == {"auto"}:
        hidden.append("task")
    return table.drop(columns=hidden, errors="ignore")


def check_graphs(cells: Iterable[Cell]) -> None:
    """Raise an error for data that cannot be loaded or measured, before every worker meets it."""
    for settings, rules in {(cell.graph_settings, cell.rules) for cell in cells}:
        graph = load_graph(*settings)
        try:
            task_of(graph, rules)
        except ValueError as error:
            raise ValueError(f"{settings[0]}: {error}") from error


def check_models(cells: Iterable[Cell]) -> None:
    """Raise an error for a network that cannot be made; each is made at its smallest depth."""
    made: dict[str, Cell] = {}
    for cell in sorted(cells, key=lambda cell: cell.depth):
        made.setdefault(json.dumps([cell.model, cell.options, cell.entropy], sort_keys=True), cell)
    for cell in made.values():
        try:
            cell.build()
        except ValueError as error:
            raise ValueError(f"{label(cell)}: {error}") from error


def run_cell(claim: Claim) -> str:
    """Train a claimed cell, from the checkpoint of an earlier worker if there is one."""
    cell, start = Cell.from_job(claim.job), time.perf_counter()
    cell.check_graph(claim.job)
    checkpoint = claim.store.checkpoint(cell.key)
    merit = METRICS[cell.metric].merit  # the study is one that maximises

    def on_epoch(epoch: int, row: Figures) -> None:
        if epoch == 0 or (epoch + 1) % REPORT_EVERY == 0:  # estimates start with the first
            claim.report(merit(row.val_metric), epoch + 1)

    result = cell.train(checkpoint, checkpoint_every=CHECKPOINT_EVERY, on_epoch=on_epoch)
    energies = {"energy": result.energy, "final_energy": result.final_energy}
    epochs = [row._asdict() for row in result.history]
    claim.attach("curves.json", {"epochs": epochs, "selected": result.epoch, **energies})
    lowest = result.history[selected(result.history, PROTOCOLS["standard"])]
    accuracies = {
        "best_val_accuracy": result.best_val_accuracy,
        "test_accuracy": lowest.test_accuracy,
    }
    findings = {
        **({} if result.also else accuracies),
        "val_loss": lowest.val_loss,
        "epochs": len(epochs),
        "seconds": time.perf_counter() - start,
        "threads": torch.get_num_threads(),
        "version": f"eamp {eamp.__version__}, torch {torch.__version__}",
        **energies,
        **({"num_splits": cell.num_splits} if cell.num_splits > 1 else {}),
        **({"diverged": diverged(result.history)} if result.diverged else {}),
        **metric_findings(cell, result),
        **({} if (task := cell.problem.name) == "nodes" else {"task": task}),
    }
    claim.finish(merit(result.val_metric), findings)
    remove_checkpoint(checkpoint)
    metric = METRICS[result.metric]
    reached = f"{metric.best} validation {metric.words} {result.best_val_metric:.3f}"
    return f"{label(cell)}: {reached}"


def metric_findings(cell: Cell, result: Result) -> dict[str, Any]:
    """Return the metric of a run and its values, if they are not those of the other columns.

    They are if the metric is the accuracy of classes, and the recipe does not ask for another epoch
    than that of lowest validation loss.
    """
    asked = (cell.changes or {}).get("select", "val_loss")
    if result.metric == "accuracy" and asked == "val_loss" and not result.also:
        return {}
    return {
        "metric": result.metric,
        "select": cell.rules.select,
        "best_val_metric": result.best_val_metric,
        "test_metric": result.test_metric,  # at the epoch that the protocol selects
        **{f"test_{name}": value for name, value in result.also.items()},
    }


def label(cell: Cell) -> str:
    """Return the words that tell a cell from others in messages."""
    return job_label(asdict(cell))


def remove_checkpoint(checkpoint: Path) -> None:
    """Remove a checkpoint, and unfinished files that a killed worker wrote beside it."""
    checkpoint.unlink(missing_ok=True)
    remove_leftovers(checkpoint)


def finished(store: Store) -> dict[str, dict[str, Any]]:
    """Return the findings of every finished cell, by the cell's key."""
    return {
        job_key(trial.user_attrs["cell"]): {
            name: trial.user_attrs[name] for name in FINDINGS if name in trial.user_attrs
        }
        for trial in store.trials(TrialState.COMPLETE)
    }


def failures(cells: Iterable[Cell], store: Store) -> list[tuple[Cell, str]]:
    """Return the cells that have failed for good, each with the reason."""
    latest = store.latest()
    reasons = ((cell, failure(latest[cell.key])) for cell in cells if cell.key in latest)
    return [(cell, reason) for cell, reason in reasons if reason is not None]


def diverged_cells(table: pd.DataFrame) -> list[str]:
    """Return a line for every network whose training diverged, with what to try."""
    if "diverged" not in table:
        return []
    rows = table[table["diverged"].notna()]
    return [
        f"{row['data']} {row['name']} depth {row['depth']} seed {row['seed']}: "
        + advice_on_divergence(int(row["diverged"]), math.isfinite(row["val_loss"]))
        for row in rows.to_dict("records")
    ]


def layer_energies(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for every layer of every network, with its energy after the last epoch."""
    columns = ["name", "data", "depth", "seed", *(["split"] if "split" in table else [])]
    rows = [
        [*(row[column] for column in columns), layer, last, chosen]
        for row in table.to_dict("records")
        for layer, (last, chosen) in enumerate(
            zip(row["final_energy"], row["energy"], strict=True), start=1
        )
    ]
    # The selected energy is that at the selected epoch.
    return pd.DataFrame(rows, columns=[*columns, "layer", "energy", "selected_energy"])


def save(table: pd.DataFrame, folder: Path) -> None:
    """Write ``cells.csv``, a row for every network, and ``layer_energies.csv``."""
    flat = table.drop(columns=["energy", "final_energy"], errors="ignore")
    for column in flat.columns.intersection(JSON_COLUMNS):
        flat[column] = flat[column].map(json.dumps)
    write_csv(flat, folder / "cells.csv")
    write_csv(layer_energies(table), folder / "layer_energies.csv")


def parts_by_metric(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the rows of every metric, and of every rule that selects an epoch by it."""
    if "metric" not in table:
        return [table]
    return [part for _, part in table.groupby(["metric", "select"], sort=False, dropna=False)]


def metric_of(table: pd.DataFrame) -> str:
    """Return the name of the metric of a table whose rows have one."""
    if "metric" not in table or pd.isna(name := table["metric"].iloc[0]):
        return "accuracy"
    return str(name)


def readings_of(table: pd.DataFrame) -> dict[str, str]:
    """Return the columns that a summary shows, with their headings; the last is of test nodes."""
    if "metric" not in table or pd.isna(name := table["metric"].iloc[0]):
        return {
            "best_val_accuracy": "highest validation accuracy",
            "test_accuracy": "test accuracy at lowest validation loss",
        }
    metric, rule = METRICS[name], rule_in_words(table["select"].iloc[0], name)
    return {
        "best_val_metric": f"{metric.best} validation {metric.words}",
        "test_metric": f"test {metric.words} at {rule}",
    }


def further_metrics(table: pd.DataFrame) -> dict[str, str]:
    """Return the columns with test values of further metrics, each with the metric's name."""
    filled = (column for column in ALSO if column in table and table[column].notna().any())
    return {column: ALSO[column] for column in filled}


def summary(table: pd.DataFrame, by_split: bool = False) -> Table:
    """Return mean and deviation over seeds and splits, or with ``by_split`` over seeds alone.

    All rows have the same metric.
    """
    by = ["data", "name", "depth", *(["split"] if by_split and "split" in table else [])]
    metric = METRICS[metric_of(table)]
    over = [column for column in ("seed", "split") if column in table and column not in by]
    runs = " × ".join(f"{column}s" for column in over)
    readings = {column: (words, metric_of(table)) for column, words in readings_of(table).items()}
    for further, name in further_metrics(table).items():
        readings[further] = f"test {METRICS[name].words}", name
    heads = ["network" if column == "name" else column for column in by]
    caption = f"mean ± sample standard deviation over {runs}{', in percent' * metric.percent}"
    caption += f"; {metric.described}" * (metric_of(table) != "accuracy")
    if "diverged" in table and table["diverged"].notna().any():
        caption += "; †: training diverged"
    shown = Table(*heads, runs, *(words for words, _ in readings.values()), caption=caption)
    for column in shown.columns[2:]:
        column.justify = "right"
    for group, rows in table.groupby(by, sort=False):
        counts = [rows[column].nunique() for column in over]
        # In an unfinished sweep some combinations are missing.
        number = " × ".join(map(str, counts if prod(counts) == len(rows) else [len(rows)]))
        values = (
            mean_and_deviation(rows[column].tolist(), METRICS[name])
            for column, (_, name) in readings.items()
        )
        mark = " †" if "diverged" in rows and rows["diverged"].notna().any() else ""
        # As Text, in which square brackets are no markup: names come from recipes.
        names = (Text(str(part)) for part in group)
        shown.add_row(*names, number, *(f"{each}{mark}" for each in values))
    return shown
