import errno
import os
import select
import subprocess
import sys
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest
from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState

from eamp.experiments import worker
from eamp.experiments.faults import EnvironmentFault
from eamp.experiments.store import MAX_FAULTS, Claim, Store, failure, settled
from eamp.experiments.worker import work
from experiments import many_workers
from forked import started

JOBS = 24  # the script with 8 workers, 200 jobs and 40 kills takes half a minute and finds the same


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def url(request: pytest.FixtureRequest) -> str | None:
    """The address of the store; ``None`` is a file in the folder."""
    return request.getfixturevalue("empty_database") if request.param == "PostgreSQL" else None


def succeeds(
    folder: Path, workers: int, kills: int = 0, url: str | None = None, times: int = 1
) -> None:
    """Run the script, or several copies of it at the same time."""
    given = (folder, workers, JOBS, kills, 1, url)
    outputs = [folder / f"{number}.txt" for number in range(times)]
    processes = [started(output, many_workers.main, *given) for output in outputs]
    for process, output in zip(processes, outputs, strict=True):
        process.join()
        assert process.exitcode == 0, output.read_text()


def starts(folder: Path) -> dict[int, list[int]]:
    """The processes that started each job, as they themselves wrote down."""
    found = defaultdict(list)
    for line in (folder / "witness.txt").read_text().splitlines():
        job, process = map(int, line.split())
        found[job].append(process)
    return found


def finished(folder: Path, url: str | None = None) -> list[int]:
    store = Store(folder, "many", url)
    assert not store.trials(TrialState.RUNNING, TrialState.WAITING)
    return sorted(trial.user_attrs["cell"]["number"] for trial in store.trials(TrialState.COMPLETE))


@pytest.mark.slow
def test_eight_workers_do_every_job_once(tmp_path: Path) -> None:
    succeeds(tmp_path, workers=8)
    found = starts(tmp_path)
    assert sorted(found) == finished(tmp_path) == list(range(JOBS))
    assert all(len(processes) == 1 for processes in found.values())
    assert len({process for processes in found.values() for process in processes}) > 1


@pytest.mark.slow
def test_two_processes_that_queue_the_same_jobs_at_once(tmp_path: Path) -> None:
    succeeds(tmp_path, workers=2, times=2)
    found = starts(tmp_path)
    assert sorted(found) == finished(tmp_path) == list(range(JOBS))
    assert all(len(processes) == 1 for processes in found.values())


@pytest.mark.slow
def test_workers_are_killed_and_nothing_is_lost_or_finished_twice(
    tmp_path: Path, url: str | None
) -> None:
    succeeds(tmp_path, workers=4, kills=12, url=url)
    killed = set(map(int, (tmp_path / "killed.txt").read_text().split()))
    assert killed
    found = starts(tmp_path)
    assert sorted(found) == finished(tmp_path, url) == list(range(JOBS))
    # Only a worker that was killed had its job run again.
    assert all(process in killed for processes in found.values() for process in processes[:-1])


def test_a_job_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    store = Store(tmp_path, "study")
    store.enqueue([{"number": number} for number in range(3)])
    said: list[str] = []

    def run(claim: Claim) -> str:
        if claim.job["number"] == 1:
            raise ValueError("one is odd")
        claim.finish(0.0, {})
        return "done"

    assert work(store, run, said.append) == 3
    assert [trial.state.name for trial in store.trials()] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert store.trials()[1].user_attrs["error"] == "ValueError: one is odd"
    assert said[0] == said[2] == "done"
    assert "one is odd" in said[1]
    assert work(store, run) == 0


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (FULL, "No space left on device: free some space on the disk, and run the same command"),
        (OSError(errno.EMFILE, "Too many open files"), "raise the limit of open files"),
        (OSError(errno.EIO, "Input/output error"), "mend this, and run the same command again"),
        (MemoryError(), "free some memory, or use fewer --workers"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "free some memory"),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_a_fault_of_the_machine_ends_the_worker_and_the_job_waits_again(
    tmp_path: Path, fault: Exception, said: str
) -> None:
    store = Store(tmp_path, "study")
    store.enqueue([{"number": number} for number in range(2)])
    order: list[int] = []

    def run(claim: Claim) -> str:
        order.append(claim.job["number"])
        if len(order) == 1:
            raise fault
        claim.finish(0.0, {})
        return "done"

    with pytest.raises(EnvironmentFault, match=said):
        work(store, run)
    assert work(store, run) == 2
    assert order == [0, 1, 0]  # behind the others
    assert len(store.trials(TrialState.COMPLETE)) == 2


