"""A cell and its split."""

from pathlib import Path

import numpy as np
import pytest
import torch

from eamp.cli import main
from eamp.data import DataError
from eamp.experiments.cell import Cell
from eamp.experiments.several_seeds import train_seeds

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


def test_eamp_train_takes_a_split(three_splits: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "--data", three_splits, "--depth", "2", "--changes", '{"epochs": 2}']
    assert main([*command, "--split", "2"]) == 0
    assert "(1 seed, split 2 of 0 … 2, protocol standard" in capsys.readouterr().out
    assert main(command) == 0
    assert "(1 seed, split 0 of 0 … 2, protocol standard" in capsys.readouterr().out
    assert main([*command, "--split", "3"]) == 2
    assert "there is no split 3" in capsys.readouterr().err
