"""Searches: what they try, what they find, and what they leave behind."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState
from torch_geometric.data import Data

from eamp import cli
from eamp.cli.options import cell_from
from eamp.experiments import cell
from eamp.experiments import tune as module
from eamp.experiments.cell import Cell, load_graph
from eamp.experiments.database import StoreError
from eamp.experiments.recipe import load_recipe
from eamp.experiments.search import Search, distribution, with_settings
from eamp.experiments.store import Claim, Store
from eamp.experiments.tune import best_cell, save_recipe, train_command, tune
from eamp.experiments.worker import work
from eamp.training import METRICS, TrainingWarning
from eamp.training.metrics import Metric

CELL = Cell("gcn", "csbm:nodes=60,features=8", 2, width=8, protocol="paper", changes={"epochs": 10})
SPACE = {"changes.learning_rate": {"low": 1e-6, "high": 0.1, "log": True}, "dropout": [0.0, 0.5]}


pytestmark = pytest.mark.usefixtures("in_this_process")


def outcome(store: Store) -> list[tuple[int, str, dict[str, Any], float | None]]:
    """The number, state, settings and value of every try."""
    return [
        (trial.user_attrs["cell"]["try"], trial.state.name, trial.params, trial.value)
        for trial in store.trials()
        if trial.state.name != "FAIL"
    ]


def test_it_finds_what_is_plainly_better(tmp_path: Path) -> None:
    search = Search(CELL, {"changes.learning_rate": [1e-9, 0.05]}, seeds=2)
    trials = tune(search, Store(tmp_path, "s"), trials=6)
    assert trials[0].params == {"changes.learning_rate": 0.05}
    assert best_cell(trials) == replace(CELL, changes={"epochs": 10, "learning_rate": 0.05})
    results = [replace(best_cell(trials), seed=seed).train() for seed in (0, 1)]
    assert trials[0].value == sum(result.val_accuracy for result in results) / 2
    assert not list((tmp_path / "checkpoints").iterdir())


def test_the_first_trial_has_the_settings_that_the_search_is_given(tmp_path: Path) -> None:
    space = {
        "changes.learning_rate": {"low": 1e-6, "high": 0.1, "log": True},  # the protocol's: 1e-3
        "changes.weight_decay": {"low": 1e-5, "high": 1.0},  # without the protocol's 0
        "dropout": [0.0, 0.5],
        "width": {"low": 4, "high": 64, "step": 4},
        "entropy.weight": [1.0, 2.0],  # the cell has no step
    }
    search = Search(CELL, space)
    given = {"changes.learning_rate": 1e-3, "dropout": 0.0, "width": 8}
    assert search.given() == given
    store = Store(tmp_path, "s")
    for trials in (2, 3):  # continued, the search does not begin anew
        tune(search, store, trials=trials)
    tried = [trial.params for trial in store.trials()]
    assert len(tried) == 3
    assert given.items() <= tried[0].items()
    assert not any(given.items() <= later.items() for later in tried[1:])


def test_a_model_with_a_step_begins_with_its_own(tmp_path: Path) -> None:
    space = {"entropy.weight": [0.5, 1.0, 2.0], "entropy.temperature": {"low": 1.0, "high": 20.0}}
    step = {"entropy.weight": 1.0, "entropy.temperature": 10.0}
    assert Search(replace(CELL, model="entropic-gcn"), space).given() == step
    told = replace(CELL, model="entropic-gcn", entropy={"weight": 2.0, "temperature": 30.0})
    assert Search(told, space).given() == {"entropy.weight": 2.0}


def by_metric(metric: str, **changes: Any) -> Cell:
    changes |= {"epochs": 10, "metric": metric, "select": "val_metric"}
    return replace(CELL, data="csbm:nodes=60,features=8,classes=2", changes=changes)


def test_it_maximises_the_metric_of_the_protocol(tmp_path: Path) -> None:
    search = Search(by_metric("roc_auc"), {"changes.learning_rate": [1e-9, 0.05]}, seeds=2)
    trials = tune(search, Store(tmp_path, "s"), trials=6)
    results = [replace(best_cell(trials), seed=seed).train() for seed in (0, 1)]
    assert trials[0].params == {"changes.learning_rate": 0.05}
    assert trials[0].user_attrs["val_roc_auc"] == [result.val_metric for result in results]
    assert trials[0].value == sum(result.val_metric for result in results) / 2
    assert trials[0].value != sum(result.val_accuracy for result in results) / 2


def test_it_minimises_a_metric_of_which_less_is_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def error(predicted: torch.Tensor, labels: torch.Tensor) -> float:
        return 1 - METRICS["accuracy"].of(predicted, labels)

    reads = METRICS["accuracy"].reads
    monkeypatch.setitem(METRICS, "error", Metric("error", reads, error, "minimize"))
    space, store = {"changes.learning_rate": [1e-9, 0.05]}, Store(tmp_path, "s")
    trials = tune(Search(by_metric("error"), space), store, trials=6)
    assert trials[0].params == {"changes.learning_rate": 0.05}
    result = best_cell(trials).train()
    assert result.val_metric == min(row.val_metric for row in result.history)
    module.save_trials(store, tmp_path / "trials.csv", "error")
    table = pd.read_csv(tmp_path / "trials.csv")
    assert table["val_error"].min() == pytest.approx(result.val_metric)
    assert (table["val_error"] >= 0).all()
    shown = list(module.best_table(trials, {}, "error").columns[1].cells)
    assert shown[0] == f"{100 * result.val_metric:.2f}"


def test_a_metric_that_does_not_fit_is_found_out_before_the_first_trial(tmp_path: Path) -> None:
    store = Store(tmp_path, "s")
    cell = replace(CELL, changes={"metric": "roc_auc"})
    with pytest.raises(ValueError, match="roc_auc is for two classes, but y holds 5"):
        tune(Search(cell, SPACE), store, trials=2)
    assert not store.trials()
    with pytest.raises(ValueError, match=r"trials are compared by the metric, .* in the changes"):
        Search(CELL, {"changes.metric": ["roc_auc", "accuracy"]})


def test_it_prunes_when_asked_to(tmp_path: Path) -> None:
    pruning, patient = Store(tmp_path, "pruning"), Store(tmp_path, "patient")
    tune(Search(CELL, SPACE), pruning, trials=7)
    tune(Search(CELL, SPACE, prune=False), patient, trials=7)
    assert {state for _, state, _, _ in outcome(pruning)} == {"COMPLETE", "PRUNED"}
    assert {state for _, state, _, _ in outcome(patient)} == {"COMPLETE"}
    assert not list((tmp_path / "checkpoints").iterdir())


def test_the_few_that_came_far_are_no_measure() -> None:
    """Five trials end early at .5, and one reaches a late epoch at .9.

    The next trial is not stopped at that epoch for being below that one alone.
    """
    study = optuna.create_study(direction="maximize", pruner=module.median_pruner(100))
    for value, end in (*[(0.5, 40)] * 5, (0.9, 90)):
        trial = study.ask()
        for step in range(10, end + 1, 10):
            trial.report(value, step)
        study.tell(trial, value)
    good, bad = study.ask(), study.ask()
    for step in range(10, 91, 10):
        good.report(0.8, step)
        assert not good.should_prune()
    for step in (10, 20):
        bad.report(0.4, step)
    assert bad.should_prune()


def test_test_nodes_play_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest, blind = Store(tmp_path, "honest"), Store(tmp_path, "blind")
    tune(Search(CELL, SPACE), honest, trials=7)

    def with_wrong_test_labels(*settings: Any) -> Data:
        graph = load_graph(*settings).clone()
        graph.y = torch.where(graph.test_mask, (graph.y + 1) % graph.num_classes, graph.y)
        return graph

    monkeypatch.setattr(cell, "load_graph", with_wrong_test_labels)
    tune(Search(CELL, SPACE), blind, trials=7)
    assert outcome(honest) == outcome(blind)


def test_killed_it_goes_on_with_the_same_settings(
    tmp_path: Path, in_this_process: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed, killed = Store(tmp_path / "a", "s"), Store(tmp_path / "b", "s")
    search = Search(CELL, SPACE, seeds=2, prune=False)
    tune(search, undisturbed, trials=6)
    train = Cell.train
    trainings: list[Cell] = []

    def dies(self: Cell, *given: Any, **options: Any) -> Any:
        trainings.append(self)
        if len(trainings) in (4, 9):  # in the middle of a try
            raise SystemExit
        return train(self, *given, **options)

    monkeypatch.setattr(Cell, "train", dies)
    for _ in range(2):
        with pytest.raises(SystemExit):
            tune(search, killed, trials=6)
    tune(search, killed, trials=6)
    lost = {
        trial.user_attrs["cell"]["try"]: trial.params for trial in killed.trials(TrialState.FAIL)
    }
    assert len(lost) == 2
    assert lost == {
        number: settings for number, _, settings, _ in outcome(killed) if number in lost
    }
    assert sorted(outcome(killed), key=lambda row: row[0]) == outcome(undisturbed)
    tune(search, killed, trials=7)
    assert in_this_process[-1] == 1


def test_equal_tries_keep_their_checkpoints_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers try the same settings at once: the first that is done removes its own file."""
    store, files, train = Store(tmp_path, "s"), list[Path](), Cell.train

    def noted(self: Cell, checkpoint: Path, **options: Any) -> Any:
        files.append(checkpoint)
        assert not checkpoint.exists()
        result = train(self, checkpoint, **options)
        if len(files) == 1:
            claim = store.claim()
            assert claim is not None
            with claim:
                module.run_try(claim)
        assert checkpoint.exists()
        return result

    monkeypatch.setattr(Cell, "train", noted)
    trials = tune(Search(CELL, {"dropout": [0.5]}), store, trials=2)
    assert len(trials) == 2
    assert len(set(files)) == 2
    assert not list((tmp_path / "checkpoints").iterdir())


