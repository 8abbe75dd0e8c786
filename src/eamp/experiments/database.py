"""Optuna's database, made safe for several workers.

On SQLite Optuna can hand one trial to two workers: its ``SELECT ... FOR UPDATE`` does nothing there, and SQLite starts a transaction as
a reader. Here every transaction starts as a writer, so that they come one after the other.

On PostgreSQL Optuna writes heartbeats, and compares them, in the time of wherever a connection thinks it is: in spring, when clocks are
put forward, every worker would seem an hour silent, and so would those of a machine in another time zone. Here all use one clock.

On both, those who make the tables of a new database at once would trip over each other. Here they wait.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock
from optuna.exceptions import ExperimentalWarning
from optuna.storages import RDBStorage
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, make_url, text
from sqlalchemy.exc import SQLAlchemyError

HEARTBEAT, GRACE = (
    15,
    120,
)  # seconds between two heartbeats, and after which a silent worker counts as lost
PATIENCE = 120  # seconds to wait for other writers of a SQLite file
TABLES = 0x65616D70  # the name of a lock in PostgreSQL is a number; any will do that is ours alone

warnings.filterwarnings(
    "ignore", category=ExperimentalWarning
)  # what Optuna calls heartbeats and artifacts
optuna.logging.set_verbosity(optuna.logging.WARNING)


class StoreError(ValueError):
    """A store that cannot be opened, or is not what it was taken for."""


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database; ``None`` for any other."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:") else None


def open_storage(url: str) -> RDBStorage:
    """Optuna's storage at ``url``, with what its kind of database needs for several workers."""
    file, shown = sqlite_file(url), without_password(url)
    url = with_driver(url)
    options: dict[str, Any] = (
        {"pool_pre_ping": True} if file is None else {"connect_args": {"timeout": PATIENCE}}
    )
    try:
        with tables_to_itself(url):
            storage = RDBStorage(url, options, heartbeat_interval=HEARTBEAT, grace_period=GRACE)
    except (SQLAlchemyError, ImportError, OSError) as error:
        driverless = isinstance(error, ImportError) and url.startswith("postgresql+psycopg:")
        advice = '; install it with `pip install "eamp[postgresql]"`' if driverless else ""
        raise StoreError(
            f"the store at {shown} cannot be opened: {str(error.__cause__ or error).rstrip()}{advice}"
        ) from error
    if file is not None:
        one_writer_at_a_time(storage.engine)
    elif storage.engine.dialect.name == "postgresql":
        one_clock(storage.engine)
    storage.engine.dispose()  # connections from before these rules
    return storage


@contextmanager
def tables_to_itself(url: str) -> Iterator[None]:
    """Let nobody else make the tables meanwhile."""
    if (file := sqlite_file(url)) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock"):
            yield
    elif url.startswith("postgresql"):
        with create_engine(url, poolclass=NullPool).begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:name)"), {"name": TABLES})
            yield
    else:
        yield


def one_writer_at_a_time(engine: Engine) -> None:
    """Begin every transaction as a writer."""

    @event.listens_for(engine, "connect")
    def leave_transactions_to_us(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin_as_a_writer(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def one_clock(engine: Engine) -> None:
    """Let every connection tell the time of the same place."""

    @event.listens_for(engine, "connect")
    def use_universal_time(connection: Any, record: Any) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
        connection.commit()


# --- Addresses --------------------------------------------------------------------------------------------------------


def with_driver(url: str) -> str:
    """The address with the driver that ``eamp[postgresql]`` installs, where none is named; SQLAlchemy's choice depends on its version."""
    return re.sub("^postgres(ql)?://", "postgresql+psycopg://", url)


def without_password(url: str) -> str:
    """The address as it may be shown; an error for one of which it is not clear what in it is secret."""
    try:
        address = make_url(url)
    except (SQLAlchemyError, ValueError):  # whose words may hold a part of it
        raise StoreError(
            "the address of a store must be one like postgresql://user@host/database or sqlite:///file."
        ) from None
    if "@" in (address.host or ""):
        raise StoreError(
            "in the address of a store an @ that belongs to the password must be written as %40."
        )
    hidden = {name: "hidden" for name in address.query if "password" in name}
    return address.update_query_dict(hidden).render_as_string(hide_password=True)
