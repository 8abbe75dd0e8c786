"""The run store: a queue and a database of jobs on Optuna, in which each job is done once.

A job is a JSON object with everything that a worker needs: the cell of a sweep, or a try of a
search. Each attempt at a job is an Optuna trial, which keeps the job in its user attribute
``cell``. Optuna's own queue invents a new trial when it is empty, so jobs are claimed here.

A job is *settled* when nothing is left to do for it: it has finished, it was pruned, or it has
failed for a reason that another attempt would meet again. Faults of the environment, such as a full
disk, are no such reason: the job waits again behind all others. After ``MAX_FAULTS`` of them it
counts as failed until jobs are queued again, by the next call of the same command.

Lost workers: on SQLite all workers run on one machine, and each holds a file lock for as long as
its process lives, so a running trial whose lock is free has lost its worker. In a database that
many machines share, workers are known by their heartbeats.

Two processes may queue the same job or the same attempt. The trial with the lowest number counts,
and the others never run. So a process may be killed between any two writes.
"""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eamp.experiments.database import StoreError, open_storage, sqlite_file, without_password
from eamp.experiments.schema import Job, job_key
from eamp.files import check_writable, to_json
from eamp.optional import extra

with extra("experiments"):
    import optuna
    from filelock import FileLock, Timeout
    from optuna.artifacts import FileSystemArtifactStore, upload_artifact
    from optuna.exceptions import UpdateFinishedTrialError
    from optuna.storages import fail_stale_trials
    from optuna.trial import FrozenTrial, TrialState

MAX_ATTEMPTS = 20  # a job that has lost this many workers is likely the cause
MAX_FAULTS = 3  # attempts that the environment may end before the job is left for the next call


