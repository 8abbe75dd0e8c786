"""A search for good settings of a cell with Optuna's TPE sampler, several workers and pruning.

The objective, ``val_accuracy``, is the *validation* accuracy at the epoch that the cell's protocol
selects, as a mean over the seeds. Test nodes play no part.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import optuna
import pandas as pd
import yaml
from optuna import distributions
from optuna.pruners import MedianPruner, NopPruner
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table
from rich.text import Text

from eamp.experiments.cell import Cell
from eamp.experiments.csv_text import write_csv
from eamp.experiments.database import StoreError
from eamp.experiments.schema import JSON_COLUMNS, KINDS, TEXT_COLUMNS, Job
from eamp.experiments.store import Claim, Store, failure
from eamp.experiments.sweep import CHECKPOINT_EVERY, REPORT_EVERY, remove_checkpoint
from eamp.experiments.worker_pool import run_jobs
from eamp.files import write_atomically
from eamp.training import Epoch

DEFAULT_SPACE: dict[str, Any] = {
    "entropy.weight": {"low": 0.1, "high": 30.0, "log": True},
    "entropy.temperature": {"low": 0.01, "high": 100.0, "log": True},
    "changes.learning_rate": {"low": 1e-4, "high": 0.03, "log": True},
}
PLAIN = tuple(n for n in KINDS if n not in (*TEXT_COLUMNS, *JSON_COLUMNS, "seed", "split"))
SHOWN = 10  # trials in the table of the best, and trials from which importances are computed


@dataclass(frozen=True)
class Search:
    """A search space around a cell.

    Attributes:
        cell: the settings that are not searched.
        space: for each setting, by a name such as ``dropout`` or ``entropy.weight.of``, a list of
            choices, or a range: ``{"low": 0.1, "high": 30, "log": true}``. A range with a whole
            number as ``step`` is of whole numbers.
        seeds: number of trainings whose mean is a trial's value; the first has the cell's seed.
        prune: stop trials that are worse than the median of earlier trials at the same epoch.
    """

    cell: Cell
    space: Mapping[str, Any]
    seeds: int = 1
    prune: bool = True

    def __post_init__(self) -> None:
        for name, choice in self.space.items():
            distribution(name, choice)
            head, *rest = name.split(".")
            put(getattr(self.cell, head), rest, None)

    def save_in(self, store: Store) -> None:
        """Save the search for the workers, in a study that holds no other search and no sweep."""
        saved = Search.saved_in(store)
        if saved is None and not store.trials():
            store.study.set_user_attr("search", {**asdict(self), "cell": self.cell.job})
        elif saved != self:
            other = f"the search {saved.space} of {saved.cell.key}" if saved else "a sweep"
            raise StoreError(
                f"study {store.study.study_name!r} holds {other}, not {self.space} of "
                f"{self.cell.key}; give --study another name."
            )

    @classmethod
    def saved_in(cls, store: Store) -> "Search | None":
        """Return the search of a store, or ``None`` if it holds a sweep."""
        saved = store.study.user_attrs.get("search")
        return None if saved is None else cls(**{**saved, "cell": Cell.from_job(saved["cell"])})


def distribution(name: str, choice: Any) -> distributions.BaseDistribution:
    """Return Optuna's distribution for one setting of a search space."""
    head, *rest = name.split(".")
    if not (head in JSON_COLUMNS and rest and all(rest)) and not (head in PLAIN and not rest):
        raise ValueError(
            f"cannot search over {name!r}; settings are {', '.join(PLAIN)}, "
            f"and keys as in {'.x, '.join(JSON_COLUMNS)}.x"
        )
    try:
        if isinstance(choice, list):
            return distributions.CategoricalDistribution(choice)
        if isinstance(choice.get("step"), int):
            return distributions.IntDistribution(**choice)
        return distributions.FloatDistribution(**choice)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{name!r} of the search must be a list, or a range as in "
            f'{{"low": 0.1, "high": 30, "log": true}}, but is {choice!r}: {error}'
        ) from error


def with_settings(cell: Cell, settings: Mapping[str, Any]) -> Cell:
    """Return the cell with other settings, named as in a search space."""
    changed: dict[str, Any] = {}
    for name, value in settings.items():
        head, *rest = name.split(".")
        changed[head] = put(changed.get(head, getattr(cell, head)), rest, value)
    return replace(cell, **changed)


def put(into: Any, path: list[str], value: Any) -> Any:
    """Return a copy of nested dictionaries with ``value`` at the end of ``path``."""
    if not path:
        return value
    first, *rest = path
    if not isinstance(into, dict | None):
        raise ValueError(f"the search names a setting {first!r} inside {into!r}, which has none.")
    return {**(into or {}), first: put((into or {}).get(first), rest, value)}


def tune(search: Search, store: Store, trials: int = 50, workers: int = 2) -> list[FrozenTrial]:
    """Search until so many trials are finished; return the unpruned ones, the best first.

    Called again, it continues.
    """
    _ = search.cell.graph  # raises an error here if the data cannot be loaded
    search.save_in(store)
    jobs: list[Job] = [{**search.cell.job, "try": number} for number in range(trials)]
    run_jobs(store, jobs, workers)
    return sorted(store.trials(TrialState.COMPLETE), key=lambda trial: -trial.values[0])


