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
from optuna.storages import RDBStorage
from sqlalchemy import Connection, event, make_url
from sqlalchemy.exc import SQLAlchemyError

HEARTBEAT, GRACE = 15, 120  # seconds between two heartbeats, and after which a silent worker counts as lost
PATIENCE = 120  # seconds to wait for other writers of a SQLite file

warnings.filterwarnings("ignore", category=ExperimentalWarning)  # what Optuna calls heartbeats and artifacts
optuna.logging.set_verbosity(optuna.logging.WARNING)


class StoreError(ValueError):
    """A store that cannot be opened, or is not what it was taken for."""


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database; ``None`` for any other."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:") else None


def open_storage(url: str) -> RDBStorage:
    """Optuna's storage at ``url``; on SQLite with transactions that do not interleave."""
    file = sqlite_file(url)
    try:
        if file is None:
            return RDBStorage(url, {"pool_pre_ping": True}, heartbeat_interval=HEARTBEAT, grace_period=GRACE)
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock"):  # two processes that make the tables at once would trip over each other
            storage = RDBStorage(url, {"connect_args": {"timeout": PATIENCE}}, heartbeat_interval=HEARTBEAT, grace_period=GRACE)
    except (SQLAlchemyError, ImportError, OSError) as error:
        raise StoreError(f"the store at {without_password(url)} cannot be opened: {error.__cause__ or error}") from error

    @event.listens_for(storage.engine, "connect")
    def leave_transactions_to_us(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(storage.engine, "begin")
    def begin_as_a_writer(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    storage.engine.dispose()  # connections from before the two rules
    return storage


def without_password(url: str) -> str:
    """The address as it may be shown."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except SQLAlchemyError:
        return "an address that is none, as postgresql://user@host/database would be"