def test_a_killed_try_is_pruned_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(replace(CELL, changes={"epochs": 20}), SPACE)
    undisturbed, killed = Store(tmp_path / "a", "s"), Store(tmp_path / "b", "s")
    tune(search, undisturbed, trials=7)
    assert "PRUNED" in {state for _, state, _, _ in outcome(undisturbed)}
    tune(search, killed, trials=3)
    report, finish, kills = optuna.Trial.report, Claim.finish, list[str]()

    def dies_after_report(self: optuna.Trial, value: float, step: int) -> None:
        report(self, value, step)
        if step == 10 and not kills:
            kills.append("report")
            raise SystemExit

    def dies_before_end(self: Claim, value: float | None, findings: dict[str, Any]) -> None:
        if value is None and "prune" not in kills:
            kills.append("prune")
            raise SystemExit
        finish(self, value, findings)

    monkeypatch.setattr(optuna.Trial, "report", dies_after_report)
    monkeypatch.setattr(Claim, "finish", dies_before_end)
    for _ in range(2):
        with pytest.raises(SystemExit):
            tune(search, killed, trials=7)
        killed.recover()
    tune(search, killed, trials=7)
    assert kills == ["report", "prune"]
    assert sorted(outcome(killed), key=lambda row: row[0]) == outcome(undisturbed)
    curves = [
        {
            trial.user_attrs["cell"]["try"]: trial.intermediate_values
            for trial in store.trials(TrialState.COMPLETE, TrialState.PRUNED)
        }
        for store in (undisturbed, killed)
    ]
    assert curves[0] == curves[1]


