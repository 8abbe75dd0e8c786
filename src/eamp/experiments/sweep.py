"""A sweep: the cells of a recipe, trained by a crew of workers, and the table of what they found."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from optuna.trial import TrialState
from rich.table import Table

from eamp.experiments.cell import Cell, load_graph
from eamp.experiments.several_seeds import mean_and_deviation
from eamp.experiments.store import Claim, Store, failure, job_key
from eamp.experiments.worker_pool import SweepError, count_settled, settle
from eamp.training import PROTOCOLS, Epoch, Result, selected

__all__ = ["SweepError", "failures", "layer_energies", "run_cell", "save", "summary", "sweep"]

CHECKPOINT_EVERY = 10  # epochs
REPORT_EVERY = 10
JSON_COLUMNS = ("entropy", "options", "changes")


def sweep(
    cells: Sequence[Cell],
    store: Store,
    workers: int = 2,
    threads: int | None = None,
    retry_failed: bool = False,
    progress: bool = True,
) -> pd.DataFrame:
    """Train what of ``cells`` is not finished yet, and return the table of all that are; see :func:`~eamp.experiments.worker_pool.settle`."""
    jobs = [asdict(cell) for cell in cells]
    if retry_failed or count_settled(store, jobs) < len(jobs):
        for data, normalize_features in dict.fromkeys(
            (cell.data, cell.normalize_features) for cell in cells
        ):
            load_graph(
                data, normalize_features
            )  # data that cannot be had are better found out here than by every worker
    settle(store, jobs, workers, threads, retry_failed, progress)
    found = finished(store)
    for cell in cells:
        if cell.key in found:
            clear(
                store.checkpoint(cell.key)
            )  # left by a worker that was killed between its last two steps
    return pd.DataFrame(
        [{**asdict(cell), **found[cell.key]} for cell in cells if cell.key in found]
    )


def run_cell(claim: Claim) -> str:
    """Train a claimed cell, going on from what an earlier worker reached."""
    cell, start = Cell(**claim.job), time.perf_counter()
    checkpoint = claim.store.checkpoint(cell.key)

    def on_epoch(epoch: int, row: Epoch) -> None:
        if (epoch + 1) % REPORT_EVERY == 0:
            claim.report(row.val_accuracy, epoch + 1)

    result = cell.train(checkpoint, CHECKPOINT_EVERY, on_epoch=on_epoch)
    attach_curves(claim, result)
    claim.finish(
        result.val_accuracy,
        {
            **readings(result),
            "seconds": time.perf_counter() - start,
            "threads": torch.get_num_threads(),
        },
    )
    clear(checkpoint)
    return f"{cell.data} {cell.name} depth {cell.depth} seed {cell.seed}: highest validation accuracy {result.best_val_accuracy:.3f}"


def readings(result: Result) -> dict[str, Any]:
    """A run read under both protocols: the paper's number, and test accuracy at the epoch of lowest validation loss."""
    lowest = selected(result.history, PROTOCOLS["standard"])
    return {
        "best_val_accuracy": result.best_val_accuracy,
        "test_accuracy": result.history[lowest].test_accuracy,
        "val_loss": result.history[lowest].val_loss,
        "epochs": len(result.history),
        "energy": result.energy,
        "final_energy": result.final_energy,
    }


def attach_curves(claim: Claim, result: Result) -> None:
    """Keep every epoch and the energy after every layer with the trial, as a JSON file."""
    content = {
        "epochs": [row._asdict() for row in result.history],
        "selected": result.epoch,
        "energy": result.energy,
        "final_energy": result.final_energy,
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "curves.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        claim.attach(file)


def clear(checkpoint: Path) -> None:
    """Remove a checkpoint, and what a killed worker had written of the next."""
    for file in checkpoint.parent.glob(f"*{checkpoint.name}*"):
        file.unlink(missing_ok=True)


# --- What was found ---------------------------------------------------------------------------------------------------


def finished(store: Store) -> dict[str, dict[str, Any]]:
    """What every finished cell found, by its key; without what the queue needed, and without Optuna's record of artifacts."""
    return {
        job_key(trial.user_attrs["cell"]): {
            name: value
            for name, value in trial.user_attrs.items()
            if name not in ("cell", "attempt", "worker") and ":" not in name
        }
        for trial in store.trials(TrialState.COMPLETE)
    }


def failures(cells: Iterable[Cell], store: Store) -> list[tuple[Cell, str]]:
    """Those of the cells that failed for a reason of their own, with it."""
    latest = store.latest()
    reasons = ((cell, failure(latest[cell.key])) for cell in cells if cell.key in latest)
    return [(cell, reason) for cell, reason in reasons if reason is not None]


def layer_energies(table: pd.DataFrame) -> pd.DataFrame:
    """A row per layer of every network in a sweep's table: its energy after the last epoch, and at the selected one."""
    columns = ["name", "data", "depth", "seed"]
    rows = [
        {
            **{column: row[column] for column in columns},
            "layer": layer,
            "energy": last,
            "selected_energy": selected,
        }
        for row in table.to_dict("records")
        for layer, (last, selected) in enumerate(
            zip(row["final_energy"], row["energy"], strict=True), start=1
        )
    ]
    return pd.DataFrame(rows, columns=[*columns, "layer", "energy", "selected_energy"])


def save(table: pd.DataFrame, folder: Path) -> None:
    """``cells.csv``, a row per network with its settings as JSON, and ``layer_energies.csv``."""
    flat = table.drop(columns=["energy", "final_energy"], errors="ignore")
    for column in flat.columns.intersection(JSON_COLUMNS):
        flat[column] = flat[column].map(json.dumps)
    flat.to_csv(folder / "cells.csv", index=False)
    layer_energies(table).to_csv(folder / "layer_energies.csv", index=False)


def summary(table: pd.DataFrame) -> Table:
    """Mean and sample deviation over the seeds, in percent, by data, network and depth."""
    columns = (
        "data",
        "network",
        "depth",
        "seeds",
        "highest validation accuracy",
        "test accuracy at lowest validation loss",
    )
    shown = Table(*columns)
    for column in shown.columns[2:]:
        column.justify = "right"
    for (data, name, depth), rows in table.groupby(["data", "name", "depth"], sort=False):
        accuracies = (
            mean_and_deviation(rows[column].tolist())
            for column in ("best_val_accuracy", "test_accuracy")
        )
        shown.add_row(data, name, str(depth), str(len(rows)), *accuracies)
    return shown
