"""The transactions of the database and what would happen without them, and its addresses."""

import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sqlalchemy import event

from eamp.experiments import database
from eamp.experiments.database import StoreError, open_storage, sqlite_file


def refused(file: Path) -> bool:
    """Whether another connection cannot begin to write now."""
    other = sqlite3.connect(file, timeout=0)
    try:
        other.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    finally:
        other.close()
    return False


def test_a_transaction_is_a_writers_from_its_first_statement(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    opened = open_storage(f"sqlite:///{file}")
    statements: list[str] = []
    event.listen(opened.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    with opened.engine.begin():
        assert refused(file)
    assert not refused(file)
    opened.get_all_studies()  # Optuna's own, and even one that only reads
    assert statements[0] == statements[1] == "BEGIN IMMEDIATE"


def plain_storage(url: str) -> RDBStorage:
    return RDBStorage(url)


@pytest.mark.parametrize(
    ("open_it", "shared", "winners"),
    [(plain_storage, False, 2), (open_storage, False, 1), (open_storage, True, 1)],
)
def test_a_trial_goes_to_one_of_two_that_ask_at_once(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_it: Callable[[str], RDBStorage],
    shared: bool,
    winners: int,
) -> None:
    """The second asks between the first one's read and write.

    With Optuna's own transactions on SQLite both get the trial.
    """
    # The second gives up instead of waiting; on PostgreSQL after 100 milliseconds.
    monkeypatch.setattr(database, "LOCK_TIMEOUT", 0)
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    if shared:
        url = request.getfixturevalue("empty_database") + "?options=-c%20lock_timeout%3D100"
    first, second = open_it(url), open_it(url)
    study = optuna.create_study(storage=first)
    study.enqueue_trial({"x": 1})
    trial_id = study.get_trials()[0]._trial_id
    won: list[bool] = []

    @event.listens_for(first.engine, "before_cursor_execute")
    def second_asks(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.startswith("UPDATE trials") and not won:
            try:
                won.append(second.set_trial_state_values(trial_id, TrialState.RUNNING))
            except StorageInternalError:
                won.append(False)

    won.append(first.set_trial_state_values(trial_id, TrialState.RUNNING))
    assert sum(won) == winners


def test_addresses_with_spaces_and_odd_signs(tmp_path: Path) -> None:
    file = tmp_path / "a folder, 50% #1" / "runs.db"
    url = f"sqlite:///{file}"
    assert sqlite_file(url) == file
    assert sqlite_file("postgresql://host/runs") is None
    optuna.create_study(storage=open_storage(url), study_name="s")
    assert optuna.get_all_study_names(open_storage(url)) == ["s"]
    assert file.exists()


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        (
            "nosuchdatabase://me:secret@host/runs",
            "at nosuchdatabase://me:***@host/runs cannot be opened",
        ),
        (
            "postgresql://me:secret@127.0.0.1:1/runs",
            "at postgresql://me:***@127.0.0.1:1/runs cannot be opened",
        ),
        (
            "postgresql://127.0.0.1:1/runs?password=secret",
            "at postgresql://127.0.0.1:1/runs?password=hidden cannot be opened",
        ),
        (
            "postgresql://me:a@secret@host/runs",
            "an @ that belongs to the password must be written as %40",
        ),
        ("postgresql://me:secret", "must be one like postgresql://user@host/database"),
        ("no address at all, but a secret", "must be one like postgresql://user@host/database"),
    ],
)
def test_errors_do_not_show_the_password(url: str, complaint: str) -> None:
    with pytest.raises(StoreError, match=re.escape(complaint)) as raised:
        open_storage(url)
    assert "secret" not in str(raised.value)


def test_without_its_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for url in ("postgresql://host/runs", "postgres://host/runs", "postgresql+psycopg://host/runs"):
        with pytest.raises(StoreError, match=r'install it with `pip install "eamp\[postgresql\]"`'):
            open_storage(url)
