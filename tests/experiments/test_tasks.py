"""Cells, sweeps and searches of links and of many graphs, and of regression."""

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import metrics

import eamp
from eamp import cli
from eamp.experiments import cell as module
from eamp.experiments.baseline import validation_metric
from eamp.experiments.cell import Cell
from eamp.experiments.recipe import load_recipe
from eamp.experiments.several_seeds import summary, train_seeds
from eamp.experiments.store import Store
from eamp.experiments.sweep import metric_of, readings_of, sweep
from eamp.nn import GCN, GraphLevel
from experiments.every_digit import EVERY_DIGIT
from training.tasks.problems import small_graphs

ROOT = Path(__file__).parents[2]
LINKS = Cell("gcn", "csbm:nodes=80,features=8", 2, width=8, task="links", changes={"epochs": 3})


@pytest.fixture
def many_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data by the names `classes`, `numbers` and `labels`, beside those of eamp."""
    before = module.load

    def load(name: str, **options: Any) -> Any:
        known = name in ("classes", "numbers", "labels")
        return small_graphs(name) if known else before(name, **options)

    monkeypatch.setattr(module, "load", load)
    module.loaded.cache_clear()


def test_a_cell_of_links_predicts_links_of_its_split() -> None:
    model, result = LINKS.build(), LINKS.train()
    assert isinstance(model, GCN)
    assert model.output.lin.weight.shape == (8, 8)
    assert (result.metric, set(result.also)) == ("roc_auc", {"average_precision"})
    assert LINKS.metric == "roc_auc"
    assert LINKS.num_splits == 1
    other = replace(LINKS, split=1)
    assert not torch.equal(LINKS.graph[2].edge_label_index, other.graph[2].edge_label_index)
    again = replace(LINKS, seed=1)
    assert torch.equal(LINKS.graph[2].edge_label_index, again.graph[2].edge_label_index)
    said = summary([result], LINKS)
    assert said.startswith("test ROC AUC at the epoch of lowest validation loss: ")
    assert "\ntest average precision at the same epoch: " in said


@pytest.mark.parametrize("data", ["classes", "numbers", "labels"])
def test_many_graphs_are_trained_in_folds(many_graphs: None, data: str) -> None:
    cell = Cell("gcn", data, 2, width=8, changes={"epochs": 2}, options={"readout": "sum"})
    model = cell.build()
    assert isinstance(model, GraphLevel)
    assert model.readout == "sum"
    assert cell.num_splits == 10
    assert [len(part) for part in cell.graph] == [32, 4, 4]
    assert cell.train().history != replace(cell, split=1).train().history
    # Compared as text: from Python 3.13 on, no two results with a NaN are equal.
    assert repr(replace(cell, task="graphs").train()) == repr(cell.train())


def test_a_task_that_does_not_fit_is_an_error(many_graphs: None) -> None:
    with pytest.raises(ValueError, match=r"must be one of auto, nodes, .*Did you mean 'links'"):
        replace(LINKS, task="link")
    with pytest.raises(ValueError, match="graphs does not fit grid:4x4, which has one graph; use"):
        Cell("gcn", "grid:4x4", 2, task="graphs").build()
    for task in ("nodes", "links"):
        with pytest.raises(ValueError, match=f"{task} does not fit classes, which has many graphs"):
            Cell("gcn", "classes", 2, task=task).build()


def test_keys_of_cells_for_nodes_do_not_name_a_task() -> None:
    assert "task" not in replace(LINKS, task="auto").key
    assert '"task": "links"' in LINKS.key
    assert Cell.from_job({n: v for n, v in LINKS.job.items() if n != "task"}).task == "auto"


def test_a_sweep_over_tasks_has_tables_with_names_and_directions(
    many_graphs: None,
    tmp_path: Path,
    in_this_process: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "{depth: 2, width: 8, seeds: 2, changes: {epochs: 3}, runs: ["
        "{model: gcn, name: a, data: numbers}, {model: gcnii, name: b, data: numbers}, "
        "{model: gcn, name: c, data: 'csbm:nodes=80,features=8', task: links}, "
        "{model: gcn, name: d, data: 'csbm:nodes=80,features=8'}]}",
        encoding="utf-8",
    )
    command = ["sweep", str(recipe), "--output", str(tmp_path), "--against", "a"]
    assert cli.main(command) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "MAE, lower is better" in said
    assert "ROC AUC, higher is better" in said
    table = pd.read_csv(tmp_path / "cells.csv", **EVERY_DIGIT)
    _, cells = load_recipe(recipe)
    for cell in cells:
        row = table[(table["name"] == cell.name) & (table["seed"] == cell.seed)].iloc[0]
        result = cell.train()
        if cell.name == "d":
            assert row["test_accuracy"] == result.test_accuracy
            assert row[["metric", "test_metric", "test_rmse"]].isna().all()
            continue
        (second,) = result.also
        assert pd.isna(row["test_accuracy"])
        assert (row["metric"], row["test_metric"]) == (result.metric, result.test_metric)
        assert row[f"test_{second}"] == result.also[second]
    errors = table[table["data"] == "numbers"]
    assert metric_of(errors) == "mae"
    assert list(readings_of(errors).values()) == [
        "lowest validation MAE",
        "test MAE at lowest validation loss",
    ]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "test MAE at lowest validation loss (lower is better)" in page
    assert "test RMSE" in page
    assert "On numbers, the validation graphs choose" in page
    assert "the validation links choose c" in page
    assert set(errors["task"]) == {"graphs"}
    beside = (tmp_path / "comparison_mae.md").read_text(encoding="utf-8")
    assert "MAE, lower is better" in beside
    assert "percentage points" not in beside


def test_a_search_minimises_an_error(
    many_graphs: None,
    tmp_path: Path,
    in_this_process: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--data", "numbers", "--depth", "2", "--width", "8", "--trials", "3"]
    search = ["--search", '{"changes.learning_rate": [0.0, 0.05]}', "--changes", '{"epochs": 6}']
    assert cli.main(["tune", *options, *search, "--output", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "validation MAE" in said
    trials = pd.read_csv(tmp_path / "trials.csv")
    best = trials.loc[trials["val_mae"].idxmin()]
    assert (
        f'--changes \'{{"epochs": 6, "learning_rate": {best["changes.learning_rate"]}}}\'' in said
    )
    _, cells = load_recipe(tmp_path / "best.yaml")
    assert cells[0].changes is not None
    assert cells[0].changes["learning_rate"] == best["changes.learning_rate"]


def test_comparisons_at_different_epochs_have_files_of_their_own(
    many_graphs: None, tmp_path: Path, in_this_process: list[int]
) -> None:
    runs = ", ".join(
        f"{{model: {model}, depth: {depth}, changes: {{epochs: 2, select: {select}}}}}"
        for depth, select in ((2, "val_loss"), (3, "val_metric"))
        for model in ("gcn", "gcnii")
    )
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"{{width: 8, data: numbers, runs: [{runs}]}}", encoding="utf-8")
    assert cli.main(["sweep", str(recipe), "--output", str(tmp_path), "--against", "gcn"]) == 0
    for file, rule in (("", "validation loss"), ("_at_best_val_metric", "validation MAE")):
        text = (tmp_path / f"comparison_mae{file}.md").read_text(encoding="utf-8")
        assert f"Test MAE at lowest {rule} minus" in text


@pytest.mark.filterwarnings("ignore:training diverged")
def test_a_search_survives_networks_that_diverge(
    many_graphs: None,
    tmp_path: Path,
    in_this_process: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    # NaN as the value of a trial makes a database of Optuna unreadable.
    options = ["--data", "numbers", "--depth", "2", "--width", "8", "--trials", "3"]
    search = ["--search", '{"changes.learning_rate": [1e30, 0.01]}', "--changes", '{"epochs": 3}']
    command = ["tune", *options, *search, "--output", str(tmp_path), "--seed", "1"]
    assert cli.main([*command, "--baseline", "false"]) == 0
    trials = pd.read_csv(tmp_path / "trials.csv")
    assert set(trials["changes.learning_rate"]) == {1e30, 0.01}
    assert (trials["val_mae"] == math.inf).equals(trials["changes.learning_rate"] == 1e30)
    assert '"learning_rate": 0.01' in capsys.readouterr().out
    lost = Cell("gcn", "numbers", 2, width=8, changes={"epochs": 3, "learning_rate": 1e30})
    sweep([lost], store := Store(tmp_path / "sweep", "sweep"))
    assert [trial.values for trial in store.trials()] == [[-math.inf]]


def test_the_baseline_of_a_search_for_low_errors_is_an_error(
    many_graphs: None, tmp_path: Path, in_this_process: list[int]
) -> None:
    cell = Cell("gcn", "numbers", 2, width=8, changes={"epochs": 2})
    found = validation_metric(cell, 1, Store(tmp_path, "baseline"))
    assert found == cell.train().val_metric


def test_links_may_be_judged_by_accuracy(
    tmp_path: Path, in_this_process: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "{depth: 2, width: 8, task: links, data: 'csbm:nodes=80,features=8', "
        "changes: {epochs: 2, metric: accuracy}, runs: [{model: gcn}, {model: gcnii}]}",
        encoding="utf-8",
    )
    assert cli.main(["sweep", str(recipe), "--output", str(tmp_path), "--against", "gcn"]) == 0
    assert "Test accuracy at lowest validation loss minus that of" in capsys.readouterr().out
    _, cells = load_recipe(recipe)
    table = pd.read_csv(tmp_path / "cells.csv")
    assert table["test_metric"].tolist() == [cell.train().test_metric for cell in cells]


def test_many_graphs_are_diagnosed_as_a_batch(
    many_graphs: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["diagnose", "--data", "classes", "--depth", "4", "--width", "8"]) == 0
    assert "of 5: " in capsys.readouterr().out  # four hidden layers and the output layer


def test_the_command_line_trains_links(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--data", LINKS.data, "--depth", "2", "--task", "links"]
    assert cli.main(["train", *options, "--changes", '{"epochs": 2}']) == 0
    assert "test ROC AUC at the epoch of lowest validation loss" in capsys.readouterr().out


@pytest.mark.parametrize("seed", [0, 1])
def test_stored_predictions_on_minesweeper_have_the_roc_auc_of_scikit_learn(
    seed: int, tmp_path: Path
) -> None:
    changes = {"metric": "roc_auc", "select": "val_metric", "epochs": 3}
    cell = Cell("gcn", "minesweeper", 2, width=8, seed=seed, split=seed, changes=changes)
    try:
        (result,) = train_seeds(cell, output=tmp_path)
    except eamp.data.DataError as error:
        pytest.skip(str(error))
    name = f"split_{seed}_seed_{seed}" if seed else "seed_0"
    with np.load(tmp_path / f"{name}.npz", allow_pickle=False) as stored:
        for part, value in (("val", result.val_metric), ("test", result.test_metric)):
            outputs, labels = stored[f"{part}_outputs"].astype(float), stored[f"{part}_labels"]
            assert len(labels) == 2500
            score = metrics.roc_auc_score(labels, outputs[:, 1] - outputs[:, 0])
            assert value == pytest.approx(score, abs=1e-7)
    before = (tmp_path / f"{name}.npz").read_bytes()
    assert train_seeds(cell, output=tmp_path) == [result]  # from the checkpoint
    assert (tmp_path / f"{name}.npz").read_bytes() == before


@pytest.mark.parametrize("data", ["classes", "numbers", "labels", LINKS.data])
def test_the_predictions_of_every_task_are_stored(
    many_graphs: None, data: str, tmp_path: Path
) -> None:
    cell = replace(LINKS, data=data, task="links" if data == LINKS.data else "auto")
    (result,) = train_seeds(cell, output=tmp_path)
    target = cell.problem.target
    with np.load(tmp_path / "seed_0.npz", allow_pickle=False) as stored:
        out, y = (torch.from_numpy(stored[f"test_{each}"]) for each in ("outputs", "labels"))
    found = target.value(result.metric, target.reads(result.metric, out), y)
    assert found == pytest.approx(result.test_metric, abs=1e-6)


@pytest.mark.parametrize("name", ["links", "links_pubmed", "mutag", "solubility"])
def test_recipes_of_tasks_are_those_of_the_raw_figures(name: str) -> None:
    path = ROOT / "docs" / "results" / "tasks" / f"{name}.yaml"
    _, cells = load_recipe(path)
    trained = pd.read_csv(path.with_suffix(".csv"))
    keys = ["name", "depth", "seed", "split"]
    found = trained.reindex(columns=keys).fillna(0).itertuples(index=False, name=None)
    assert set(found) == {(c.name, c.depth, c.seed, c.split) for c in cells}
    task = "links" if name.startswith("links") else "graphs"
    assert {asdict(cell)["task"] for cell in cells} == {task}
