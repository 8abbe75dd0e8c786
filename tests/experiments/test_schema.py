"""What identifies a cell, and the translation of jobs that earlier versions wrote."""

import json
from dataclasses import asdict, fields, replace

import pytest

from eamp.experiments.cell import JSON_COLUMNS, TEXT_COLUMNS, Cell
from eamp.experiments.schema import DEFAULTS, HELP, SCHEMA, job_key, same_cell, upgraded

CELL = Cell("gcn", "csbm", 2, name="GCN", width=8, changes={"epochs": 3})


def before(cell: Cell) -> dict[str, object]:
    """Return the job of a cell as the first version wrote it."""
    return {name: value for name, value in asdict(cell).items() if name != "split"}


def test_columns_and_help_follow_the_fields() -> None:
    assert set(TEXT_COLUMNS) == {"name", "data", "model", "protocol", "task"}
    assert set(JSON_COLUMNS) == {"entropy", "options", "changes"}
    assert list(HELP) == [field.name for field in fields(Cell)]


def test_a_key_holds_only_what_changes_the_result() -> None:
    assert json.loads(CELL.key) == {
        "schema": SCHEMA,
        "model": "gcn",
        "data": "csbm",
        "depth": 2,
        "width": 8,
        "changes": {"epochs": 3},
    }
    assert job_key(json.loads(CELL.key)) == CELL.key
    assert replace(CELL, name="another").key == CELL.key
    assert len({CELL.key, *(replace(CELL, **change).key for change in CHANGES)}) == 1 + len(CHANGES)


CHANGES = [
    {"model": "g2"},
    {"data": "grid"},
    {"depth": 3},
    {"width": 64},
    {"dropout": 0.5},
    {"entropy": {"weight": 1}},
    {"options": {"bias": False}},
    {"protocol": "paper"},
    {"changes": None},
    {"normalize_features": True},
    {"seed": 1},
    {"split": 1},
    {"task": "links"},
]


def test_every_setting_but_the_name_changes_the_key() -> None:
    assert {name for change in CHANGES for name in change} == set(asdict(CELL)) - {"name"}
    assert set(DEFAULTS) < set(asdict(CELL))


def test_a_job_is_the_cell_whole() -> None:
    assert Cell.from_job(json.loads(json.dumps(CELL.job))) == CELL
    assert Cell.from_job({**CELL.job, "try": 3}) == CELL
    assert job_key({**CELL.job, "try": 3}) != job_key({**CELL.job, "try": 4})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CELL, CELL),
        (
            replace(CELL, model="pairnorm"),
            replace(CELL, model="pairnorm", options={"count_output": True}),
        ),
        (
            replace(CELL, model="pairnorm", options={"scale": 3.0}),
            replace(CELL, model="pairnorm", options={"scale": 3.0, "count_output": True}),
        ),
    ],
)
def test_a_job_of_the_first_version_has_the_key_of_the_same_cell_today(
    old: Cell, new: Cell
) -> None:
    job = before(old)
    assert job_key(job) == new.key
    assert Cell.from_job(job) == new
    assert same_cell(json.dumps(job, sort_keys=True), new.key)
    assert upgraded(new.job) == new.job
    assert job == before(old)  # left as it was


def test_a_job_of_today_has_the_key_of_its_cell() -> None:
    assert replace(CELL, model="pairnorm").key == job_key(replace(CELL, model="pairnorm").job)
    assert "count_output" not in replace(CELL, model="pairnorm").key


def test_another_cell_or_another_text_is_not_the_same() -> None:
    assert same_cell(CELL.key, CELL.key)
    for other in (replace(CELL, seed=1).key, "", "a network of mine", "[]", "3"):
        assert not same_cell(other, CELL.key)
