"""The queue, and every point at which a process that uses it may be killed.

A kill leaves the database as it was after the last finished transaction, and frees the file locks.
A test simulates a kill between two calls by leaving out the second call. Killed within

- ``enqueue``: some jobs are queued, and the next call adds the others
  (``test_only_new_jobs_are_queued``);
- ``claim``: the lock is held, or a heartbeat written, but the trial still waits
  (``test_killed_before_it_ran``, ``test_an_old_heartbeat_on_a_waiting_job_does_no_harm``), or the
  trial runs and no process has the claim (``test_killed_while_running``);
- ``finish``: findings are written, but the trial runs (``test_killed_with_findings_written``);
- ``fail``: the reason is written, but the trial runs (``test_killed_with_a_reason_written``);
- ``recover``: a lost trial has failed, but its job is not queued again
  (``test_killed_while_recovering``).

Two stores stand for two processes.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState

from eamp.experiments import database
from eamp.experiments.database import StoreError
from eamp.experiments.store import MAX_ATTEMPTS, Claim, Store, failure
from experiments.heartbeats import silence

A, B = {"job": "a"}, {"job": "b"}


class Shared(Store):
    """A store that knows workers by their heartbeats alone, as in a database of many machines."""

    local = False


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """A function that opens the store from another machine."""
    url = request.getfixturevalue("empty_database") if request.param == "PostgreSQL" else None
    return lambda: Shared(tmp_path, "study", url)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path, "study")


def claimed(store: Store) -> Claim:
    claim = store.claim()
    assert claim is not None
    return claim


def states(store: Store) -> list[str]:
    return [trial.state.name for trial in store.trials()]


def lose(claim: Claim) -> None:
    """Do what a kill does: free the lock and change nothing else."""
    assert claim.lock is not None
    claim.lock.release()


# --- Queueing


def test_only_new_jobs_are_queued(store: Store) -> None:
    store.enqueue([A])
    with claimed(store) as claim:
        claim.finish(1.0, {})
    store.enqueue([A, B, B | {"more": [1, 2.5, None]}])
    store.enqueue([A, B])
    assert states(store) == ["COMPLETE", "WAITING", "WAITING"]


def test_jobs_are_taken_in_order_and_once(store: Store, tmp_path: Path) -> None:
    store.enqueue([A, B])
    other = Store(tmp_path, "study")
    assert [claimed(store).job, claimed(other).job] == [A, B]
    assert store.claim() is other.claim() is None
    assert store.unsettled()


def test_of_a_job_queued_twice_the_first_counts(store: Store, tmp_path: Path) -> None:
    """Two sweeps that find it missing both add it."""
    store.add(A)
    Store(tmp_path, "study").add(A)
    with claimed(store) as claim:
        assert store.claim() is None
        assert not store.recover()
        assert states(store) == ["RUNNING", "FAIL"]
        claim.finish(1.0, {})
    assert store.claim() is None
    assert not store.unsettled()
    assert failure(store.trials()[1]) is None


def test_a_second_copy_of_a_failed_job_is_no_second_try(store: Store) -> None:
    store.add(A)
    store.add(A)
    with claimed(store) as claim:
        claim.fail("bad")
    assert store.claim() is None
    assert not store.unsettled()


# --- Lost workers


def test_killed_before_it_ran(store: Store) -> None:
    store.enqueue([A])
    lock = store.lock_of(store.trials()[0])
    assert lock is not None
    lock.acquire()
    assert store.claim() is None
    assert store.unsettled()  # so that other workers stay
    lock.release()
    assert claimed(store).job == A


def test_killed_while_running(store: Store, tmp_path: Path) -> None:
    store.enqueue([A, B])
    other = Store(tmp_path, "study")
    claim, alive = claimed(store), claimed(other)
    lose(claim)
    assert other.recover()
    assert not store.recover()  # once is enough
    assert states(store) == ["FAIL", "RUNNING", "WAITING"]
    assert other.trials()[2].user_attrs["attempt"] == 2
    with claimed(other) as again:
        assert again.job == A
        again.finish(1.0, {})
    with alive:
        alive.finish(1.0, {})
    assert sorted(states(store)) == ["COMPLETE", "COMPLETE", "FAIL"]
    assert not store.unsettled()


def test_locks_are_beside_the_database(store: Store, tmp_path: Path) -> None:
    """A worker that keeps its checkpoints elsewhere is alive too, for any name of a study."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    Store(tmp_path, "../odd / name: ü*?", url).enqueue([A])
    claim = claimed(Store(tmp_path / "here", "../odd / name: ü*?", url))
    other = Store(tmp_path / "there", "../odd / name: ü*?", url)
    assert not other.recover()
    assert states(other) == ["RUNNING"]
    lose(claim)
    assert other.recover()


def test_killed_with_findings_written(store: Store) -> None:
    store.enqueue([A])
    claim = claimed(store)
    store.storage.set_trial_user_attr(claim.trial_id, "found", 3)
    lose(claim)
    store.recover()
    assert "found" not in store.trials()[1].user_attrs
    with claimed(store) as again:
        again.finish(1.0, {"found": 4})
    assert [trial.user_attrs["found"] for trial in store.trials(TrialState.COMPLETE)] == [4]


