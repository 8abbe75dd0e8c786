"""The run store: a queue and a database of cells on Optuna, in which every cell is run by one worker, once.

A cell is a trial. Optuna's own queue makes up a new trial when it is empty, so cells are claimed here.

Who is alive? On SQLite every worker is on this machine, and holds a file lock for as long as its process lives: a running trial
whose lock is free has lost its worker, whatever became of it. In a database that many machines share a worker's heartbeat tells.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import optuna
import pandas as pd
from filelock import FileLock, Timeout
from optuna.artifacts import FileSystemArtifactStore, upload_artifact
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from eamp.experiments.cell import Cell
from eamp.experiments.storage import MAX_ATTEMPTS, open_storage

ALIVE = (TrialState.WAITING, TrialState.RUNNING, TrialState.COMPLETE)


@dataclass
class Claim:
    """A cell that is this worker's to run. Leaving the ``with`` block without a result gives it back."""

    store: Store
    number: int
    trial_id: int
    cell: Cell
    lock: FileLock | None

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.lock is not None:
            self.lock.release()

    def beat(self) -> None:
        """Tell other machines that this worker lives."""
        if self.lock is None:
            self.store.storage.record_heartbeat(self.trial_id)

    def report(self, value: float, step: int) -> None:
        """A point of the curve that the dashboard draws."""
        self.store.storage.set_trial_intermediate_value(self.trial_id, step, value)

    def finish(self, value: float, findings: dict[str, Any]) -> None:
        """Keep the findings, and the cell is done."""
        for name, finding in findings.items():
            self.store.storage.set_trial_user_attr(self.trial_id, name, finding)
        self.store.storage.set_trial_state_values(self.trial_id, TrialState.COMPLETE, [value])

    def fail(self, reason: str) -> None:
        """The cell itself is at fault: it is not tried again unless asked for."""
        self.store.storage.set_trial_user_attr(self.trial_id, "error", reason)
        self.store.storage.set_trial_state_values(self.trial_id, TrialState.FAIL)

    def attach(self, file: Path) -> None:
        """Keep a file with the trial."""
        upload_artifact(
            artifact_store=self.store.artifacts,
            file_path=str(file),
            study_or_trial=self.store.storage.get_trial(self.trial_id),
            storage=self.store.storage,
        )


