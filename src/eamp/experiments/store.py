"""The run store: a queue and a database of jobs on Optuna, in which every job is done by one worker, once.

A job is what a worker has to know, as JSON: the cell of a sweep, or a try of a search. Every attempt at it is a trial, which keeps the
job in its user attribute ``cell``. Optuna's own queue makes up a new trial when it is empty, so jobs are claimed here.

Who is alive? On SQLite every worker is on this machine, and holds a file lock for as long as its process lives: a running trial
whose lock is free has lost its worker, whatever became of it. In a database that many machines share a worker's heartbeat tells.

What if two processes queue the same job, or the same attempt? The first of the trials counts, by its number, whatever becomes of it;
the others never run. So no step needs another one to follow it, and a process may be killed between any two.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import optuna
from filelock import FileLock, Timeout
from optuna.artifacts import FileSystemArtifactStore, upload_artifact
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from eamp.experiments.database import StoreError, open_storage, sqlite_file, without_password

Job = dict[str, Any]
MAX_ATTEMPTS = 20  # a job that has lost this many workers is likely what kills them


@dataclass
class Claim:
    """A job that is this worker's to do. Leaving the ``with`` block without a result gives it back."""

    store: Store
    trial_id: int
    job: Job
    lock: FileLock | None

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.lock is not None:
            self.lock.release()
        elif kind is not None:
            with suppress(UpdateFinishedTrialError):
                self.store.storage.set_trial_state_values(self.trial_id, TrialState.FAIL)

    def beat(self) -> None:
        """Tell other machines that this worker lives."""
        if self.lock is None:
            self.store.storage.record_heartbeat(self.trial_id)

    def report(self, value: float, step: int) -> None:
        """A point of the curve that the dashboard draws."""
        self.store.storage.set_trial_intermediate_value(self.trial_id, step, value)

    def attach(self, file: Path) -> None:
        """Keep a file with the trial."""
        upload_artifact(
            artifact_store=self.store.artifacts,
            file_path=str(file),
            study_or_trial=self.store.storage.get_trial(self.trial_id),
            storage=self.store.storage,
        )

    def finish(self, value: float | None, findings: dict[str, Any]) -> None:
        """Keep the findings, and the job is done; without a value it was not worth going on with."""
        for name, finding in findings.items():
            self.store.storage.set_trial_user_attr(self.trial_id, name, finding)
        if value is None:
            self.store.storage.set_trial_state_values(self.trial_id, TrialState.PRUNED)
        else:
            self.store.storage.set_trial_state_values(self.trial_id, TrialState.COMPLETE, [value])

    def fail(self, reason: str) -> None:
        """The job itself is at fault: it is not tried again unless asked for."""
        self.store.storage.set_trial_user_attr(self.trial_id, "error", reason)
        self.store.storage.set_trial_state_values(self.trial_id, TrialState.FAIL)


