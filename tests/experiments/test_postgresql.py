"""A sweep of many machines on a database that they share; ``test_store.py`` tests each call."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from threading import Barrier

import pandas as pd
import pytest
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import text

from eamp import cli
from eamp.experiments import worker_pool
from eamp.experiments.database import open_storage
from eamp.experiments.recipe import load_recipe
from eamp.experiments.schema import job_key
from eamp.experiments.store import Store
from eamp.experiments.sweep import REPORT_EVERY, run_cell
from eamp.experiments.worker import work
from experiments.heartbeats import silence
from experiments.postgresql import PASSWORD, Server
from forked import ended_within, started

pytestmark = pytest.mark.slow

WORKERS, EPOCHS = 4, 50
RECIPE = f"""
name: far / and wide
protocol: paper
width: 8
data: "csbm:nodes=60,features=8"
depth: [2, 4]
changes: {{epochs: {EPOCHS}}}
seeds: 2
runs:
  - {{model: gcn}}
  - {{model: gcn, name: step, entropy: {{weight: 1.0, temperature: 1.0}}}}
"""
LONG = 600  # seconds after which a worker that should have ended is taken to wait for ever


class Worker:
    """``eamp work`` on one of two machines, each with a folder of its own."""

    def __init__(self, number: int, study: str, url: str, folder: Path) -> None:
        command = ["work", "--storage", url, "--study", study]
        command += ["--output", str(folder / f"machine {number % 2}")]
        self.output = folder / f"worker {number}.txt"
        self.process = started(self.output, cli.main, command)

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def in_the_middle_of(self, store: Store) -> FrozenTrial | None:
        """The trial that it has trained for some epochs, with some to come."""
        for trial in store.trials(TrialState.RUNNING):
            reports = EPOCHS // REPORT_EVERY
            if (
                trial.user_attrs.get("worker", "").endswith(f":{self.process.pid}")
                and 0 < len(trial.intermediate_values) < reports - 1
            ):
                return trial
        return None


@contextmanager
def started_workers(study: str, url: str, folder: Path) -> Iterator[list[Worker]]:
    """Start workers, and end them at the end of the block."""
    workers = [Worker(number, study, url, folder) for number in range(WORKERS)]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()


def wait_until(condition: Callable[[], bool], workers: list[Worker]) -> None:
    """Wait, and fail if a worker ends before the condition is true."""
    while not condition():
        for worker in workers:
            assert not ended_within(worker.process, 0.05), worker.said()


@contextmanager
def starting_line(store: Store) -> Iterator[Callable[[], bool]]:
    """Keep workers from the queue until the block ends; the value tells whether all wait for it."""
    with store.storage.engine.begin() as connection:
        connection.execute(text("LOCK TABLE trials IN ACCESS EXCLUSIVE MODE"))
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        yield lambda: connection.scalar(waiting) == WORKERS


def kill_in_the_middle(workers: list[Worker], store: Store) -> tuple[Worker, FrozenTrial]:
    """Kill the first worker that is found in the middle of a cell.

    It is stopped before it is looked at again, because it might finish the cell meanwhile.
    """
    while True:
        for worker in workers:
            assert not ended_within(worker.process, 0.02), worker.said()
            if worker.in_the_middle_of(store) is None:
                continue
            assert worker.process.pid is not None
            os.kill(worker.process.pid, signal.SIGSTOP)
            if (trial := worker.in_the_middle_of(store)) is not None:
                worker.process.kill()
                worker.process.join()
                return worker, trial
            os.kill(worker.process.pid, signal.SIGCONT)


def tables(folder: Path) -> list[pd.DataFrame]:
    """The tables that a sweep has written, without its times."""
    return [
        pd.read_csv(folder / "cells.csv").drop(columns=["seconds", "threads"]),
        pd.read_csv(folder / "layer_energies.csv"),
    ]


def test_four_workers_of_which_one_is_killed(
    tmp_path: Path,
    empty_database: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    recipe, here, alone = tmp_path / "recipe.yaml", tmp_path / "here", tmp_path / "alone"
    recipe.write_text(RECIPE, encoding="utf-8")
    study, cells = load_recipe(recipe)
    store = Store(here, study, empty_database)
    store.enqueue(cell.job for cell in cells)
    with started_workers(study, empty_database, tmp_path) as workers:
        with starting_line(store) as all_wait:
            wait_until(all_wait, workers)
        victim, lost = kill_in_the_middle(workers, store)
        silence(store, lost._trial_id)
        for worker in set(workers) - {victim}:
            assert ended_within(worker.process, LONG)
            assert worker.process.exitcode == 0, worker.said()

    began: dict[str, list[str]] = {cell.key: [] for cell in cells}
    for trial in store.trials():
        if "worker" in trial.user_attrs:
            began[job_key(trial.user_attrs["cell"])].append(
                trial.user_attrs["worker"].split(":")[-1]
            )
    again = began.pop(job_key(lost.user_attrs["cell"]))
    assert len(again) == 2
    assert again[0] == str(victim.process.pid) != again[1]
    assert [len(processes) for processes in began.values()] == [1] * (len(cells) - 1)
    assert {*again, *chain(*began.values())} == {str(worker.process.pid) for worker in workers}
    assert Counter(
        trial.state.name for trial in store.trials() if trial.state != TrialState.FAIL
    ) == {"COMPLETE": len(cells)}

    reference = Store(alone, study)
    reference.enqueue(cell.job for cell in cells)
    work(reference, run_cell)
    monkeypatch.setattr(worker_pool, "WorkerProcess", None)  # nothing is left to do
    assert cli.main(["sweep", str(recipe), "--output", str(alone)]) == 0
    shared = ["--output", str(here), "--storage", empty_database]
    assert cli.main(["sweep", str(recipe), *shared]) == 0
    for found, expected in zip(tables(here), tables(alone), strict=True):
        pd.testing.assert_frame_equal(found, expected, check_exact=True, check_like=True)

    secret, said = PASSWORD.split("/")[0], capfd.readouterr()
    assert "8 of 8 cells" in said.out
    assert secret in empty_database
    assert secret not in said.out + said.err
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {worker.output for worker in workers} < set(written)
    assert not [file for file in written if secret.encode() in file.read_bytes()]


def test_all_that_open_an_empty_database_at_once_find_its_tables(empty_database: str) -> None:
    ready = Barrier(WORKERS)

    def studies() -> int:
        ready.wait()
        return len(open_storage(empty_database).get_all_studies())

    with ThreadPoolExecutor(WORKERS) as pool:
        assert [future.result() for future in [pool.submit(studies) for _ in range(WORKERS)]] == [
            0
        ] * WORKERS


def test_a_worker_in_another_time_zone_is_not_thought_lost(
    tmp_path: Path, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGTZ", "America/New_York")
    west = Store(tmp_path / "west", "study", empty_database)
    west.enqueue([{"job": "a"}])
    claim = west.claim()
    assert claim is not None
    claim.beat()
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    east = Store(tmp_path / "east", "study", empty_database)
    assert not east.recover()
    silence(west, claim.trial_id)
    assert east.recover()


def test_a_password_that_is_wrong_is_not_shown_either(
    tmp_path: Path,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    wrong = server.address("postgres").replace("s3cret", "guessed")
    monkeypatch.setenv("EAMP_STORAGE", wrong)
    for storage in ([], ["--storage", wrong]):
        assert cli.main(["work", "--output", str(tmp_path), *storage]) == 2
        said = capfd.readouterr()
        assert "password authentication failed" in said.err
        assert "guessed" not in said.out + said.err
        assert "Traceback" not in said.err