@dataclass
class Claim:
    """A job that this worker does. Leaving the ``with`` block without a result gives it back."""

    store: Store
    trial_id: int
    job: Job
    lock: FileLock | None

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.lock is not None:
            self.lock.release()
        elif kind is not None:
            self.store.fail_if_unfinished(self.trial_id)

    def beat(self) -> None:
        """Write a heartbeat, by which other machines know that this worker is alive."""
        if self.lock is None:
            self.store.storage.record_heartbeat(self.trial_id)

    def report(self, value: float, step: int) -> None:
        """Add a point to the curve that the dashboard draws."""
        self.store.storage.set_trial_intermediate_value(self.trial_id, step, value)

    def attach(self, name: str, content: object) -> None:
        """Keep a JSON file with the trial; numbers in it that are not finite become null."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.write_text(to_json(content), encoding="utf-8")
            upload_artifact(
                artifact_store=self.store.artifacts,
                file_path=str(file),
                study_or_trial=self.store.storage.get_trial(self.trial_id),
                storage=self.store.storage,
            )

    def finish(self, value: float | None, findings: dict[str, Any]) -> None:
        """Save the findings and mark the job as finished, or as pruned if there is no value."""
        for name, finding in findings.items():
            self.store.storage.set_trial_user_attr(self.trial_id, name, finding)
        end = (TrialState.PRUNED, None) if value is None else (TrialState.COMPLETE, [value])
        self.store.storage.set_trial_state_values(self.trial_id, *end)

    def fail(self, reason: str) -> None:
        """Mark the job itself as at fault; it is tried again only with ``retry_failed``."""
        self.store.storage.set_trial_user_attr(self.trial_id, "error", reason)
        self.store.storage.set_trial_state_values(self.trial_id, TrialState.FAIL)

    def give_back(self, reason: str) -> None:
        """Mark the attempt as ended by the environment; :meth:`Store.recover` queues the job."""
        trial = self.store.storage.get_trial(self.trial_id)
        faults = trial.user_attrs.get("faults", 0) + 1
        for name, value in {"faults": faults, "fault": reason}.items():  # a fault has a number
            self.store.storage.set_trial_user_attr(self.trial_id, name, value)
        self.store.storage.set_trial_state_values(self.trial_id, TrialState.FAIL)


class Store:
    """The jobs of one study in one database.

    Args:
        folder: where artifacts, checkpoints and, without ``url``, the database are kept.
        study: the name of the study.
        url: a database that many machines share, as in ``postgresql://user@host/runs``.
    """

    def __init__(self, folder: str | Path, study: str, url: str | None = None) -> None:
        self.folder = folder = Path(folder)
        if url is None:
            check_writable(folder)
        self.url = url or address(folder)
        self.storage = open_storage(self.url)
        self.study = optuna.create_study(
            storage=self.storage, study_name=study, direction="maximize", load_if_exists=True
        )
        for part in ("artifacts", "checkpoints"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        self.artifacts = FileSystemArtifactStore(folder / "artifacts")

    @classmethod
    def existing(
        cls, folder: str | Path, study: str | None = None, url: str | None = None
    ) -> Store:
        """Open the store of a study that exists; a name is needed only if there are several."""
        url = url or address(Path(folder))
        if (file := sqlite_file(url)) is not None and not file.exists():
            raise StoreError(f"there is no store at {file}; `eamp sweep` and `eamp tune` make one.")
        names = optuna.get_all_study_names(open_storage(url))
        if study is None and len(names) == 1:
            study = names[0]
        if study not in names:
            there = f"there are {', '.join(map(repr, names))}" if names else "there is none"
            asked = f"no study {study or ''}".rstrip()
            if study is None and names:
                asked = "one of several studies must be named"
            raise StoreError(f"{asked} in {without_password(url)}: {there}.")
        return cls(folder, study, url)

    @property
    def local(self) -> bool:
        """Whether all workers are on this machine."""
        return sqlite_file(self.url) is not None

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        """Return the trials of jobs that are in one of the states, or all of them, by number."""
        found = self.study.get_trials(deepcopy=False, states=states or None)
        return [trial for trial in found if "cell" in trial.user_attrs]

    def latest(self) -> dict[str, FrozenTrial]:
        """Return the trial that counts of every job, by the job's key."""
        return counting(self.trials())

    def unsettled(self) -> bool:
        """Return whether a job waits, runs, or may come back because its worker is lost."""
        return not all(map(settled, self.latest().values()))

    def checkpoint(self, key: str) -> Path:
        """Return the checkpoint file of a job in this study."""
        digest = hashlib.sha256(f"{self.study.study_name}\n{key}".encode()).hexdigest()
        return self.folder / "checkpoints" / f"{digest[:32]}.safetensors"

    def enqueue(self, jobs: Iterable[Job], retry_failed: bool = False) -> None:
        """Queue the jobs that were never queued, and those that the environment made fail.

        With ``retry_failed``, all jobs that failed are queued again.
        """
        counted = self.latest()
        for key, job in {job_key(job): job for job in jobs}.items():
            trial = counted.get(key)
            if trial is None:
                self.add(job)
            elif failure(trial) is not None and (retry_failed or "fault" in trial.user_attrs):
                self.add(job, after=trial)

    def add(
        self, job: Job, after: FrozenTrial | None = None, params: dict[str, Any] | None = None
    ) -> None:
        """Add a waiting trial, with ``params`` or those of the failed trial ``after``."""
        attrs = {"cell": job, "attempt": after.user_attrs["attempt"] + 1 if after else 1}
        if after and "faults" in after.user_attrs:
            attrs["faults"] = after.user_attrs["faults"]
        fixed = {"fixed_params": (after.params if after else params) or {}}
        trial = optuna.create_trial(state=TrialState.WAITING, user_attrs=attrs, system_attrs=fixed)
        self.study.add_trial(trial)

    def claim(self) -> Claim | None:
        """Start a waiting job in this process, those with the fewest faults first, if any waits."""
        trials = self.latest().values()
        for trial in sorted(trials, key=lambda trial: trial.user_attrs.get("faults", 0)):
            if trial.state != TrialState.WAITING:
                continue
            lock = self.lock_of(trial)
            if lock is not None and not acquired(lock):
                continue
            if lock is None:
                # First, because a worker that is killed before its first heartbeat is never missed.
                self.storage.record_heartbeat(trial._trial_id)
            with suppress(UpdateFinishedTrialError):  # another worker has taken and finished it
                if self.storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING):
                    worker = f"{socket.gethostname()}:{os.getpid()}"
                    self.storage.set_trial_user_attr(trial._trial_id, "worker", worker)
                    return Claim(self, trial._trial_id, trial.user_attrs["cell"], lock)
            if lock is not None:
                lock.release()
        return None

    def recover(self) -> bool:
        """Queue the jobs of lost workers again, fail duplicates; return whether a job was lost."""
        self.fail_lost()
        trials = self.trials()
        counted = counting(trials).values()
        lost = [trial for trial in counted if trial.state == TrialState.FAIL and not settled(trial)]
        for trial in lost:
            self.add(trial.user_attrs["cell"], after=trial)
        numbers = {trial.number for trial in counted}
        for trial in trials:
            if trial.state == TrialState.WAITING and trial.number not in numbers:
                self.fail_if_unfinished(trial._trial_id)
        return bool(lost)

    def fail_lost(self) -> None:
        """Mark running trials that have lost their worker as failed."""
        if not self.local:
            fail_stale_trials(self.study)
            return
        for trial in self.trials(TrialState.RUNNING):
            lock = self.lock_of(trial)
            if lock is not None and acquired(lock):
                self.fail_if_unfinished(trial._trial_id)  # it may have finished since it was read
                lock.release()

    def fail_if_unfinished(self, trial_id: int) -> None:
        """Mark a trial as failed without a reason, unless it has finished."""
        with suppress(UpdateFinishedTrialError):
            self.storage.set_trial_state_values(trial_id, TrialState.FAIL)

    def lock_of(self, trial: FrozenTrial) -> FileLock | None:
        """Return the file lock of a trial's worker, if all workers are on this machine."""
        if not self.local or (file := sqlite_file(self.url)) is None:
            return None
        folder = file.with_name(f"{file.name}.locks")
        folder.mkdir(exist_ok=True)
        return FileLock(folder / f"{trial._trial_id}.lock")

    def remove_old_locks(self) -> None:
        """Remove the lock files of trials that have ended."""
        for trial in self.trials(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL):
            if (lock := self.lock_of(trial)) is not None:
                Path(lock.lock_file).unlink(missing_ok=True)