def test_killed_with_a_reason_written(store: Store) -> None:
    store.enqueue([A])
    claim = claimed(store)
    store.storage.set_trial_user_attr(claim.trial_id, "error", "bad")
    lose(claim)
    assert not store.recover()
    assert failure(store.trials()[0]) == "bad"


def test_killed_while_recovering(store: Store) -> None:
    store.enqueue([A])
    lose(claimed(store))
    store.fail_lost()
    assert states(store) == ["FAIL"]
    assert store.unsettled()  # so that no worker ends before the job is queued again
    assert store.recover()
    assert claimed(store).job == A


def test_two_recover_the_same_job(store: Store) -> None:
    store.enqueue([A])
    lose(claimed(store))
    store.fail_lost()
    lost = store.trials()[0]
    store.add(A, after=lost)
    store.add(A, after=lost)
    with claimed(store) as claim:
        assert store.claim() is None
        lose(claim)
    assert store.recover()  # the duplicate does not count as a third attempt
    store.recover()
    assert [(trial.state.name, trial.user_attrs["attempt"]) for trial in store.trials()] == [
        ("FAIL", 1),
        ("FAIL", 2),
        ("FAIL", 2),
        ("WAITING", 3),
    ]


def test_a_job_that_kills_its_workers_is_given_up(store: Store) -> None:
    store.enqueue([A])
    for _ in range(MAX_ATTEMPTS):
        lose(claimed(store))
        store.recover()
    assert store.claim() is None
    assert not store.unsettled()
    assert failure(store.trials()[-1]) == f"its worker was lost {MAX_ATTEMPTS} times"
    store.enqueue([A], retry_failed=True)
    assert claimed(store).job == A


def test_a_failure_is_tried_again_when_asked_for(store: Store) -> None:
    store.enqueue([A])
    with claimed(store) as claim:
        claim.fail("bad")
    store.enqueue([A])
    assert store.claim() is None
    store.enqueue([A], retry_failed=True)
    with claimed(store) as claim:
        claim.finish(1.0, {})
    store.enqueue([A], retry_failed=True)
    assert states(store) == ["FAIL", "COMPLETE"]
    assert failure(next(iter(store.latest().values()))) is None


# --- Many machines


def test_a_silent_workers_job_comes_back_once(machine: Callable[[], Store]) -> None:
    here, there = machine(), machine()
    here.enqueue([A, B])
    lost, alive = claimed(here), claimed(there)
    assert not there.recover()
    silence(here, lost.trial_id)
    assert there.recover()
    assert not here.recover()
    assert states(here) == ["FAIL", "RUNNING", "WAITING"]
    with claimed(there) as again:
        assert again.job == A
        again.finish(1.0, {"by": "there"})
    with pytest.raises(UpdateFinishedTrialError):  # the lost one wakes up
        lost.finish(2.0, {"by": "here"})
    assert [trial.user_attrs["by"] for trial in here.trials(TrialState.COMPLETE)] == ["there"]
    alive.beat()
    assert not here.recover()


def test_an_old_heartbeat_on_a_waiting_job_does_no_harm(machine: Callable[[], Store]) -> None:
    store = machine()
    store.enqueue([A])
    trial_id = store.trials()[0]._trial_id
    store.storage.record_heartbeat(trial_id)
    silence(store, trial_id)
    claim = claimed(store)
    assert not store.recover()
    assert states(store) == ["RUNNING"]
    claim.finish(1.0, {})


def test_attempts_are_counted_on_many_machines(machine: Callable[[], Store]) -> None:
    store = machine()
    store.enqueue([A])
    for _ in range(MAX_ATTEMPTS):
        silence(store, claimed(store).trial_id)
        store.recover()
    assert not store.unsettled()
    assert len(store.trials()) == MAX_ATTEMPTS


def test_an_interrupted_worker_gives_its_job_back_at_once(machine: Callable[[], Store]) -> None:
    store = machine()
    store.enqueue([A])
    with pytest.raises(KeyboardInterrupt), claimed(store):
        raise KeyboardInterrupt
    assert store.recover()
    assert claimed(store).job == A


def test_heartbeats_are_more_frequent_than_they_need_be() -> None:
    assert database.GRACE_PERIOD >= 4 * database.HEARTBEAT


# --- Opening


def test_a_store_that_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    with pytest.raises(StoreError, match=r"there is no store at .*a folder"):
        Store.existing(folder)
    assert not folder.exists()
    Store(folder, "first")
    assert Store.existing(folder).study.study_name == "first"
    Store(folder, "second")
    assert Store.existing(folder, "second").study.study_name == "second"
    several = r"one of several studies must be named in .*: there are 'first', 'second'"
    with pytest.raises(StoreError, match=several):
        Store.existing(folder)
    with pytest.raises(StoreError, match=r"no study third in .*: there are 'first', 'second'"):
        Store.existing(folder, "third")


def test_a_database_without_a_study(tmp_path: Path) -> None:
    database.open_storage(f"sqlite:///{tmp_path / 'runs.db'}")
    with pytest.raises(StoreError, match=r"no study in .*: there is none"):
        Store.existing(tmp_path)


def test_studies_in_one_folder_keep_their_checkpoints_apart(tmp_path: Path) -> None:
    assert Store(tmp_path, "first").checkpoint("key") != Store(tmp_path, "second").checkpoint("key")
