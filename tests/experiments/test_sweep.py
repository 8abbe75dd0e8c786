"""Sweeps in one process: what they train, and the tables that they return."""

import errno
import json
import math
import os
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from optuna.artifacts import download_artifact, get_all_artifact_meta
from rich.console import Console
from rich.table import Table

import eamp
from eamp import cli, data
from eamp.experiments.cell import Cell
from eamp.experiments.recipe import load_recipe
from eamp.experiments.schema import JSON_COLUMNS
from eamp.experiments.several_seeds import mean_and_deviation
from eamp.experiments.store import Store
from eamp.experiments.sweep import layer_energies, parts_by_metric, save, summary, sweep
from eamp.training import METRICS, TrainingWarning, checkpoints
from experiments.every_digit import EVERY_DIGIT

CELLS = [
    Cell(
        "gcn",
        "csbm:nodes=60,features=8",
        depth,
        width=8,
        protocol="paper",
        changes={"epochs": 40},
        entropy=entropy,
    )
    for depth in (2, 4)
    for entropy in (None, {"weight": 1.0, "temperature": 1.0})
]


def test_a_cell_that_fails(
    tmp_path: Path, in_this_process: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "{data: 'csbm:nodes=60,features=8', depth: 2, width: 8, changes: {epochs: 2}, runs: ["
        "{model: gcn}, {model: g2}, {model: pairnorm, name: bad, options: {scale: wide}}]}",
        encoding="utf-8",
    )
    command = ["sweep", str(recipe), "--output", str(tmp_path / "a folder")]
    reason = "failed: csbm:nodes=60,features=8 bad depth 2 seed 0: TypeError: "
    for options, done in (([], 3), ([], 0), (["--retry_failed"], 1)):
        assert cli.main([*command, *options]) == 1
        said = capsys.readouterr()
        # Where kernels are compiled for the first time, that is said, too.
        (line,) = (line for line in said.err.splitlines() if "compiling" not in line)
        assert line.startswith(reason)
        assert "2 of 3 cells" in said.out
        assert in_this_process.pop() == done


def test_rows_say_by_which_version_they_were_trained(
    tmp_path: Path, in_this_process: list[int]
) -> None:
    table = sweep(CELLS[:1], Store(tmp_path, "study"))
    save(table, tmp_path)
    (version,) = pd.read_csv(tmp_path / "cells.csv")["version"]
    assert version == f"eamp {eamp.__version__}, torch {torch.__version__}"


def test_a_recipe_that_grows_runs_what_is_new(tmp_path: Path, in_this_process: list[int]) -> None:
    store = Store(tmp_path, "study")
    few = sweep(CELLS[:2], store)
    more = sweep(CELLS[:3], store)
    assert in_this_process == [2, 1]
    pd.testing.assert_frame_equal(few, more[:2])


def test_two_recipes_in_one_folder(tmp_path: Path, in_this_process: list[int]) -> None:
    first, second = Store(tmp_path, "first"), Store(tmp_path, "second")
    tables = [sweep(CELLS[:1], first), sweep(CELLS[:2], second)]
    assert in_this_process == [1, 2]
    assert list(map(len, tables)) == [1, 2]
    assert len(first.trials()) == 1


def test_data_that_cannot_be_had_are_found_out_first(
    tmp_path: Path, in_this_process: list[int]
) -> None:
    store = Store(tmp_path, "study")
    with pytest.raises(ValueError, match="nowhere"):
        sweep([CELLS[0], replace(CELLS[0], data="nowhere")], store)
    assert not store.trials()


@pytest.mark.parametrize(
    "wrong", [{"options": {"nonsense": 1}}, {"entropy": {"weight": "nonsense"}}]
)
def test_a_network_that_cannot_be_made_is_found_out_first(
    wrong: dict[str, Any], tmp_path: Path, in_this_process: list[int]
) -> None:
    store = Store(tmp_path, "study")
    with pytest.raises(ValueError, match=r"gcn depth 2 seed 0: .*nonsense"):
        sweep([CELLS[1], replace(CELLS[0], **wrong), replace(CELLS[2], **wrong)], store)
    assert not store.trials()