def address(folder: Path) -> str:
    """Return the address of the database in a folder."""
    return f"sqlite:///{folder / 'runs.db'}"


def counting(trials: Iterable[FrozenTrial]) -> dict[str, FrozenTrial]:
    """Return the trial that counts of every job: the first trial of its last attempt."""
    counted: dict[str, FrozenTrial] = {}
    for trial in trials:
        key = job_key(trial.user_attrs["cell"])
        if key not in counted or trial.user_attrs["attempt"] > counted[key].user_attrs["attempt"]:
            counted[key] = trial
    return counted


def settled(trial: FrozenTrial) -> bool:
    """Return whether the job is settled, given its trial that counts."""
    return trial.state in (TrialState.COMPLETE, TrialState.PRUNED) or failure(trial) is not None


def failure(trial: FrozenTrial) -> str | None:
    """Return why a job has failed for good, or ``None`` if it has not or may be tried again."""
    if trial.state != TrialState.FAIL:
        return None
    found = trial.user_attrs
    if "fault" in found:
        return found["fault"] if found["faults"] % MAX_FAULTS == 0 else None
    if found["attempt"] - found.get("faults", 0) >= MAX_ATTEMPTS:
        return found.get("error", f"its worker was lost {MAX_ATTEMPTS} times")
    return found.get("error")


def acquired(lock: FileLock) -> bool:
    """Acquire a lock if it is free, and return whether it was."""
    with suppress(Timeout):
        lock.acquire(blocking=False)
    return lock.is_locked
