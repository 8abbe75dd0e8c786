"""Databases that many machines could share."""

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Pool, event

from experiments.postgresql import Server, missing

NUMBERS = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server. Its folder is not one of pytest's, which only the user who runs the tests can enter."""
    if missing():
        pytest.skip("needs a PostgreSQL server: initdb and postgres (Debian: postgresql)")
    pytest.importorskip("psycopg", reason="needs psycopg, of eamp[postgresql]")
    with tempfile.TemporaryDirectory(prefix="eamp-postgresql-") as folder:
        started = Server(Path(folder))
        try:
            started.start()
            yield started
        finally:
            started.stop()


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    """The address of an empty database, from which all are disconnected in the end."""
    connections: list[Any] = []

    def note(connection: Any, record: Any) -> None:
        if type(connection).__module__.startswith("psycopg"):
            connections.append(connection)

    event.listen(Pool, "connect", note)
    yield server.new_database(f"runs {next(NUMBERS)}")
    event.remove(Pool, "connect", note)
    for connection in connections:
        connection.close()