class Store:
    """The jobs of one study in one database.

    Args:
        folder: for artifacts, checkpoints and, unless ``url`` says otherwise, the database.
        study: the name of the study.
        url: of a database that many machines share, as in ``postgresql://user@host/runs``.
    """

    def __init__(self, folder: Path, study: str, url: str | None = None) -> None:
        self.folder = folder
        self.url = url or address(folder)
        self.storage = open_storage(self.url)
        self.study = optuna.create_study(
            storage=self.storage, study_name=study, direction="maximize", load_if_exists=True
        )
        for part in ("artifacts", "checkpoints"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        self.artifacts = FileSystemArtifactStore(folder / "artifacts")

    @classmethod
    def existing(cls, folder: Path, study: str | None = None, url: str | None = None) -> Store:
        """The store of a study that is there already; its name may be left out where it is the only one."""
        url = url or address(folder)
        if (file := sqlite_file(url)) is not None and not file.exists():
            raise StoreError(f"there is no store at {file}; `eamp sweep` and `eamp tune` make one.")
        names = optuna.get_all_study_names(open_storage(url))
        if study is None and len(names) == 1:
            study = names[0]
        if study not in names:
            there = f"there are {', '.join(map(repr, names))}" if names else "there is none"
            asked = (
                "one of several studies must be named"
                if study is None and names
                else f"no study {study or ''}".rstrip()
            )
            raise StoreError(f"{asked} in {without_password(url)}: {there}.")
        return cls(folder, study, url)

    @property
    def local(self) -> bool:
        """Whether every worker is on this machine."""
        return sqlite_file(self.url) is not None

    # --- What there is ------------------------------------------------------------------------------------------------

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        """The trials of jobs, in those states or in any, by number."""
        found = self.study.get_trials(deepcopy=False, states=states or None)
        return [trial for trial in found if "cell" in trial.user_attrs]

    def latest(self) -> dict[str, FrozenTrial]:
        """Of every job the trial that counts."""
        return counting(self.trials())

    def unsettled(self) -> bool:
        """Whether anything is left to do, or may come back because its worker is lost."""
        return not all(map(settled, self.latest().values()))

    def checkpoint(self, key: str) -> Path:
        """Where a network keeps what it has reached. Another study's is another file: each clears up after itself."""
        digest = hashlib.sha256(f"{self.study.study_name}\n{key}".encode()).hexdigest()
        return self.folder / "checkpoints" / f"{digest[:32]}.safetensors"

    # --- Adding, taking, and taking back ------------------------------------------------------------------------------

    def enqueue(self, jobs: Iterable[Job], retry_failed: bool = False) -> None:
        """Put into the queue what has never been there; with ``retry_failed``, what failed for a reason of its own, too."""
        counted = self.latest()
        for job in jobs:
            trial = counted.get(job_key(job))
            if trial is None:
                self.add(job)
            elif retry_failed and failure(trial) is not None:
                self.add(job, after=trial)

    def add(self, job: Job, after: FrozenTrial | None = None) -> None:
        """A waiting trial; ``after`` one that failed it tries the same parameters."""
        attempt = after.user_attrs["attempt"] + 1 if after else 1
        system_attrs = {"fixed_params": after.params} if after and after.params else None
        self.study.add_trial(
            optuna.create_trial(
                state=TrialState.WAITING,
                user_attrs={"cell": job, "attempt": attempt},
                system_attrs=system_attrs,
            )
        )

    def claim(self) -> Claim | None:
        """The first waiting job, now running and this process's; ``None`` where nothing waits."""
        for trial in self.latest().values():
            if trial.state != TrialState.WAITING:
                continue
            lock = self.lock_of(trial)
            if lock is not None and not taken(lock):
                continue
            if lock is None:
                self.storage.record_heartbeat(
                    trial._trial_id
                )  # before it runs: a worker killed in between would never be missed
            if self.start(trial):
                return Claim(self, trial._trial_id, trial.user_attrs["cell"], lock)
            if lock is not None:
                lock.release()
        return None

    def start(self, trial: FrozenTrial) -> bool:
        """From waiting to running; false where another worker was faster."""
        try:
            if not self.storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING):
                return False
            self.storage.set_trial_user_attr(
                trial._trial_id, "worker", f"{socket.gethostname()}:{os.getpid()}"
            )
        except UpdateFinishedTrialError:
            return False
        return True

    def recover(self) -> bool:
        """Queue the jobs of lost workers again, and put duplicates away; the value is whether there was anything to queue."""
        self.fail_lost()
        trials = self.trials()
        counted = counting(trials).values()
        lost = [trial for trial in counted if trial.state == TrialState.FAIL and not settled(trial)]
        for trial in lost:
            self.add(trial.user_attrs["cell"], after=trial)
        numbers = {trial.number for trial in counted}
        for trial in trials:
            if trial.state == TrialState.WAITING and trial.number not in numbers:
                self.fail_if_unfinished(trial)
        return bool(lost)

    def fail_lost(self) -> None:
        """Mark running trials that have lost their worker."""
        if not self.local:
            fail_stale_trials(self.study)
            return
        for trial in self.trials(TrialState.RUNNING):
            lock = self.lock_of(trial)
            if lock is not None and taken(lock):
                self.fail_if_unfinished(trial)  # it may have finished since it was read
                lock.release()

    def fail_if_unfinished(self, trial: FrozenTrial) -> None:
        """Mark a trial as failed, for no reason of its job's own."""
        with suppress(UpdateFinishedTrialError):
            self.storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)

    def lock_of(self, trial: FrozenTrial) -> FileLock | None:
        """The file that its worker holds, beside the database, wherever the worker keeps its checkpoints."""
        if not self.local or (file := sqlite_file(self.url)) is None:
            return None
        folder = file.with_name(f"{file.name}.locks")
        folder.mkdir(exist_ok=True)
        return FileLock(folder / f"{trial._trial_id}.lock")


def address(folder: Path) -> str:
    """Of the database in a folder."""
    return f"sqlite:///{folder / 'runs.db'}"


def job_key(job: Job) -> str:
    """All of it as text, the same for the same job."""
    return json.dumps(job, sort_keys=True)


def counting(trials: Iterable[FrozenTrial]) -> dict[str, FrozenTrial]:
    """Of every job the trial that counts: of its last attempt, and of several of those the first."""
    counted: dict[str, FrozenTrial] = {}
    for trial in trials:
        key = job_key(trial.user_attrs["cell"])
        if key not in counted or trial.user_attrs["attempt"] > counted[key].user_attrs["attempt"]:
            counted[key] = trial
    return counted


def settled(trial: FrozenTrial) -> bool:
    """Whether nothing is left to do for the job of a trial that counts."""
    return trial.state in (TrialState.COMPLETE, TrialState.PRUNED) or failure(trial) is not None


def failure(trial: FrozenTrial) -> str | None:
    """Why a failed job is not tried again; ``None`` where it is."""
    if trial.state != TrialState.FAIL:
        return None
    if trial.user_attrs["attempt"] >= MAX_ATTEMPTS:
        return trial.user_attrs.get("error", f"its worker was lost {MAX_ATTEMPTS} times")
    return trial.user_attrs.get("error")


def taken(lock: FileLock) -> bool:
    """Take a lock if it is free."""
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True
