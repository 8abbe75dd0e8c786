"""A search for good settings of a cell: Optuna's TPE over a store, with several workers, pruning, and no look at the test nodes.

The objective, ``val_accuracy``, is the *validation* accuracy at the epoch that the cell's protocol selects, as a mean over the seeds.
"""

from __future__ import annotations

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
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.pruners import MedianPruner, NopPruner
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table

from eamp.experiments.cell import Cell, load_graph
from eamp.experiments.database import StoreError
from eamp.experiments.store import Claim, Job, Store, failure
from eamp.experiments.sweep import CHECKPOINT_EVERY, REPORT_EVERY, clear
from eamp.experiments.worker_pool import settle
from eamp.training import Epoch

DEFAULT_SPACE: dict[str, Any] = {
    "entropy.weight": {"low": 0.1, "high": 30.0, "log": True},
    "entropy.temperature": {"low": 0.01, "high": 100.0, "log": True},
    "changes.learning_rate": {"low": 1e-4, "high": 0.03, "log": True},
}
NESTED, PLAIN = (
    ("entropy", "options", "changes"),
    ("dropout", "width", "depth", "normalize_features"),
)
SHOWN = 10  # trials in the table of the best


@dataclass(frozen=True)
class Search:
    """What is searched for.

    Attributes:
        cell: what stays as it is.
        space: by the name of a setting, ``entropy.weight.of`` or ``dropout`` say, either a list to choose from or a range:
            ``{"low": 0.1, "high": 30, "log": true}``. With a whole number as ``step``, of whole numbers.
        seeds: how many trainings a trial is the mean of; the first has the cell's seed.
        prune: stop what is worse than the median of the trials before it at the same epoch.
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

    def keep_in(self, store: Store) -> None:
        """Write it down for the workers. A study is of one search."""
        mine, there = asdict(self), store.study.user_attrs.get("search")
        if there is None and not store.trials():
            store.study.set_user_attr("search", mine)
        elif there != mine:
            before = "a sweep" if there is None else f"the search {json.dumps(there)}"
            raise StoreError(
                f"study {store.study.study_name!r} holds {before}, not {json.dumps(mine)}; give --study another name."
            )

    @classmethod
    def kept_in(cls, store: Store) -> Search | None:
        """The search of a store; ``None`` where it holds a sweep."""
        kept = store.study.user_attrs.get("search")
        return None if kept is None else cls(**{**kept, "cell": Cell(**kept["cell"])})


def distribution(name: str, choice: Any) -> BaseDistribution:
    """One dimension of the space, for Optuna."""
    head, *rest = name.split(".")
    if not (head in NESTED and rest and all(rest)) and not (head in PLAIN and not rest):
        raise ValueError(
            f"cannot search over {name!r}; settings are {', '.join(PLAIN)}, and keys as in {'.x, '.join(NESTED)}.x"
        )
    try:
        if isinstance(choice, list):
            return CategoricalDistribution(choice)
        return (IntDistribution if isinstance(choice.get("step"), int) else FloatDistribution)(
            **choice
        )
    except (TypeError, ValueError, AttributeError) as error:
        expected = 'a list, or a range as in {"low": 0.1, "high": 30, "log": true}'
        raise ValueError(
            f"{name!r} of the search must be {expected}, but is {choice!r}: {error}"
        ) from error


def with_settings(cell: Cell, settings: Mapping[str, Any]) -> Cell:
    """The cell with other settings, by the names that a search space has."""
    changed: dict[str, Any] = {}
    for name, value in settings.items():
        head, *rest = name.split(".")
        changed[head] = put(changed.get(head, getattr(cell, head)), rest, value)
    return replace(cell, **changed)


def put(into: Any, path: list[str], value: Any) -> Any:
    """``into``, a dictionary of dictionaries or nothing yet, with ``value`` at the end of ``path``."""
    if not path:
        return value
    if not isinstance(into, dict | None):
        raise ValueError(f"the search names a setting {path[0]!r} inside {into!r}, which has none.")
    first, *rest = path
    return {**(into or {}), first: put((into or {}).get(first), rest, value)}


def tune(
    search: Search, store: Store, trials: int = 50, workers: int = 2, progress: bool = True
) -> list[FrozenTrial]:
    """Search until ``trials`` are finished, and return those that were not pruned, the best first. Called again, it goes on."""
    load_graph(search.cell.data, search.cell.normalize_features)
    search.keep_in(store)
    jobs: list[Job] = [{**asdict(search.cell), "try": number} for number in range(trials)]
    settle(store, jobs, workers, progress=progress)
    return sorted(store.trials(TrialState.COMPLETE), key=lambda trial: -trial.values[0])


def median_pruner(epochs: int) -> MedianPruner:
    """Stops what is worse than the median of five trials or more. Most trainings end early for want of patience, and the few that have come
    to a late epoch are no measure of the others.
    """
    return MedianPruner(n_min_trials=5, n_warmup_steps=epochs // 5, interval_steps=REPORT_EVERY)


def run_try(claim: Claim) -> str:
    """Choose settings, train them on every seed, and keep the mean; a try whose worker was lost keeps the settings it had."""
    search = Search.kept_in(claim.store)
    assert search is not None, "a try belongs to a search"
    number, epochs = claim.job["try"], search.cell.rules.epochs
    study = claim.store.study
    # A seed of its own for every try: the first ones are random, and two workers must not draw the same.
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
    reached: list[float] = []

    def on_epoch(epoch: int, row: Epoch) -> None:
        if (epoch + 1) % REPORT_EVERY == 0:
            trial.report(mean([*reached, row.val_accuracy]), len(reached) * epochs + epoch + 1)
            if trial.should_prune():
                raise optuna.TrialPruned

    findings: dict[str, Any] = {"tried": asdict(tried)}
    try:
        for cell in cells:
            reached.append(
                cell.train(
                    claim.store.checkpoint(cell.key), CHECKPOINT_EVERY, on_epoch=on_epoch
                ).val_accuracy
            )
        claim.finish(mean(reached), {**findings, "val_accuracies": reached})
    except optuna.TrialPruned:
        claim.finish(None, findings)
    for cell in cells:
        clear(claim.store.checkpoint(cell.key))
    said = f"{mean(reached):.3f}" if len(reached) == len(cells) else "pruned"
    return f"try {number}: {said} with {json.dumps(settings)}"


# --- What was found ---------------------------------------------------------------------------------------------------


def best_table(trials: list[FrozenTrial], importances: Mapping[str, float]) -> Table:
    """The best trials with their settings, and how much each setting mattered."""
    mattered = ", ".join(f"{name} {share:.2f}" for name, share in importances.items())
    shown = Table(
        "trial",
        "validation accuracy",
        "settings",
        caption=f"How much each mattered: {mattered}" if mattered else None,
    )
    for trial in trials[:SHOWN]:
        settings = (
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in trial.params.items()
        )
        shown.add_row(str(trial.number), f"{100 * trial.values[0]:.2f}", ", ".join(settings))
    return shown


def importances(store: Store) -> dict[str, float]:
    """How much each setting mattered, where enough trials say so."""
    if len(store.trials(TrialState.COMPLETE)) < SHOWN:
        return {}
    return optuna.importance.get_param_importances(
        store.study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
    )


def failures(store: Store) -> list[str]:
    """Tries that failed for a reason of their own, with it."""
    reasons = ((trial, failure(trial)) for trial in store.latest().values())
    return [
        f"try {trial.user_attrs['cell']['try']} with {trial.params}: {reason}"
        for trial, reason in reasons
        if reason is not None
    ]


def counted(store: Store) -> str:
    """How many trials there were, in words."""
    complete, pruned = (
        len(store.trials(state)) for state in (TrialState.COMPLETE, TrialState.PRUNED)
    )
    return f"{complete} trials trained to the end, {pruned} pruned; validation accuracy at the epoch the protocol selects, no test node seen."


def best_cell(trials: list[FrozenTrial]) -> Cell:
    """The cell of the best trial."""
    return Cell(**trials[0].user_attrs["tried"])


def train_command(cell: Cell, seeds: int) -> str:
    """What repeats it."""
    words = ["eamp", "train"]
    for name, value in asdict(cell).items():
        if name == "normalize_features":
            words += [f"--{name}"] if value else []
        elif name != "name" and value is not None:
            words += [f"--{name}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return shlex.join([*words, "--seeds", str(seeds)])


def save_trials(store: Store, file: Path) -> None:
    """Everything that was tried, a row per trial, as a CSV."""
    settled = store.trials(TrialState.COMPLETE, TrialState.PRUNED)
    rows = [
        {
            "trial": t.number,
            "state": t.state.name.lower(),
            "val_accuracy": t.values[0] if t.values else None,
            **t.params,
        }
        for t in settled
    ]
    pd.DataFrame(rows).to_csv(file, index=False)


def save_recipe(cell: Cell, seeds: int, file: Path) -> None:
    """A recipe of the cell alone, for ``eamp sweep``."""
    settings = {
        name: value for name, value in asdict(cell).items() if name != "seed" and value is not None
    }
    seed = list(range(cell.seed, cell.seed + seeds))
    file.write_text(
        yaml.safe_dump(
            {"name": f"best {cell.name}", "seed": seed, "runs": [settings]}, sort_keys=False
        ),
        encoding="utf-8",
    )
