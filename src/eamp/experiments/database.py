"""Optuna's storage, made safe for several workers.

- On SQLite, Optuna can give one trial to two workers: its ``SELECT ... FOR UPDATE`` does nothing
  there, and SQLite starts a transaction as a reader. Here every transaction starts as a writer, so
  that transactions run one after the other.
- On PostgreSQL, Optuna writes and compares heartbeats in the time zone of each connection. Workers
  in other time zones, and all workers when summer time begins, would seem to have been silent for
  an hour. Here every connection uses UTC.
- On both, processes that create the tables of a new database at the same moment would fail. Here
  they take a lock.
"""

import os
import re
import warnings
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from eamp.optional import extra

with extra("experiments"):
    import optuna
    from filelock import FileLock
    from optuna.exceptions import ExperimentalWarning
    from optuna.storages import RDBStorage
    from sqlalchemy import Connection, Engine, NullPool, create_engine, event, make_url, text
    from sqlalchemy.exc import SQLAlchemyError

HEARTBEAT = 15  # seconds between two heartbeats of a worker
GRACE_PERIOD = 120  # seconds without a heartbeat after which a worker counts as lost
LOCK_TIMEOUT = 120  # seconds to wait for other writers of a SQLite file
ADVISORY_LOCK = 0x65616D70  # PostgreSQL's locks are named by numbers; this one is "eamp" in ASCII

warnings.filterwarnings("ignore", category=ExperimentalWarning)  # of heartbeats and artifacts
optuna.logging.set_verbosity(optuna.logging.WARNING)


class StoreError(ValueError):
    """A store that cannot be opened, or holds something else than expected."""


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite database, or ``None`` for any other database."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:") else None


def open_storage(url: str) -> RDBStorage:
    """Open Optuna's storage at ``url`` for use by several workers, or raise a StoreError."""
    file, shown = sqlite_file(url), without_password(url)
    # The driver of eamp[postgresql]; SQLAlchemy's own choice depends on its version.
    url = re.sub("^postgres(ql)?://", "postgresql+psycopg://", url)
    options: dict[str, Any] = (
        {"pool_pre_ping": True} if file is None else {"connect_args": {"timeout": LOCK_TIMEOUT}}
    )
    try:
        with table_creation_lock(url):
            storage = RDBStorage(
                url, options, heartbeat_interval=HEARTBEAT, grace_period=GRACE_PERIOD
            )
    except (SQLAlchemyError, ImportError, OSError) as error:
        driverless = isinstance(error, ImportError) and url.startswith("postgresql+psycopg:")
        advice = '; install it with `pip install "eamp[postgresql]"`' if driverless else ""
        reason = str(error.__cause__ or error).rstrip()
        raise StoreError(f"the store at {shown} cannot be opened: {reason}{advice}") from error
    if file is not None:
        begin_as_writer(storage.engine)
    elif storage.engine.dialect.name == "postgresql":
        use_utc(storage.engine)
    storage.engine.dispose()  # closes connections that were opened before these rules
    # Nobody else closes the connections: Python 3.13 warns of each that is left open.
    weakref.finalize(storage, close_connections, storage.engine, os.getpid()).atexit = False
    return storage


def close_connections(engine: Engine, process: int) -> None:
    """Close the connections of an engine, in the process that has opened it."""
    if os.getpid() == process:  # a forked process shares the connections of its parent
        engine.dispose()


@contextmanager
def table_creation_lock(url: str) -> Iterator[None]:
    """Keep other processes from creating the tables of this database at the same time."""
    if (file := sqlite_file(url)) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock"):
            yield
    elif url.startswith("postgresql"):
        with create_engine(url, poolclass=NullPool).begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:name)"), {"name": ADVISORY_LOCK})
            yield
    else:
        yield


def begin_as_writer(engine: Engine) -> None:
    """Begin every transaction on a SQLite database as a writer."""

    @event.listens_for(engine, "connect")
    def leave_transactions_to_us(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def use_utc(engine: Engine) -> None:
    """Set the time zone of every connection to UTC."""

    @event.listens_for(engine, "connect")
    def set_time_zone(connection: Any, record: Any) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
        connection.commit()


def without_password(url: str) -> str:
    """Return the address with its password hidden, or raise a StoreError for a malformed one."""
    try:
        address = make_url(url)
    except (SQLAlchemyError, ValueError):  # the error's text may hold the password
        example = "postgresql://user@host/database or sqlite:///file"
        raise StoreError(f"the address of a store must be one like {example}.") from None
    if "@" in (address.host or ""):
        raise StoreError(
            "in the address of a store an @ that belongs to the password must be written as %40."
        )
    hidden = {name: "hidden" for name in address.query if "password" in name}
    return address.update_query_dict(hidden).render_as_string(hide_password=True)
