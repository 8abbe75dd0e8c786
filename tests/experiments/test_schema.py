"""What identifies a cell, and the jobs that stores keep."""

import json
from dataclasses import asdict, fields, replace

from eamp.experiments.cell import Cell
from eamp.experiments.schema import DEFAULTS, HELP, JSON_COLUMNS, SCHEMA, TEXT_COLUMNS, job_key

CELL = Cell("gcn", "csbm", 2, name="GCN", width=8, changes={"epochs": 3})


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