class Store:
    """The cells of one study in one database.

    Args:
        folder: for artifacts, checkpoints and, unless ``url`` says otherwise, the database.
        study: the name of the study.
        url: of a database that many machines share, as in ``postgresql://user@host/runs``.
    """

    def __init__(self, folder: Path, study: str, url: str | None = None) -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder / 'runs.db'}"
        self.storage = open_storage(self.url)
        self.study = optuna.create_study(storage=self.storage, study_name=study, direction="maximize", load_if_exists=True)
        for part in ("artifacts", "checkpoints", "locks"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        self.artifacts = FileSystemArtifactStore(folder / "artifacts")

    @property
    def local(self) -> bool:
        """Whether every worker is on this machine."""
        return self.url.startswith("sqlite")

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        """The trials of cells, in those states or in any."""
        found = self.study.get_trials(deepcopy=False, states=states or None)
        return [trial for trial in found if "cell" in trial.user_attrs]

    def enqueue(self, cells: Iterable[Cell], retry_failed: bool = False) -> None:
        """Put into the queue what is not there yet: neither waiting, nor running, nor finished, nor failed for a reason of its own."""
        settled, attempts = set(), dict[str, int]()
        for trial in self.trials():
            key = cell_key(trial)
            attempts[key] = max(attempts.get(key, 0), trial.user_attrs["attempt"])
            if trial.state in ALIVE or ("error" in trial.user_attrs and not retry_failed):
                settled.add(key)
        for cell in cells:
            if cell.key not in settled:
                self.add(asdict(cell), attempts.get(cell.key, 0) + 1)

    def add(self, cell: dict[str, Any], attempt: int) -> None:
        """A waiting trial. The number of the attempt makes it another for Optuna, which then skips only true repetitions."""
        params = {"cell": json.dumps(cell, sort_keys=True), "attempt": attempt}
        self.study.enqueue_trial(params, user_attrs={"cell": cell, "attempt": attempt}, skip_if_exists=True)

    def claim(self) -> Claim | None:
        """The first waiting cell, now running and this process's; ``None`` where nothing waits."""
        for trial in self.trials(TrialState.WAITING):
            lock = self.lock_of(trial)
            if lock is not None and not taken(lock):
                continue
            if lock is None:
                self.storage.record_heartbeat(trial._trial_id)  # before it runs: a worker killed in between would never be missed
            if self.is_first_of_its_kind(trial) and self.start(trial):
                self.storage.set_trial_user_attr(trial._trial_id, "worker", f"{socket.gethostname()}:{os.getpid()}")
                return Claim(self, trial.number, trial._trial_id, Cell(**trial.user_attrs["cell"]), lock)
            if lock is not None:
                lock.release()
        return None

    def start(self, trial: FrozenTrial) -> bool:
        """From waiting to running; false where another worker was faster."""
        try:
            return self.storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING)
        except UpdateFinishedTrialError:
            return False

    def is_first_of_its_kind(self, trial: FrozenTrial) -> bool:
        """Two processes that fill the queue at the same moment may both add a cell: the later one is taken out again."""
        key = cell_key(trial)
        if not any(other.number < trial.number and cell_key(other) == key for other in self.trials(*ALIVE)):
            return True
        with suppress(UpdateFinishedTrialError):  # by another worker
            self.storage.set_trial_state_values(trial._trial_id, TrialState.PRUNED)
        return False

    def recover(self) -> int:
        """Put the cells of lost workers back into the queue; the value is how many are still running elsewhere."""
        if not self.local:
            fail_stale_trials(self.study)
            return len(self.trials(TrialState.RUNNING))
        alive = 0
        for trial in self.trials(TrialState.RUNNING):
            lock = self.lock_of(trial)
            if lock is None or not taken(lock):
                alive += 1
                continue
            try:
                self.bury(trial)
            finally:
                lock.release()
        return alive

    def bury(self, trial: FrozenTrial) -> None:
        """Mark a trial that lost its worker, and queue its cell again."""
        attempt = trial.user_attrs["attempt"]
        try:
            if attempt >= MAX_ATTEMPTS:
                self.storage.set_trial_user_attr(trial._trial_id, "error", f"{attempt} workers died over it")
            self.storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
        except UpdateFinishedTrialError:
            return  # it had finished after all, or was buried by another
        if attempt < MAX_ATTEMPTS:
            self.add(trial.user_attrs["cell"], attempt + 1)

    def lock_of(self, trial: FrozenTrial) -> FileLock | None:
        """The file that its worker holds."""
        return FileLock(self.folder / "locks" / f"{self.study.study_name}-{trial.number}.lock") if self.local else None

    def checkpoint(self, cell: Cell) -> Path:
        """Where a cell keeps what it has reached."""
        return self.folder / "checkpoints" / f"{hashlib.sha256(cell.key.encode()).hexdigest()[:32]}.safetensors"

    def table(self, cells: Iterable[Cell]) -> pd.DataFrame:
        """A row for each of those cells that is finished, in their order."""
        found = {cell_key(trial): trial.user_attrs for trial in self.trials(TrialState.COMPLETE)}
        return pd.DataFrame([{**asdict(cell), **findings(found[cell.key])} for cell in cells if cell.key in found])

    def failures(self) -> list[tuple[Cell, str]]:
        """Cells that failed for a reason of their own, with it."""
        return [
            (Cell(**trial.user_attrs["cell"]), trial.user_attrs["error"])
            for trial in self.trials(TrialState.FAIL)
            if "error" in trial.user_attrs
        ]


def findings(attributes: dict[str, Any]) -> dict[str, Any]:
    """What a trial found, without what the queue needed."""
    return {name: value for name, value in attributes.items() if name not in ("cell", "attempt", "worker") and ":" not in name}


def cell_key(trial: FrozenTrial) -> str:
    """The same as :attr:`Cell.key`."""
    return json.dumps(trial.user_attrs["cell"], sort_keys=True)


def taken(lock: FileLock) -> bool:
    """Take a lock if it is free."""
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True