def test_a_search_goes_on_with_the_same_graph_only(tmp_path: Path, three_splits: str) -> None:
    store = Store(tmp_path, "s")
    search = Search(replace(CELL, data=three_splits), SPACE)
    tune(search, store, trials=1)
    stored = dict(np.load(three_splits))
    np.savez(three_splits, **{**stored, "x": stored["x"][::-1]})
    with pytest.raises(StoreError, match=r"three_splits.npz has changed since. Give --study anoth"):
        tune(search, store, trials=2)


def test_tries_that_diverge_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search = json.dumps({"changes.learning_rate": [1e30]})
    given = {"data": CELL.data, "width": 8, "changes": '{"epochs": 4}', "search": search}
    given |= {"trials": "1", "output": str(tmp_path)}
    with pytest.warns(TrainingWarning, match="diverged"):
        assert cli.main(["tune", *(f"--{name}={value}" for name, value in given.items())]) == 0
    said = capsys.readouterr()
    assert "warning: try 0 with {'changes.learning_rate': 1e+30}: training diverged" in said.err
    assert "0 pruned, 1 diverged" in said.out


@pytest.mark.parametrize(("trials", "seeds"), [(0, 1), (1, 0), (-2, 1)])
def test_nothing_cannot_be_searched(tmp_path: Path, trials: int, seeds: int) -> None:
    with pytest.raises(ValueError, match=r"(trials|seeds) must be at least 1, but is"):
        tune(Search(CELL, SPACE, seeds), Store(tmp_path, "s"), trials)


