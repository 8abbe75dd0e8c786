"""Fixtures for the tests of stores, sweeps and searches."""

import tempfile
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sqlalchemy import Pool, event

from eamp import data
from eamp.experiments import sweep, tune
from eamp.experiments.schema import Job
from eamp.experiments.search import Search
from eamp.experiments.store import Store
from eamp.experiments.worker import work
from experiments.postgresql import Server, missing

NUMBERS = count()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """On a busy machine, threads that wait for each other slow tiny networks down many times."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Run the jobs of sweeps and searches in this process; the value lists how many each ran."""
    done: list[int] = []

    def run_jobs(
        store: Store, jobs: Collection[Job], workers: int, retry_failed: bool = False
    ) -> None:
        store.enqueue(jobs, retry_failed)
        run_job = sweep.run_cell if Search.saved_in(store) is None else tune.run_try
        done.append(work(store, run_job))

    for module in (sweep, tune):
        monkeypatch.setattr(module, "run_jobs", run_jobs)
    return done


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server, in a folder that other users than that of the tests can enter."""
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
def empty_database(server: Server) -> Iterator[str]:
    """The address of an empty database on the server; its connections are closed at the end."""
    connections: list[Any] = []

    def note(connection: Any, record: Any) -> None:
        if type(connection).__module__.startswith("psycopg"):
            connections.append(connection)

    event.listen(Pool, "connect", note)
    yield server.new_database(f"runs {next(NUMBERS)}")
    event.remove(Pool, "connect", note)
    for connection in connections:
        connection.close()


@pytest.fixture
def three_splits(tmp_path: Path) -> str:
    """The path of a graph with three splits, each with twenty nodes per mask."""
    graph = data.csbm(nodes=60, features=8, classes=2, seed=0)
    order = np.stack([np.random.default_rng(split).permutation(60) for split in range(3)])
    masks = {
        name: np.zeros((60, 3), dtype=bool) for name in ("train_mask", "val_mask", "test_mask")
    }
    for number, mask in enumerate(masks.values()):
        for split in range(3):
            mask[order[split, 20 * number : 20 * number + 20], split] = True
    path = tmp_path / "three_splits.npz"
    np.savez(path, x=graph.x, edge_index=graph.edge_index, y=graph.y, **masks)
    return str(path)
