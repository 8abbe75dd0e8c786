"""Optuna's database, made safe for several workers.

On SQLite Optuna can hand one trial to two workers: its ``SELECT ... FOR UPDATE`` does nothing there, and SQLite starts a transaction as
a reader. Here every transaction starts as a writer, so that they come one after the other.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock
from optuna.exceptions import ExperimentalWarning
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from sqlalchemy import Connection, event

HEARTBEAT, GRACE = 15, 120  # seconds between two heartbeats, and after which a silent worker counts as lost
MAX_ATTEMPTS = 20  # a cell that has lost this many workers is likely what kills them

warnings.filterwarnings("ignore", category=ExperimentalWarning)  # what Optuna calls heartbeats and artifacts
optuna.logging.set_verbosity(optuna.logging.WARNING)


def open_storage(url: str) -> RDBStorage:
    """Optuna's storage at ``url``; on SQLite with transactions that do not interleave."""
    if not url.startswith("sqlite"):
        return RDBStorage(
            url,
            engine_kwargs={"pool_pre_ping": True},
            heartbeat_interval=HEARTBEAT,
            grace_period=GRACE,
            heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(MAX_ATTEMPTS),
        )
    file = Path(url.removeprefix("sqlite:///"))
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{file}.lock"):  # two processes that make the tables at once would trip over each other
        storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 120}})

    @event.listens_for(storage.engine, "connect")
    def leave_transactions_to_us(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(storage.engine, "begin")
    def begin_as_a_writer(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    storage.engine.dispose()  # connections from before the two rules
    return storage
