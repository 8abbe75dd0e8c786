"""Training one cell with several seeds: ``eamp train``."""

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from torch.nn import Module

from eamp.experiments.cell import Cell
from eamp.files import to_json, write_atomically
from eamp.training import METRICS, Result, predict
from eamp.training.metrics import Metric
from eamp.training.process import SingleProcess
from eamp.training.tasks.task import Part


def train_seeds(
    cell: Cell,
    seeds: int = 1,
    output: str | Path | None = None,
    progress: bool = False,
    process: SingleProcess | None = None,
) -> list[Result]:
    """Train a cell with the seeds ``cell.seed``, ``cell.seed + 1``, ...

    The folder ``output`` gets results, checkpoints from which interrupted runs continue, and
    predictions (:func:`save_predictions`). If the graph is spread over several processes, all call
    this function, the leading one writes, and there are no predictions, which need the whole graph.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, but is {seeds}.")
    process, results = process or SingleProcess(), []
    process.agree({"seeds": seeds})
    for seed in range(cell.seed, cell.seed + seeds):
        name = f"split_{cell.split}_seed_{seed}" if cell.split else f"seed_{seed}"
        checkpoint = None if output is None else Path(output, f"{name}.safetensors")
        seeded = replace(cell, seed=seed)
        model = seeded.build()
        results.append(seeded.train(checkpoint, model=model, progress=progress, process=process))
        if output is not None and process.leads:
            write_atomically(Path(output, f"{name}.json"), to_json(asdict(results[-1])))
        if output is not None and process.size == 1:
            save_predictions(model, seeded, Path(output, f"{name}.npz"))
    return results


def save_predictions(model: Module, cell: Cell, file: Path) -> None:
    """Write what :func:`eamp.training.predict` returns of a trained network, as a NumPy archive.

    Its arrays are ``val_outputs``, ``val_labels``, ``test_outputs`` and ``test_labels``, in the
    order of the data.
    """
    arrays: dict[str, Any] = {}  # as np.savez is typed
    for part in get_args(Part):
        found = predict(model, cell.graph, part, protocol=cell.rules)
        names = (f"{part}_outputs", f"{part}_labels")
        arrays |= {name: each.cpu().numpy() for name, each in zip(names, found, strict=True)}
    content = io.BytesIO()
    np.savez(content, **arrays)
    write_atomically(file, content.getvalue())


def plan(cell: Cell, seeds: int) -> str:
    """Return what :func:`train_seeds` is going to do, in words.

    Example:
        >>> plan(Cell("gcn", "cora", depth=4, entropy={"weight": 3}), 3)
        'Training gcn on cora: depth 4, width 64, entropy {"weight": 3}; 3 seeds, at most 1500
        epochs each, protocol standard.'
    """
    settings = [f"depth {cell.depth}", f"width {cell.width}"]
    for name in ("entropy", "options"):
        if (value := getattr(cell, name)) is not None:
            settings.append(f"{name} {json.dumps(value)}")
    number = f"{cell.rules.epochs} epochs"
    at_most = "at most " if cell.rules.patience is not None else ""
    runs = f"1 seed, {at_most}{number}" if seeds == 1 else f"{seeds} seeds, {at_most}{number} each"
    about = f"{cell.model} on {cell.data}: {', '.join(settings)}"
    return f"Training {about}; {runs}, protocol {protocol_in_words(cell)}."


def protocol_in_words(cell: Cell) -> str:
    """Return the protocol of a cell and its changes."""
    return f"{cell.protocol} with {json.dumps(cell.changes)}" if cell.changes else cell.protocol


def summary(results: Sequence[Result], cell: Cell) -> str:
    """Return the metric in words, with the protocol and the rule that selects the epoch."""
    runs = f"{len(results)} seed{'s' if len(results) > 1 else ''}"
    if cell.num_splits > 1:
        runs += f", split {cell.split} of 0 … {cell.num_splits - 1}"
    select, name = cell.rules.select, cell.metric
    metric = METRICS[name]
    test = mean_and_deviation([result.test_metric for result in results], metric)
    best = mean_and_deviation([result.best_val_metric for result in results], metric)
    also = "".join(
        f"test {METRICS[each].words} at the same epoch: "
        f"{mean_and_deviation([result.also[each] for result in results], METRICS[each])}\n"
        for each in results[0].also
    )
    papers = cell.protocol == "paper" and name == "accuracy"
    number = ", the paper's number" if papers else ""
    epochs = ", ".join(
        f"{result.epoch + 1} of {len(result.history)}{' (diverged)' if result.diverged else ''}"
        for result in results
    )
    return (
        f"test {metric.words} at the epoch of {rule_in_words(select, name)}: {test} "
        f"({runs}, protocol {protocol_in_words(cell)})\n{also}"
        f"{metric.best} validation {metric.words} over the epochs{number}: {best}\n"
        f"epoch that counts: {epochs}"
    )


def rule_in_words(select: str, metric: str) -> str:
    """Return which epoch counts, for ``select`` and ``metric`` of a protocol.

    Example:
        >>> rule_in_words("val_metric", "roc_auc")
        'highest validation ROC AUC'
    """
    if select == "val_loss":
        return "lowest validation loss"
    found = METRICS["accuracy" if select == "val_accuracy" else metric]
    return f"{found.best} validation {found.words}"


def mean_and_deviation(values: Sequence[float], metric: Metric = METRICS["accuracy"]) -> str:
    """Return the mean, with the sample standard deviation of several values; shares in percent.

    A value that is not finite, of a run that diverged, makes them so, too.

    Example:
        >>> mean_and_deviation([0.5, 0.7]), mean_and_deviation([1.5, 1.7], METRICS["mae"])
        ('60.00 ± 14.14', '1.6 ± 0.1414')
    """
    with np.errstate(invalid="ignore"):
        deviation = f" ± {metric.text(float(np.std(values, ddof=1)))}" if len(values) > 1 else ""
        return f"{metric.text(float(np.mean(values)))}{deviation}"