def test_a_study_is_of_one_search(tmp_path: Path) -> None:
    store = Store(tmp_path, "s")
    tune(Search(CELL, SPACE), store, trials=1)
    for other in (Search(CELL, SPACE, seeds=2), Search(replace(CELL, width=4), SPACE)):
        with pytest.raises(StoreError, match=r"'s' holds the search .*; give --study another name"):
            tune(other, store, trials=1)
    tune(Search(CELL, SPACE), store, trials=1)
    sweep = Store(tmp_path, "sweep")
    sweep.enqueue([{"a": "cell"}])
    with pytest.raises(StoreError, match="holds a sweep"):
        tune(Search(CELL, SPACE), sweep, trials=1)


def test_settings_that_fail_are_told(tmp_path: Path) -> None:
    store = Store(tmp_path, "s")
    trials = tune(Search(CELL, {"options.nonsense": [1]}), store, trials=2)
    assert trials == []
    assert len(module.failures(store)) == 2
    assert "unexpected keyword argument 'nonsense'" in module.failures(store)[0]


# --- The space


def test_ranges_and_lists() -> None:
    assert distribution(
        "entropy.weight", {"low": 0.1, "high": 30, "log": True}
    ) == FloatDistribution(0.1, 30, log=True)
    assert distribution("width", {"low": 8, "high": 64, "step": 8}) == IntDistribution(
        8, 64, step=8
    )
    assert distribution("dropout", [0, 0.5]) == CategoricalDistribution([0, 0.5])