def test_every_epoch_and_layer_is_kept_with_the_trial(
    tmp_path: Path, in_this_process: list[int]
) -> None:
    store = Store(tmp_path, "study")
    table = sweep(CELLS[:1], store)
    (trial,) = store.trials()
    (kept,) = get_all_artifact_meta(trial, storage=store.storage)
    assert kept.filename == "curves.json"
    download_artifact(
        artifact_store=store.artifacts,
        artifact_id=kept.artifact_id,
        file_path=str(tmp_path / "again.json"),
    )
    curves = json.loads((tmp_path / "again.json").read_text())
    result = CELLS[0].train()
    assert curves["epochs"] == [row._asdict() for row in result.history]
    assert len(curves["epochs"]) == 40
    assert curves["energy"] == result.energy == table["energy"][0]
    assert curves["final_energy"] == result.final_energy
    assert trial.intermediate_values == {
        epoch: result.history[epoch - 1].val_accuracy for epoch in (1, 10, 20, 30, 40)
    }
    assert table["best_val_accuracy"][0] == max(row.val_accuracy for row in result.history)
    assert (
        table["test_accuracy"][0] == min(result.history, key=lambda row: row.val_loss).test_accuracy
    )


def test_tables_can_be_read_back(tmp_path: Path, in_this_process: list[int]) -> None:
    cells = [CELLS[0], CELLS[1]]
    table = sweep(cells, Store(tmp_path, "study"))
    save(table, tmp_path)
    read = partial(pd.read_csv, **EVERY_DIGIT)
    again = read(tmp_path / "cells.csv", converters=dict.fromkeys(JSON_COLUMNS, json.loads))
    flat = table.drop(columns=["energy", "final_energy"])
    pd.testing.assert_frame_equal(again, flat, check_exact=True)
    energies = read(tmp_path / "layer_energies.csv")
    assert energies["energy"].tolist() == table["final_energy"].explode().tolist()
    assert energies["selected_energy"].tolist() == table["energy"].explode().tolist()
    assert energies["layer"].tolist() == [1, 2, 3] * 2


def test_cells_that_differ_in_name_alone_are_trained_once_and_shown_twice(
    tmp_path: Path, in_this_process: list[int]
) -> None:
    store, (cell, other) = Store(tmp_path, "study"), CELLS[:2]
    table = sweep([cell, other, replace(cell, name="again")], store)
    assert in_this_process == [2]
    assert len(store.trials()) == 2
    assert table["name"].tolist() == ["gcn", "gcn", "again"]
    again = table[table["name"] == "again"].reset_index(drop=True)
    pd.testing.assert_frame_equal(again.drop(columns="name"), table[:1].drop(columns="name"))


def test_a_new_name_trains_nothing_again(tmp_path: Path, in_this_process: list[int]) -> None:
    store = Store(tmp_path, "study")
    sweep(CELLS[:1], store)
    assert sweep([replace(CELLS[0], name="renamed")], store)["name"].tolist() == ["renamed"]
    assert in_this_process == [1, 0]


# --- Splits


def printed(table: Table) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def rows(*accuracies: tuple[float, float], **more: list[int]) -> pd.DataFrame:
    names = ["best_val_accuracy", "test_accuracy"]
    table = pd.DataFrame(accuracies, columns=names)
    return table.assign(data="cora", name="GCN", depth=4, seed=range(len(table)), **more)


def test_the_summary_names_its_numbers() -> None:
    said = printed(summary(rows((0.8, 0.7), (0.6, 0.5))))
    assert "highest validation accuracy" in said
    assert "test accuracy at lowest validation loss" in said
    assert "70.00 ± 14.14" in said
    assert "60.00 ± 14.14" in said
    assert "mean ± sample standard deviation over seeds, in percent" in said
    assert "│ cora │ GCN     │     4 │     2 │" in said
    assert "│ cora │ GCN     │     4 │     1 │" in printed(summary(rows((0.8, 0.7))))


def test_the_summary_is_over_seeds_and_splits_or_by_split() -> None:
    table = rows((0.8, 0.7), (0.6, 0.5), (0.8, 0.7), (0.6, 0.5), split=[0, 0, 1, 1])
    table["seed"] = [0, 1, 0, 1]
    together, apart = printed(summary(table)), printed(summary(table, by_split=True))
    assert "mean ± sample standard deviation over seeds × splits, in percent" in together
    assert "2 × 2" in together
    assert together.count("70.00 ± 11.55") == 1
    assert "× 2" not in printed(summary(table[:3]))  # a combination is missing
    assert "over seeds, in percent" in apart
    assert apart.count("70.00 ± 14.14") == 2


# --- Metrics


TWO_CLASSES = "csbm:nodes=60,features=8,classes=2"