def median_pruner(epochs: int) -> MedianPruner:
    """Return a pruner that stops trials below the median of others at the same epoch."""
    # Early stopping ends most trainings; the few that reach a late epoch are no measure.
    return MedianPruner(n_min_trials=5, n_warmup_steps=epochs // 5, interval_steps=REPORT_EVERY)


def run_try(claim: Claim) -> str:
    """Choose settings, or take those of a lost worker, train every seed, and save the mean."""
    search = Search.saved_in(claim.store)
    assert search is not None, "a try belongs to a search"
    number, epochs, study = claim.job["try"], search.cell.rules.epochs, claim.store.study
    # Each try has its own seed: the first tries are random, and two workers must draw differently.
    study.sampler = TPESampler(
        seed=search.cell.seed + number, multivariate=True, constant_liar=True
    )
    study.pruner = median_pruner(epochs) if search.prune else NopPruner()
    trial = optuna.Trial(study, claim.trial_id)
    settings = {
        name: trial._suggest(name, distribution(name, choice))
        for name, choice in search.space.items()
    }
    tried = with_settings(search.cell, settings)
    cells = [replace(tried, seed=tried.seed + more) for more in range(search.seeds)]
    checkpoints = [claim.store.checkpoint(cell.key) for cell in cells]
    reached: list[float] = []

    def on_epoch(epoch: int, row: Epoch) -> None:
        if (epoch + 1) % REPORT_EVERY == 0:
            trial.report(mean([*reached, row.val_accuracy]), len(reached) * epochs + epoch + 1)
            if trial.should_prune():
                raise optuna.TrialPruned

    findings: dict[str, Any] = {"tried": tried.job}
    try:
        for cell, checkpoint in zip(cells, checkpoints, strict=True):
            result = cell.train(checkpoint, checkpoint_every=CHECKPOINT_EVERY, on_epoch=on_epoch)
            reached.append(result.val_accuracy)
        claim.finish(mean(reached), {**findings, "val_accuracies": reached})
    except optuna.TrialPruned:
        claim.finish(None, findings)
    for checkpoint in checkpoints:
        remove_checkpoint(checkpoint)
    value = f"{mean(reached):.3f}" if len(reached) == len(cells) else "pruned"
    return f"try {number}: {value} with {json.dumps(settings)}"


def best_table(trials: list[FrozenTrial], importances: Mapping[str, float]) -> Table:
    """Return the best trials with their settings, and the importance of each setting."""
    shares = ", ".join(f"{name} {share:.2f}" for name, share in importances.items())
    # As Text, in which square brackets are no markup: names and choices are the user's.
    caption = Text(f"importance of each setting: {shares}") if shares else None
    shown = Table("trial", "validation accuracy", "settings", caption=caption)
    for trial in trials[:SHOWN]:
        settings = (
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in trial.params.items()
        )
        shown.add_row(str(trial.number), f"{100 * trial.values[0]:.2f}", Text(", ".join(settings)))
    return shown


def importances(store: Store) -> dict[str, float]:
    """Return the importance of each setting, or nothing where too few trials have finished."""
    if len(store.trials(TrialState.COMPLETE)) < SHOWN:
        return {}
    return optuna.importance.get_param_importances(
        store.study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
    )


def failures(store: Store) -> list[str]:
    """Return a line for every try that has failed for good, with the reason."""
    reasons = ((trial, failure(trial)) for trial in store.latest().values())
    return [
        f"try {trial.user_attrs['cell']['try']} with {trial.params}: {reason}"
        for trial, reason in reasons
        if reason is not None
    ]


def trial_counts(store: Store) -> str:
    """Return how many trials there were, in words."""
    states = TrialState.COMPLETE, TrialState.PRUNED
    complete, pruned = (len(store.trials(state)) for state in states)
    value = "validation accuracy at the epoch that the protocol selects, no test node used"
    return f"{complete} trials trained to the end, {pruned} pruned; {value}."


def best_cell(trials: list[FrozenTrial]) -> Cell:
    """Return the cell of the first trial."""
    return Cell.from_job(trials[0].user_attrs["tried"])


def train_command(cell: Cell, seeds: int) -> str:
    """Return the ``eamp train`` command that trains a cell with so many seeds."""
    words = ["eamp", "train"]
    for name, value in asdict(cell).items():
        if name == "name" or value is None or value is False:
            continue
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        words += [f"--{name}"] if value is True else [f"--{name}", text]
    return shlex.join([*words, "--seeds", str(seeds)])


def save_trials(store: Store, file: Path) -> None:
    """Write a CSV with a row for every trial."""
    rows = [
        {
            "trial": trial.number,
            "state": trial.state.name.lower(),
            "val_accuracy": trial.values[0] if trial.values else None,
            **trial.params,
        }
        for trial in store.trials(TrialState.COMPLETE, TrialState.PRUNED)
    ]
    write_csv(pd.DataFrame(rows), file)


def save_recipe(cell: Cell, seeds: int, file: Path) -> None:
    """Write a recipe with the cell alone, for ``eamp sweep``."""
    settings = {name: value for name, value in asdict(cell).items() if value is not None}
    del settings["seed"]
    seed = list(range(cell.seed, cell.seed + seeds))
    recipe = {"name": f"best {cell.name}", "seed": seed, "runs": [settings]}
    write_atomically(file, yaml.safe_dump(recipe, sort_keys=False))
