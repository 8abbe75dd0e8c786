"""The progress of sweeps and searches: which jobs run, how far they are, and what is left.

A terminal shows it as a bar; elsewhere, as in a log, it is a line now and then.
"""

import sys
import time
from collections.abc import Collection, Mapping
from statistics import median
from typing import Any, NamedTuple

from tqdm import tqdm

from eamp.experiments.schema import Job, job_key, job_label
from eamp.experiments.store import Store, settled
from eamp.optional import extra
from eamp.training.protocols import protocol_of

with extra("experiments"):
    from optuna.trial import FrozenTrial, TrialState

FORMAT = "{desc}{percentage:3.0f}%|{bar:10}| [{elapsed}<{remaining}{postfix}]"
EVERY = 60.0  # seconds between two lines where there is no terminal
ALMOST = 0.95  # the largest share of a running job that counts as done


class Progress(NamedTuple):
    """How far the jobs are.

    Attributes:
        settled: how many jobs have finished or have failed for good.
        done: the same, and the share of every running job that is done.
        running: the running jobs, in words.
    """

    settled: int
    done: float
    running: list[str]


def progress(store: Store, jobs: Collection[Job]) -> Progress:
    """Return how far the jobs are, by the epochs that workers report.

    Early stopping ends most trainings. So a running job is expected to take as many epochs as the
    median finished one and, until one has finished, all epochs of its protocol.
    """
    latest = store.latest()
    trials = [latest[key] for job in jobs if (key := job_key(job)) in latest]
    finished = [reached(each) for each in trials if each.state == TrialState.COMPLETE]
    typical = median(finished) if any(finished) else None
    seeds = store.study.user_attrs.get("search", {}).get("seeds", 1)  # a try trains all of them
    running = [each for each in trials if each.state == TrialState.RUNNING]
    shares = [
        min(reached(each) / (typical or seeds * epochs_of(each.user_attrs["cell"])), ALMOST)
        for each in running
    ]
    names = [f"{job_label(each.user_attrs['cell'])} ({reached(each)} epochs)" for each in running]
    number = sum(map(settled, trials))
    return Progress(number, number + sum(shares), names)


def reached(trial: FrozenTrial) -> int:
    """Return the last epoch that was reported, counted over all seeds of a try."""
    return max(trial.intermediate_values, default=0)


def epochs_of(job: Mapping[str, Any]) -> int:
    """Return the largest number of epochs that a job may train."""
    changes = job.get("changes") or {}
    return protocol_of(job.get("protocol", "standard")).with_changes(**changes).epochs


def say(line: str) -> None:
    """Print a line to standard error, above the bar if there is one."""
    tqdm.write(line, file=sys.stderr)


def plan(store: Store, jobs: Collection[Job], remaining: int, workers: int) -> str:
    """Return what is going to be trained, in words."""
    what = "trials" if any("try" in job for job in jobs) else "networks"
    many = f"{workers} worker{'' if workers == 1 else 's'}"
    return (
        f"Training {remaining} of {len(jobs)} {what} with {many}; logs in {store.folder / 'logs'}"
    )


class Lines:
    """The progress in lines: one when a job has finished, but not more than one a minute.

    Args:
        jobs: the number of all jobs.
        settled: how many of them had finished or failed at the start.
    """

    def __init__(self, jobs: int, settled: int) -> None:
        self.jobs, self.settled, self.due = jobs, settled, time.monotonic()

    def add(self, found: Progress) -> None:
        """Print a line if a job has finished since the last one."""
        if found.settled > self.settled and time.monotonic() >= self.due:
            self.settled, self.due = found.settled, time.monotonic() + EVERY
            running = f"; training {', '.join(found.running)}" if found.running else ""
            say(f"{found.settled}/{self.jobs} finished{running}")


def progress_bar(jobs: int, settled: int, **options: Any) -> tqdm:
    """Return a progress bar of so many jobs; only a terminal shows it."""
    # Without smoothing, the time that is left follows from the mean speed.
    options = {"disable": None, "smoothing": 0, "dynamic_ncols": True, **options}
    return tqdm(total=jobs, initial=settled, bar_format=FORMAT, **options)


def show(bar: tqdm, lines: Lines, found: Progress) -> None:
    """Show the progress as a bar, or in lines where there is no terminal."""
    if bar.disable:
        lines.add(found)
        return
    bar.n = found.done
    bar.set_description_str(f"{found.settled}/{bar.total} ", refresh=False)
    bar.set_postfix_str(", ".join(found.running))
