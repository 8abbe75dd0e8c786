"""Sweeps whose workers, or which themselves, are interrupted and killed."""

import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from optuna.trial import FrozenTrial, TrialState

from eamp import cli
from eamp.experiments import sweep as module
from eamp.experiments import worker_pool
from eamp.experiments.recipe import load_recipe
from eamp.experiments.store import Store
from eamp.experiments.sweep import finished, sweep
from eamp.experiments.worker import work
from eamp.experiments.worker_pool import FAULT_STATUS, SweepError, WorkerProcess

pytestmark = pytest.mark.slow

# Each is a worker killed (W), the sweep itself killed (S), or interrupted (I).
# EAMP_STOPS=WSIWSW is the long proof, some minutes.
STOPS = os.environ.get("EAMP_STOPS", "WS")
RECIPE = """
name: "short / one"
protocol: paper
width: 8
data: "csbm:nodes=60,features=8"
depth: [2, 4]
changes: {epochs: 80}
seeds: 3
runs:
  - {model: gcn}
  - {model: gcn, name: step, entropy: {weight: 1.0, temperature: 1.0}}
"""


def written(folder: Path) -> str:
    file = folder / "recipe.yaml"
    file.write_text(RECIPE, encoding="utf-8")
    return str(file)


def running(store: Store) -> list[FrozenTrial]:
    return store.trials(TrialState.RUNNING)


class RunningSweep:
    """``eamp sweep`` in a process of its own, with two workers."""

    def __init__(self, recipe: str, folder: Path) -> None:
        command = [sys.executable, "-m", "eamp", "sweep", recipe, "--output", str(folder)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def workers(self) -> list[int]:
        number = self.process.pid
        return list(map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split()))

    def wait_until(self, condition: Callable[[], Any]) -> bool:
        """Return whether the condition came true before the process ended."""
        while not condition():
            if self.ended_within(0.05):
                return False
        return True

    def is_training(self, store: Store) -> bool:
        """Return whether a worker begins to train."""
        return self.wait_until(
            lambda: any(
                int(trial.user_attrs.get("worker", ":0").split(":")[1]) in self.workers()
                for trial in running(store)
            )
        )

    def replaced_one_of(self, workers: list[int]) -> bool:
        """Return whether another worker takes the place of one that died."""
        return self.wait_until(lambda: set(self.workers()) - set(workers))

    def ended_within(self, seconds: float) -> bool:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def output(self) -> tuple[int, str]:
        _, errors = self.process.communicate()
        return self.process.returncode, errors


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds workers in /proc")
def test_stopped_and_killed_it_ends_up_the_same(tmp_path: Path, in_this_process: list[int]) -> None:
    folder, chance, stops = tmp_path / "a folder", random.Random(3), list(STOPS)
    recipe = written(tmp_path)
    name, cells = load_recipe(Path(recipe))
    store = Store(folder, name)
    while stops:
        sweeping = RunningSweep(recipe, folder)
        while (
            stops
            and sweeping.is_training(store)
            and not sweeping.ended_within(chance.uniform(0, 3 / len(STOPS)))
        ):
            workers, stop = sweeping.workers(), stops.pop(0)
            if stop == "W":
                os.kill(chance.choice(workers), signal.SIGKILL)
                assert sweeping.replaced_one_of(workers)
                continue
            handles = [os.pidfd_open(worker) for worker in workers]
            os.kill(sweeping.process.pid, signal.SIGINT if stop == "I" else signal.SIGKILL)
            for handle in handles:
                assert_ends(handle)  # workers do not outlive the sweep
            break
        code, said = sweeping.output()
        assert code in (0, 130, -signal.SIGKILL), said
        assert code or not stops, "it was finished before it could be stopped"
        if code == 130:
            assert "the same command continues from here" in said
            assert "Traceback" not in said
            assert not running(store)
    assert cli.main(["sweep", recipe, "--output", str(folder)]) == 0

    states = Counter(trial.state for trial in store.trials() if trial.state != TrialState.FAIL)
    assert states == {TrialState.COMPLETE: len(cells)}
    assert sorted(finished(store)) == sorted(cell.key for cell in cells)
    assert not list((folder / "checkpoints").iterdir())
    tables = [sweep(cells, each) for each in (store, Store(tmp_path / "undisturbed", name))]
    assert in_this_process[-2:] == [0, len(cells)]
    without_times = (table.drop(columns=["seconds", "threads"]) for table in tables)
    pd.testing.assert_frame_equal(*without_times, check_exact=True)


