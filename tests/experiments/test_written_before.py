"""Files of the first version are read: a store, and checkpoints of interrupted runs.

``written_before/`` holds ``runs.sql``, the database of a sweep over four cells as SQL; and for each
of three models the checkpoint of a run that was interrupted after three epochs (``.safetensors``)
and the history that the same version reached without the interruption (``.json``).
"""

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eamp.experiments import sweep as module
from eamp.experiments import worker_pool
from eamp.experiments.cell import Cell
from eamp.experiments.recipe import load_recipe
from eamp.experiments.store import Store
from eamp.experiments.sweep import run_cell, sweep
from eamp.experiments.worker import work
from eamp.training.checkpoints import CheckpointError

FOLDER = Path(__file__).with_name("written_before")
MODELS = ("gcn", "entropic-gcn", "gcnii")

# The recipe of that version, with what PairNorm's depth meant written out.
RECIPE = """
name: written before
protocol: paper
changes: {epochs: 3}
data: "csbm:nodes=40,features=6,classes=2"
depth: 2
width: 4
runs:
  - {model: gcn, name: Basic GCN}
  - model: entropic-gcn
    name: Entropic GCN
    entropy: {weight: {schedule: gain, of: 0.3}, temperature: 1, STEP, scale_free: true}
  - {model: pairnorm, name: PairNorm, options: {scale: 3.0, count_output: true}}
  - {model: gcnii, name: GCNII, dropout: 0.5}
"""


@pytest.mark.parametrize("step", ["normalization: sym", "energy: propagation"])
def test_a_store_is_read_and_nothing_is_trained(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = sqlite3.connect(tmp_path / "runs.db")
    database.executescript((FOLDER / "runs.sql").read_text(encoding="utf-8"))
    database.close()
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE.replace("STEP", step), encoding="utf-8")
    name, cells = load_recipe(recipe)
    store = Store(tmp_path, name)
    monkeypatch.setattr(worker_pool, "WorkerProcess", None)
    monkeypatch.setattr(module, "load_graph", None)
    table = sweep([*cells, replace(cells[0], name="renamed")], store)
    assert len(store.trials()) == 4
    assert table["name"].tolist() == ["Basic GCN", "Entropic GCN", "PairNorm", "GCNII", "renamed"]
    assert table["test_accuracy"].round(2).tolist() == [0.35, 0.4, 0.3, 0.5, 0.35]
    assert table["final_energy"][2] == [0.06228015162971608, 0.5267251647917636]
    assert "split" not in table


def written_before(model: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{model}.json").read_text(encoding="utf-8"))


def assert_same(history: list[Any], expected: list[Any], cell: Cell) -> None:
    """Compare histories: exactly if this machine computes as the one that wrote the files did."""
    exact = [list(row) for row in cell.train().history] == expected
    assert [list(row) for row in history[:3]] == expected[:3]  # from the checkpoint
    for row, other in zip(history, expected, strict=True):
        assert list(row) == (other if exact else pytest.approx(other, rel=1e-4))


@pytest.mark.parametrize("model", MODELS)
def test_a_run_goes_on_from_its_checkpoint(model: str, tmp_path: Path) -> None:
    before = written_before(model)
    checkpoint = tmp_path / "seed_0.safetensors"
    shutil.copy(FOLDER / f"{model}.safetensors", checkpoint)
    cell = Cell.from_job(before["cell"])
    with pytest.raises(CheckpointError, match="other settings"):
        replace(cell, width=5).train(checkpoint)
    epochs: list[int] = []
    result = cell.train(checkpoint, on_epoch=lambda epoch, row: epochs.append(epoch))
    assert epochs == [3, 4, 5]
    assert_same(result.history, before["history"], cell)
    assert result.final_energy == pytest.approx(before["final_energy"], rel=1e-4)


def test_a_job_of_a_store_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, store = written_before("gcn"), Store(tmp_path, "study")
    store.enqueue([before["cell"]])
    checkpoint = store.checkpoint(json.dumps(before["cell"], sort_keys=True))
    shutil.copy(FOLDER / "gcn.safetensors", checkpoint)
    monkeypatch.setattr(module, "REPORT_EVERY", 1)
    assert work(store, run_cell) == 1
    (trial,) = store.trials()
    assert list(trial.intermediate_values) == [4, 5, 6]
    assert not list((tmp_path / "checkpoints").iterdir())
    assert trial.user_attrs["final_energy"] == pytest.approx(before["final_energy"], rel=1e-4)