def test_a_job_that_meets_faults_only_is_left_for_the_next_call(tmp_path: Path) -> None:
    store = Store(tmp_path, "study")
    jobs = [{"number": 0}]

    def run(claim: Claim) -> str:
        raise FULL

    for call in range(1, 9):  # none of these counts as a lost worker
        store.enqueue(jobs)
        for _ in range(MAX_FAULTS):
            with pytest.raises(EnvironmentFault):
                work(store, run)
        assert work(store, run) == 0
        (trial,) = store.latest().values()
        assert trial.user_attrs["faults"] == call * MAX_FAULTS
        assert "No space left" in (failure(trial) or "")
        assert settled(trial)
    store.enqueue(jobs)
    with suppress(SystemExit), claimed(store):
        raise SystemExit  # a worker that is lost
    assert store.recover()


def claimed(store: Store) -> Claim:
    claim = store.claim()
    assert claim is not None
    return claim


def test_a_lost_database_is_not_the_jobs_fault(tmp_path: Path) -> None:
    store = Store(tmp_path, "study")
    store.enqueue([{"number": 0}])

    def run(claim: Claim) -> str:
        raise StorageInternalError("gone")

    with pytest.raises(StorageInternalError):
        work(store, run)
    assert store.recover()


def test_a_worker_whose_job_was_given_away_goes_on(tmp_path: Path) -> None:
    """The machine of the first worker slept: its result comes too late, and the other's stays."""
    store = Store(tmp_path, "study")
    store.enqueue([{"number": number} for number in range(2)])
    said: list[str] = []

    def run(claim: Claim) -> str:
        late = claim.job["number"] == 0 and not said
        if late:
            store.storage.set_trial_state_values(claim.trial_id, TrialState.FAIL)
        claim.finish(0.0, {})
        return "done"

    assert work(store, run, said.append) == 3
    assert "given to another worker" in said[0]
    assert [trial.state.name for trial in store.trials()] == ["FAIL", "COMPLETE", "COMPLETE"]


def test_heartbeats_go_on_while_the_database_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "HEARTBEAT", 0.001)
    thrice = threading.Barrier(2)

    class Away(Claim):
        def beat(self) -> None:
            with suppress(threading.BrokenBarrierError):
                thrice.wait()
            raise StorageInternalError("away")

    with worker.heartbeats(Away(Store(tmp_path, "study"), 0, {}, None)):
        for _ in range(3):
            thrice.wait(timeout=60)
        thrice.abort()


def test_a_worker_whose_parent_is_gone_before_it_looks() -> None:
    code = (
        "import threading; from eamp.experiments.parent_process import end_with_parent; "
        "end_with_parent(0); threading.Event().wait()"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells of it on Linux alone")
def test_a_worker_that_is_busy_importing_ends_with_its_parent() -> None:
    """It holds the interpreter's lock, so that no thread of it can look for the parent."""
    child = (
        "import os, sys; from eamp.experiments.parent_process import end_with_parent; "
        "end_with_parent(int(sys.argv[1])); print(os.getpid(), flush=True); sum(range(10**12))"
    )
    parent = (
        "import os, subprocess, sys; "
        f"subprocess.Popen([sys.executable, '-c', {child!r}, str(os.getpid())]).wait()"
    )
    started = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    handle = os.pidfd_open(int(started.stdout.readline()))
    started.kill()
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    assert poll.poll(10_000)
    os.close(handle)
    started.communicate()
