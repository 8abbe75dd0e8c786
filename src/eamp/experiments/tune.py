"""A search for good settings of a cell with Optuna's TPE sampler, several workers and pruning.

The objective is the *validation* value of the protocol's metric, which is accuracy by default, at
the epoch that the protocol selects, as a mean over the seeds. Test nodes play no part. Optuna
maximises it, or its negative if lower values are better.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd

from eamp.experiments.cell import Cell
from eamp.experiments.csv_text import write_csv
from eamp.experiments.schema import Job, job_key
from eamp.experiments.search import Search, distribution, with_settings
from eamp.experiments.store import Claim, Store, failure
from eamp.experiments.sweep import CHECKPOINT_EVERY, REPORT_EVERY, remove_checkpoint
from eamp.experiments.worker_pool import run_jobs
from eamp.files import write_atomically
from eamp.optional import extra
from eamp.training import METRICS
from eamp.training.protocols import Figures, advice_on_divergence, diverged

with extra("experiments"):
    import optuna
    import yaml
    from optuna.pruners import MedianPruner, NopPruner
    from optuna.samplers import TPESampler
    from optuna.trial import FrozenTrial, TrialState
    from rich.table import Table
    from rich.text import Text

SHOWN = 10  # trials in the table of the best, and trials from which importances are computed


def tune(search: Search, store: Store, trials: int = 50, workers: int = 2) -> list[FrozenTrial]:
    """Search until so many trials are finished; return the unpruned ones, the best first.

    Called again, it continues.
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, but is {trials}.")
    _ = search.cell.problem  # an error here, not in every trial
    search.save_in(store)
    jobs: list[Job] = [{**search.cell.job, "try": number} for number in range(trials)]
    if job_key(jobs[0]) not in store.latest():
        store.add(jobs[0], params=search.given())  # the settings that the search starts from
    run_jobs(store, jobs, workers)
    for trial in store.trials(TrialState.COMPLETE, TrialState.PRUNED):
        if "tried" in trial.user_attrs:  # a worker may have been killed before it removed them
            for checkpoint in checkpoints_of(trial.user_attrs, search.seeds, store):
                remove_checkpoint(checkpoint)
    return sorted(store.trials(TrialState.COMPLETE), key=lambda trial: -trial.values[0])


def median_pruner(epochs: int) -> MedianPruner:
    """Return a pruner that stops trials below the median of others at the same epoch."""
    # Early stopping ends most trainings; the few that reach a late epoch are no measure.
    return MedianPruner(n_min_trials=5, n_warmup_steps=epochs // 5, interval_steps=REPORT_EVERY)


def checkpoints_of(found: Mapping[str, Any], seeds: int, store: Store) -> list[Path]:
    """Return the checkpoint files of a try, one per seed.

    The number of the try belongs to their names: two tries may have the same settings.
    """
    tried, number = found["tried"], found["cell"]["try"]
    jobs = [{**tried, "seed": tried["seed"] + more, "try": number} for more in range(seeds)]
    return [store.checkpoint(job_key(job)) for job in jobs]


def run_try(claim: Claim) -> str:
    """Choose settings, or take those of a lost worker, train every seed, and save the mean."""
    search = Search.saved_in(claim.store)
    assert search is not None, "a try belongs to a search"
    search.cell.check_graph(claim.job)
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
    findings: dict[str, Any] = {"tried": tried.job}
    checkpoints = checkpoints_of({**findings, "cell": claim.job}, search.seeds, claim.store)
    metric, reached = search.cell.metric, list[float]()
    merit = METRICS[metric].merit

    def report(epoch: int, row: Figures) -> bool:
        if due := (epoch + 1) % REPORT_EVERY == 0:
            value = merit(mean([*reached, row.val_metric]))
            trial.report(value, len(reached) * epochs + epoch + 1)
        return due

    def on_epoch(epoch: int, row: Figures) -> None:
        if report(epoch, row) and trial.should_prune():
            raise optuna.TrialPruned

    def on_resume(history: list[Figures]) -> None:
        # The pruner compares whole curves, and must not miss the epochs of a killed worker.
        for epoch, row in enumerate(history):
            report(epoch, row)
        if trial.should_prune():
            raise optuna.TrialPruned

    try:
        for cell, checkpoint in zip(cells, checkpoints, strict=True):
            result = cell.train(
                checkpoint,
                checkpoint_every=CHECKPOINT_EVERY,
                on_epoch=on_epoch,
                on_resume=on_resume,
            )
            reached.append(result.val_metric)
            if result.diverged:
                findings["diverged"] = diverged(result.history)
        values = "val_accuracies" if metric == "accuracy" else f"val_{metric}"
        claim.finish(merit(mean(reached)), {**findings, values: reached})
    except optuna.TrialPruned:
        claim.finish(None, findings)
    for checkpoint in checkpoints:
        remove_checkpoint(checkpoint)
    value = f"{mean(reached):.3f}" if len(reached) == len(cells) else "pruned"
    return f"try {number}: {value} with {json.dumps(settings)}"


def best_table(
    trials: list[FrozenTrial], importances: Mapping[str, float], metric: str = "accuracy"
) -> Table:
    """Return the best trials with their settings, and the importance of each setting."""
    shares = ", ".join(f"{name} {share:.2f}" for name, share in importances.items())
    # As Text, in which square brackets are no markup: names and choices are the user's.
    caption = Text(f"importance of each setting: {shares}") if shares else None
    found = METRICS[metric]
    shown = Table("trial", f"validation {found.words}", "settings", caption=caption)
    for trial in trials[:SHOWN]:
        settings = (
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in trial.params.items()
        )
        mark = " (diverged)" if "diverged" in trial.user_attrs else ""
        value = f"{found.text(found.merit(trial.values[0]))}{mark}"
        shown.add_row(str(trial.number), value, Text(", ".join(settings)))
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


def diverged_tries(store: Store) -> list[str]:
    """Return a line for every trial in which training diverged, with what to try."""
    return [
        f"try {trial.user_attrs['cell']['try']} with {trial.params}: "
        + advice_on_divergence(trial.user_attrs["diverged"], True)
        for trial in store.trials(TrialState.COMPLETE, TrialState.PRUNED)
        if "diverged" in trial.user_attrs
    ]


def trial_counts(store: Store, metric: str = "accuracy") -> str:
    """Return how many trials there were, in words."""
    states = TrialState.COMPLETE, TrialState.PRUNED
    complete, pruned = (len(store.trials(state)) for state in states)
    lost = sum("diverged" in trial.user_attrs for trial in store.trials(*states))
    rule = "at the epoch that the protocol selects, no test node used"
    value = f"validation {METRICS[metric].words} {rule}"
    also = f", {lost} diverged" if lost else ""
    return f"{complete} trials trained to the end, {pruned} pruned{also}; {value}."


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


def save_trials(store: Store, file: Path, metric: str = "accuracy") -> None:
    """Write a CSV with a row for every trial."""
    rows = [
        {
            "trial": trial.number,
            "state": trial.state.name.lower(),
            f"val_{metric}": METRICS[metric].merit(trial.values[0]) if trial.values else None,
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
