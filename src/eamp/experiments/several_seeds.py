"""One cell, trained over several seeds: ``eamp train``."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from eamp.experiments.cell import Cell
from eamp.scale.process_group import Alone
from eamp.training import Result


def repeated(
    cell: Cell,
    seeds: int = 1,
    output: Path | None = None,
    progress: bool = False,
    peers: Alone | None = None,
) -> list[Result]:
    """Train with seeds ``cell.seed``, ``cell.seed + 1``, ...; with ``output``, interrupted runs go on, finished ones are not repeated.

    With ``peers``, the graph is spread over processes that all call this; the one that leads writes to its ``output``.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, but is {seeds}.")
    peers, results = peers or Alone(), []
    for seed in range(cell.seed, cell.seed + seeds):
        checkpoint = None if output is None else output / f"seed_{seed}.safetensors"
        results.append(replace(cell, seed=seed).train(checkpoint, progress=progress, peers=peers))
        if output is not None and peers.leads:
            output.mkdir(parents=True, exist_ok=True)  # a short run has not saved anything yet
            (output / f"seed_{seed}.json").write_text(
                json.dumps(asdict(results[-1])), encoding="utf-8"
            )
    return results


def summary(results: Sequence[Result], cell: Cell) -> str:
    """Accuracies in words, each under the name of what it is."""
    number = len(results)
    seeds = f"{number} seed{'s' if number > 1 else ''}"
    rule = {"val_loss": "lowest validation loss", "val_accuracy": "highest validation accuracy"}[
        cell.rules.select
    ]
    protocol = f"{cell.protocol} with {json.dumps(cell.changes)}" if cell.changes else cell.protocol
    lines = [
        f"test accuracy at the epoch of {rule}: {mean_and_deviation([r.test_accuracy for r in results])} ({seeds}, protocol {protocol})",
        f"highest validation accuracy over the epochs, the paper's number: {mean_and_deviation([r.best_val_accuracy for r in results])}",
        f"epochs: {', '.join(f'{r.epoch} of {len(r.history)}' for r in results)}",
    ]
    return "\n".join(lines)


def mean_and_deviation(values: Sequence[float]) -> str:
    """In percent, with the sample's standard deviation where there are several."""
    deviation = f" ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.2f}{deviation}"