@pytest.mark.parametrize(
    ("name", "choice", "message"),
    [
        (
            "entrpy.weight",
            [1],
            "cannot search over 'entrpy.weight'; settings are depth, width, dropout, norm",
        ),
        ("seed", [1, 2], "cannot search over 'seed'"),
        ("dropout.more", [1], "cannot search over"),
        ("entropy.", [1], "cannot search over"),
        ("changes.epochs.more", [1], "names a setting 'more' inside 10, which has none"),
        ("dropout", 0.5, "'dropout' of the search must be a list, or a range as in .*, but is 0.5"),
        ("dropout", {"low": 0}, "must be a list, or a range"),
        ("dropout", {"low": 1, "high": 0}, "must be a list, or a range"),
        ("dropout", [], "must be a list, or a range"),
    ],
)
def test_errors_say_what_came_and_what_was_expected(name: str, choice: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Search(CELL, {name: choice})


def test_settings_go_where_they_belong() -> None:
    start = replace(CELL, entropy={"detach": False})
    changed = with_settings(
        start,
        {
            "entropy.weight": 3.0,
            "entropy.temperature": 2.0,
            "dropout": 0.5,
            "changes.learning_rate": 0.1,
        },
    )
    assert changed.entropy == {"detach": False, "weight": 3.0, "temperature": 2.0}
    assert changed.changes == {"epochs": 10, "learning_rate": 0.1}
    assert changed.dropout == 0.5
    assert start.entropy == {"detach": False}
    gains = replace(CELL, entropy={"weight": {"schedule": "gain", "of": 0.3}, "temperature": 100})
    assert with_settings(gains, {"entropy.weight.of": 0.5}).entropy == {
        "weight": {"schedule": "gain", "of": 0.5},
        "temperature": 100,
    }


# --- What comes out


def test_the_command_and_the_recipe_repeat_the_best(tmp_path: Path) -> None:
    best = replace(
        CELL,
        entropy={"weight": 1 / 3, "temperature": 1e-7},
        seed=2,
        normalize_features=True,
        dropout=0.1,
        split=1,
    )
    options = cli.build().parse_args(shlex.split(train_command(best, 3))[1:]).train
    assert options.seeds == 3
    assert cell_from(options) == best
    save_recipe(best, 3, tmp_path / "best.yaml")
    assert load_recipe(tmp_path / "best.yaml")[1] == [
        replace(best, seed=seed) for seed in (2, 3, 4)
    ]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = {
        "data": CELL.data,
        "depth": 2,
        "width": 8,
        "protocol": "paper",
        "changes": json.dumps({"epochs": 10}),
        "search": json.dumps(SPACE),
        "trials": 3,
        "prune": "false",
        "output": tmp_path,
    }
    assert cli.main(["tune", *(f"--{name}={value}" for name, value in options.items())]) == 0
    said = capsys.readouterr().out
    store = Store.existing(tmp_path)
    assert store.study.study_name == "gcn on csbm:nodes=60,features=8, depth 2"
    best = Cell.from_job(store.study.best_trial.user_attrs["tried"])
    assert train_command(best, 1) in said
    assert "3 trials trained to the end, 0 pruned" in said
    assert load_recipe(tmp_path / "best.yaml")[1] == [best]
    table = pd.read_csv(tmp_path / "trials.csv")
    assert set(SPACE) < set(table)
    assert table.state.tolist() == ["complete"] * 3
    assert table.val_accuracy.max() == pytest.approx(store.study.best_value)


def test_the_command_line_calls_the_metric_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = by_metric("average_precision")
    given = ["--data", cell.data, "--depth", "2", "--width", "8", "--trials", "2"]
    given += ["--changes", json.dumps(cell.changes), "--search", json.dumps(SPACE)]
    assert cli.main(["tune", *given, "--output", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "validation average precision" in said
    assert "accuracy" not in said
    best = Store.existing(tmp_path).study.best_value
    assert pd.read_csv(tmp_path / "trials.csv").val_average_precision.max() == pytest.approx(best)


def test_others_can_help(tmp_path: Path) -> None:
    """``eamp work`` finds out by itself that a study is a search."""
    store = Store(tmp_path, "s")
    Search(CELL, SPACE).save_in(store)
    store.enqueue([{"try": 0}])
    assert cli.main(["work", "--output", str(tmp_path)]) == 0
    (trial,) = store.trials(TrialState.COMPLETE)
    assert set(trial.params) == set(SPACE)


def test_importances_come_with_enough_trials(tmp_path: Path) -> None:
    store = Store(tmp_path, "s")
    Search(CELL, SPACE).save_in(store)

    def run(claim: Claim) -> str:
        number = claim.job["try"]
        for name, value in {
            "changes.learning_rate": 10.0 ** -(number % 5 + 1),
            "dropout": 0.0,
        }.items():
            kind = distribution(name, SPACE[name])
            store.storage.set_trial_param(claim.trial_id, name, kind.to_internal_repr(value), kind)
        claim.finish(number % 5, {})
        return ""

    for number in range(module.SHOWN):
        assert module.importances(store) == {}
        store.enqueue([{"try": number}])
        work(store, run)
    found = module.importances(store)
    assert found["changes.learning_rate"] > found["dropout"]
    trials: list[FrozenTrial] = store.trials()
    assert module.best_table(trials, found).row_count == module.SHOWN


def test_a_range_of_a_whole_number_is_of_whole_numbers() -> None:
    space = {"low": 4, "high": 8}
    assert isinstance(distribution("width", space), IntDistribution)
    assert isinstance(distribution("dropout", {"low": 0, "high": 1}), FloatDistribution)
    with pytest.raises(ValueError, match="it is a whole number, so low and high must be"):
        distribution("depth", {"low": 2.5, "high": 8})
