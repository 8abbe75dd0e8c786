"""A cell and its split."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from eamp.cli import main
from eamp.data import DataError, csbm
from eamp.experiments import cell as module
from eamp.experiments.cell import Cell, file_stamp
from eamp.experiments.several_seeds import train_seeds
from eamp.nn import Gain
from eamp.training import CheckpointError, TrainingWarning

MASKS = ("train_mask", "val_mask", "test_mask")


def cell(data: str, split: int) -> Cell:
    return Cell("gcn", data, 2, width=4, changes={"epochs": 2}, split=split)


def test_a_cell_takes_the_masks_of_its_split(three_splits: str) -> None:
    stored = np.load(three_splits)
    for split in range(3):
        graph = cell(three_splits, split).graph
        assert graph.num_splits == 3
        for name in MASKS:
            assert torch.equal(graph[name], torch.from_numpy(stored[name][:, split]))


def test_a_split_that_does_not_exist_says_what_to_do(three_splits: str) -> None:
    for data, split, number in ((three_splits, 3, 3), ("csbm", 1, 1), ("csbm", -1, 1)):
        reason = f"there is no split {split}: train_mask holds {number}"
        with pytest.raises(DataError, match=reason):
            cell(data, split).build()
    with pytest.raises(DataError, match="split 1 asks for the graph's own masks, but it has none"):
        cell("grid:4x4", 1).build()
    assert cell("csbm", 0).graph.num_splits == cell("grid:4x4", 0).graph.num_splits == 1


def test_splits_keep_their_checkpoints_apart(three_splits: str, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    first, second = (train_seeds(cell(three_splits, split), output=folder) for split in (0, 1))
    assert first[0].history != second[0].history
    assert {file.stem for file in folder.iterdir()} == {"seed_0", "split_1_seed_0"}
    assert train_seeds(cell(three_splits, 1), output=folder) == second


def test_results_without_a_finite_number_are_json(tmp_path: Path) -> None:
    wild = Cell("gcn", "csbm", 2, width=4, changes={"epochs": 3, "learning_rate": 1e30})
    with pytest.warns(TrainingWarning, match="diverged"):
        (result,) = train_seeds(wild, output=tmp_path)
    text = (tmp_path / "seed_0.json").read_text(encoding="utf-8")
    found = json.loads(text, parse_constant=lambda sign: pytest.fail(f"{sign} is not JSON"))
    assert found["history"][-1][0] is None
    assert found["test_accuracy"] == result.test_accuracy
    with pytest.warns(TrainingWarning, match="diverged"):
        again = train_seeds(wild, output=tmp_path)
    assert repr(again) == repr([result])  # the checkpoint keeps NaN


def test_eamp_train_takes_a_split(three_splits: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "--data", three_splits, "--depth", "2", "--changes", '{"epochs": 2}']
    assert main([*command, "--split", "2"]) == 0
    assert "(1 seed, split 2 of 0 … 2, protocol standard" in capsys.readouterr().out
    assert main(command) == 0
    assert "(1 seed, split 0 of 0 … 2, protocol standard" in capsys.readouterr().out
    assert main([*command, "--split", "3"]) == 2
    assert "there is no split 3" in capsys.readouterr().err


@pytest.fixture
def own_graph(tmp_path: Path) -> tuple[str, Callable[[int], None]]:
    """The path of a graph, and a function that replaces it by one of another seed."""
    path = tmp_path / "mine.npz"

    def write(seed: int) -> None:
        graph = csbm(nodes=60, features=8, classes=2, seed=seed)
        masks = {name: graph[name] for name in MASKS}
        np.savez(path, x=graph.x, edge_index=graph.edge_index, y=graph.y, **masks)

    write(0)
    return str(path), write


def test_a_file_that_changes_makes_another_cell(
    own_graph: tuple[str, Callable[[int], None]], tmp_path: Path
) -> None:
    path, write = own_graph
    mine, folder = cell(path, 0), tmp_path / "out"
    key, job, graph = mine.key, mine.job, mine.graph
    assert mine.key == key
    mine.check_graph(job)
    before = train_seeds(mine, output=str(folder))
    write(0)  # the same graph, written again
    assert mine.key == key
    assert train_seeds(mine, output=folder) == before
    write(1)
    assert mine.key != key
    assert not torch.equal(mine.graph.x, graph.x)
    with pytest.raises(CheckpointError, match=r"seed_0.* other data: the graph has changed since"):
        train_seeds(mine, output=folder)
    with pytest.raises(ValueError, match=r"mine.npz holds another graph than when this job was"):
        mine.check_graph(job)
    assert Cell.from_job(job) == mine
    mine.check_graph({name: value for name, value in job.items() if name != "graph"})  # an old one


def test_a_name_that_says_which_graph_it_is_does_not_load_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "load", None)
    for name in ("cora", "undirected:CiteSeer", "csbm:nodes=50", "grid:4x4", "pyg:WebKB/Texas"):
        assert "graph" not in cell(name, 0).job
        assert "graph" not in cell(f"extra_edges=0.5:{name}", 0).job


def test_every_seed_draws_its_own_harder_version() -> None:
    """Means over seeds then cover the draw, and networks with the same seed share their graph."""
    plain = "csbm:nodes=60,features=8"
    for name, same in ((f"corrupted_features=0.5:{plain}", False), (plain, True)):
        first, second = (replace(cell(name, 0), seed=seed) for seed in (0, 1))
        assert torch.equal(first.graph.x, second.graph.x) == same
        assert replace(first, model="gcnii").graph is first.graph
        assert torch.equal(first.graph.edge_index, second.graph.edge_index)
    assert replace(cell(f"extra_edges=0.5:{plain}", 0), seed=-1).graph.num_edges == 360
    assert cell(f"extra_edges=0.5:{plain}", 0).key != cell(plain, 0).key


def test_a_harder_version_of_a_file_notices_that_the_file_changes(
    own_graph: tuple[str, Callable[[int], None]],
) -> None:
    path, write = own_graph
    mine = cell(f"corrupted_features=0.5:undirected:{path}", 0)
    job = mine.job
    assert job["graph"] not in (cell(path, 0).job["graph"], replace(mine, seed=1).job["graph"])
    write(1)
    with pytest.raises(ValueError, match="holds another graph than when this job was queued"):
        mine.check_graph(job)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"depth": -3}, "depth must be a whole number of at least 0, but is -3"),
        ({"depth": "4"}, "depth must be a whole number of at least 0, but is '4'"),
        ({"width": 0}, "width must be a whole number of at least 1, but is 0"),
        ({"dropout": 1.5}, "dropout must be a number from 0 to 1, but is 1.5"),
        ({"protocol": "papers"}, "no protocol named 'papers'; there are paper, standard"),
        ({"changes": {"epochs": "many"}}, "epochs must be a whole number of at least 1"),
        ({"changes": [1]}, "changes must be a mapping"),
    ],
)
def test_settings_that_cannot_be_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(cell("csbm", 0), **change)


def test_eamp_train_marks_runs_that_diverged(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["train", "--data", "csbm:nodes=60,features=8", "--depth", "2"]
    command += ["--changes", '{"learning_rate": 1e30, "epochs": 4}', "--output", str(tmp_path)]
    with pytest.warns(TrainingWarning, match="training diverged: .* Try a lower learning rate"):
        assert main(command) == 0
    assert "(diverged)" in capsys.readouterr().out


def test_a_name_holds_no_control_characters() -> None:
    with pytest.raises(ValueError, match="name must be text of one line"):
        Cell("gcn", "grid:4x4", depth=2, name="a\x1b[2Jb")


@pytest.mark.parametrize(
    "name", ["cora", "actor", "undirected:minesweeper", "missing_features:cora", "grid:4x4"]
)
def test_a_file_with_the_name_of_a_dataset_is_not_taken_for_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = name.removeprefix("undirected:").removeprefix("missing_features:")
    (tmp_path / file).write_text("not a graph")
    assert file_stamp(name) is None


@pytest.mark.parametrize(
    ("model", "entropy", "expected"),
    [
        ("gcn", {}, (1.0, 10.0, True, "output")),
        ("gcn", {"weight": 3.0}, (3.0, 10.0, True, "output")),
        ("entropic-gcn", None, (1.0, 10.0, True, "output")),
        ("entropic-gcnii", None, (1.0, 10.0, True, "output")),
        ("entropic-deep-gcn", None, (Gain(0.3), 100.0, True, "input")),
        ("entropic-deep-gcn", {"detach": False}, (1.0, 10.0, False, "input")),
    ],
)
def test_options_of_the_step_that_a_cell_leaves_out_never_change(
    model: str, entropy: dict[str, Any] | None, expected: tuple[Any, ...]
) -> None:
    cell = Cell(model, "grid:4x4", depth=2, width=4, entropy=entropy)
    step = cell.build().convs[0].step
    assert (step.weight, step.temperature, step.detach, step.placement) == expected