def assert_ends(handle: int) -> None:
    """Wait for a process that is not a child of this one."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    assert poll.poll(60_000)
    os.close(handle)


def test_a_sweep_that_is_finished_starts_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = written(tmp_path)
    name, cells = load_recipe(Path(recipe))
    store = Store(tmp_path, name)
    store.enqueue(cell.job for cell in cells)
    found = {"best_val_accuracy": 0.5, "test_accuracy": 0.5, "epochs": 80, "seconds": 1.0}
    found |= {"val_loss": 1.0, "threads": 1, "version": "eamp"}
    found |= {name: [1.0, 2.0] for name in ("energy", "final_energy")}

    def run(claim: Any) -> str:
        claim.finish(0.5, found)
        return ""

    work(store, run)
    monkeypatch.setattr(worker_pool, "WorkerProcess", None)
    monkeypatch.setattr(module, "load_graph", None)
    assert cli.main(["sweep", recipe, "--output", str(tmp_path)]) == 0
    assert "12 of 12 cells" in capsys.readouterr().out
    assert len(store.trials()) == len(cells)


def workers_are(code: str, monkeypatch: pytest.MonkeyPatch) -> list[WorkerProcess]:
    """Let workers run some Python code instead; the value is filled with them as they start."""
    started: list[WorkerProcess] = []

    def start(self: WorkerProcess) -> None:
        self.command = [sys.executable, "-c", code]
        really(self)
        started.append(self)

    really = WorkerProcess.start
    monkeypatch.setattr(WorkerProcess, "start", start)
    return started


def test_ctrl_c_stops_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = written(tmp_path)
    store = Store(tmp_path, load_recipe(Path(recipe))[0])
    started = workers_are("import threading; threading.Event().wait()", monkeypatch)

    class Clock:
        perf_counter = staticmethod(time.perf_counter)

        def sleep(self, seconds: float) -> None:
            claim = store.claim()
            assert claim is not None
            assert claim.lock is not None
            claim.lock.release()  # as that of a worker that is stopped
            raise KeyboardInterrupt

    monkeypatch.setattr(worker_pool, "time", Clock())
    assert cli.main(["sweep", recipe, "--output", str(tmp_path)]) == 130
    assert "interrupted; the same command continues from here" in capsys.readouterr().err
    assert [worker.process.returncode for worker in started] == [-signal.SIGTERM] * 2
    assert not running(store)


def test_workers_that_die_at_once_end_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers_are("import sys; sys.exit('no luck today')", monkeypatch)
    _, cells = load_recipe(Path(written(tmp_path)))
    with pytest.raises(SweepError, match=r"5 workers died one after the other(?s:.*)no luck today"):
        sweep(cells[:1], Store(tmp_path, "study"))


def test_workers_that_the_machine_stops_end_the_sweep_with_what_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "OSError: [Errno 28] No space left on device: free some space on the disk"
    workers_are(f"import sys; print('eamp: {said}.'); sys.exit({FAULT_STATUS})", monkeypatch)
    _, cells = load_recipe(Path(written(tmp_path)))
    expected = re.escape(f"5 workers were stopped by this machine, not by their jobs: {said}.")
    with pytest.raises(SweepError, match=f"{expected}.*the same command continues"):
        sweep(cells[:1], Store(tmp_path, "study"))


def test_a_disk_too_full_for_a_log_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path) -> None:
        raise OSError("nothing can be written to here.")

    workers_are("import sys; sys.exit(1)", monkeypatch)
    _, cells = load_recipe(Path(written(tmp_path)))
    store = Store(tmp_path, "study")
    monkeypatch.setattr(worker_pool, "check_writable", full)
    with pytest.raises(SweepError, match=r"this machine, .* nothing can be written to here\. What"):
        sweep(cells[:1], store)


@pytest.mark.parametrize("name", ["-x", "--help", "null", "1e3", "[a, b]", "a: b", "true"])
def test_workers_find_a_study_of_any_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkerProcess, "start", lambda self: None)
    worker = WorkerProcess(Store(tmp_path, name), 0, 1)
    options = cli.build().parse_args(worker.command[3:]).work
    assert options.study == name
    assert options.output == tmp_path


@pytest.mark.parametrize(("asked", "expected"), [("1", "1"), (None, "2")])
def test_workers_keep_the_threads_that_a_user_asks_for(
    asked: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkerProcess, "start", lambda self: None)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    worker = WorkerProcess(Store(tmp_path, "study"), number=0, threads=2)
    assert worker.environment["OMP_NUM_THREADS"] == expected
    assert worker.environment["MKL_NUM_THREADS"] == expected  # torch takes the larger of the two