def test_a_metric_has_its_own_columns_and_tables(
    tmp_path: Path, in_this_process: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        f"{{data: '{TWO_CLASSES}', depth: 2, width: 8, seeds: 2, runs: ["
        "{model: gcn, name: plain, changes: {epochs: 30}}, "
        "{model: gcn, name: by loss, changes: {epochs: 30, metric: roc_auc}}, "
        "{model: gcn, name: by AUC, changes: {epochs: 30, metric: roc_auc, select: val_metric}}, "
        "{model: gcn, name: by accuracy, changes: {epochs: 30, select: val_metric}}, "
        "{model: gcn, name: the same, changes: {epochs: 30, select: val_accuracy}}]}",
        encoding="utf-8",
    )
    _, cells = load_recipe(recipe)
    assert cli.main(["sweep", str(recipe), "--output", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    table = pd.read_csv(tmp_path / "cells.csv").set_index(["name", "seed"])
    for cell in cells:
        result, row = cell.train(), table.loc[(cell.name, cell.seed)]
        lowest = min(result.history, key=lambda epoch: epoch.val_loss)
        assert row["best_val_accuracy"] == result.best_val_accuracy
        assert row["test_accuracy"] == lowest.test_accuracy
        if cell.name == "plain":
            assert row[["metric", "select", "best_val_metric", "test_metric"]].isna().all()
        else:
            assert (row["metric"], row["select"]) == (cell.metric, cell.rules.select)
            assert row["best_val_metric"] == result.best_val_metric
            assert row["test_metric"] == result.test_metric
    assert (
        table.loc["by loss"]["test_metric"].tolist()
        != table.loc["by loss"]["test_accuracy"].tolist()
    )
    assert said.count("mean ± sample standard deviation over seeds, in percent") == 5
    tables = [summary(part) for part in parts_by_metric(table.reset_index())]
    heads = [line for line in printed_rows(tables) if "network" in line]
    assert ["ROC AUC" in head for head in heads] == [False, True, True, False, False]
    for head, rule in zip(
        heads,
        (
            "test accuracy at lowest validation loss",
            "test ROC AUC at lowest validation loss",
            "test ROC AUC at highest validation ROC AUC",
            "test accuracy at highest validation accuracy",
            "test accuracy at highest validation accuracy",
        ),
        strict=True,
    ):
        assert rule in head
    assert sweep(cells[:1], Store(tmp_path, "recipe")).columns.intersection(["metric"]).empty


def printed_rows(tables: list[Table]) -> list[str]:
    return [line for table in tables for line in printed(table).splitlines()]


def test_the_curve_of_a_cell_is_its_metric(tmp_path: Path, in_this_process: list[int]) -> None:
    store, changes = Store(tmp_path, "study"), {"epochs": 20, "metric": "roc_auc"}
    cell = replace(CELLS[0], data=TWO_CLASSES, changes=changes)
    sweep([cell], store)
    (trial,), result = store.trials(), cell.train()
    values = {epoch: result.history[epoch - 1].val_metric for epoch in (1, 10, 20)}
    assert trial.intermediate_values == values
    assert trial.value == result.val_metric


def test_a_metric_that_does_not_fit_is_found_out_first(
    tmp_path: Path, in_this_process: list[int]
) -> None:
    store = Store(tmp_path, "study")
    wrong = replace(CELLS[0], changes={"epochs": 2, "metric": "average_precision"})
    with pytest.raises(ValueError, match=f"{wrong.data}: the metric average_precision is for two"):
        sweep([CELLS[0], wrong], store)
    assert not store.trials()


def test_splits_of_the_data_are_trained_apart(
    tmp_path: Path, in_this_process: list[int], three_splits: str
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        f"{{data: '{three_splits}', depth: 2, width: 8, changes: {{epochs: 3}}, splits: 3, "
        "runs: [{model: gcn}]}",
        encoding="utf-8",
    )
    _, cells = load_recipe(recipe)
    store = Store(tmp_path, "study")
    table = sweep(cells, store)
    assert table["split"].tolist() == [0, 1, 2]
    assert table["test_accuracy"].nunique() > 1
    expected = [replace(cells[0], split=split).train().best_val_accuracy for split in range(3)]
    assert table["best_val_accuracy"].tolist() == expected
    assert layer_energies(table)["split"].tolist() == [0] * 3 + [1] * 3 + [2] * 3
    first = sweep(cells[:1], store)
    assert first["split"].tolist() == [0]  # the data have several
    assert "num_splits" not in first
    assert "split" not in sweep(CELLS[:1], store)
    assert in_this_process == [3, 0, 1]
    assert cli.main(["sweep", str(recipe), "--output", str(tmp_path / "new"), "--by_split"]) == 0
    assert pd.read_csv(tmp_path / "new" / "cells.csv")["split"].tolist() == [0, 1, 2]


def test_a_split_that_the_data_do_not_have_is_found_out_first(
    tmp_path: Path, in_this_process: list[int], three_splits: str
) -> None:
    for name in (three_splits, CELLS[0].data):
        store = Store(tmp_path, "study")
        with pytest.raises(data.DataError, match="there is no split 3"):
            sweep([replace(CELLS[0], data=name, split=3)], store)
        assert not store.trials()


def test_another_graph_in_the_same_file_is_trained_anew(
    tmp_path: Path, in_this_process: list[int], three_splits: str
) -> None:
    store, cells = Store(tmp_path / "runs", "study"), [replace(CELLS[0], data=three_splits)]
    first = sweep(cells, store)
    stored = dict(np.load(three_splits))
    np.savez(three_splits, **{**stored, "x": stored["x"][::-1]})
    second = sweep(cells, store)
    assert in_this_process == [1, 1]
    assert first["val_loss"][0] != second["val_loss"][0]
    np.savez(three_splits, **stored)  # the first graph is back, and so is its result
    pd.testing.assert_frame_equal(sweep(cells, store), first)
    assert in_this_process == [1, 1, 0]


def test_a_cell_that_diverges_is_told_and_marked(
    tmp_path: Path, in_this_process: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "{data: 'csbm:nodes=60,features=8', depth: 2, width: 8, runs: [{model: gcn, name: wild, "
        "changes: {epochs: 4, learning_rate: 1e30}}, {model: gcn, changes: {epochs: 4}}]}",
        encoding="utf-8",
    )
    for _ in range(2):  # trained, and read
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrainingWarning)  # a worker writes it to its log
            assert cli.main(["sweep", str(recipe), "--output", str(tmp_path)]) == 0
        said = capsys.readouterr()
        warned = "warning: csbm:nodes=60,features=8 wild depth 2 seed 0: training diverged"
        assert said.err.startswith(warned)
        assert said.err.count("diverged") == 1
        assert said.out.count("†") == 3  # two accuracies, and the explanation
    cells = pd.read_csv(tmp_path / "cells.csv")
    assert cells["diverged"].notna().tolist() == [True, False]
    assert not any("NaN" in each.read_text() for each in (tmp_path / "artifacts").iterdir())


def test_columns_do_not_follow_the_order_of_the_database(
    tmp_path: Path, in_this_process: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, "study")
    columns = sweep(CELLS[:1], store).columns.tolist()
    trials = store.trials()
    for trial in trials:
        trial.user_attrs = dict(reversed(trial.user_attrs.items()))
    monkeypatch.setattr(store, "trials", lambda *states: trials)
    assert sweep(CELLS[:1], store).columns.tolist() == columns


def test_a_full_disk_is_not_the_fault_of_the_cells(
    tmp_path: Path,
    in_this_process: list[int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "{data: 'csbm:nodes=60,features=8', depth: 2, width: 8, seeds: 2, "
        "changes: {epochs: 2}, runs: [{model: gcn}]}",
        encoding="utf-8",
    )
    command = ["sweep", str(recipe), "--output", str(tmp_path)]
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "write_atomically", full)
        for _ in range(7):  # two cells, three times each, and once more
            assert cli.main(command) != 0
            assert "No space left on device: free some space on the disk, and run the same" in (
                capsys.readouterr().err
            )
    assert cli.main(command) == 0
    assert "2 of 2 cells" in capsys.readouterr().out


def test_without_workers_nothing_can_be_done(tmp_path: Path) -> None:
    for workers in (0, -2):
        with pytest.raises(ValueError, match=f"workers must be at least 1, but is {workers}"):
            sweep(CELLS[:1], Store(tmp_path, "study"), workers)


@pytest.mark.filterwarnings("ignore:training diverged")
def test_a_network_without_a_finite_reading_ends_no_sweep(
    tmp_path: Path, in_this_process: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """One of two seeds of a regression diverges; the page and the table say so."""
    values = [float("nan"), 0.5]
    assert mean_and_deviation(values, METRICS["mae"]) == "nan ± nan"
    assert mean_and_deviation([math.inf], METRICS["mae"]) == "inf"
    (tmp_path / "r.yaml").write_text(
        "{data: 'grid:5x5', depth: 2, width: 8, seeds: 2, runs: [{model: gcn, changes: "
        "{metric: mae, epochs: 12, learning_rate: 1.0e+30}}, {model: gcn, name: good, "
        "changes: {metric: mae, epochs: 3}}]}",
        encoding="utf-8",
    )
    out = tmp_path / "out"
    assert cli.main(["sweep", str(tmp_path / "r.yaml"), "--output", str(out)]) == 0
    assert "† Training diverged." in (out / "report.html").read_text("utf-8")
    assert "training diverged" in capsys.readouterr().err.lower()
