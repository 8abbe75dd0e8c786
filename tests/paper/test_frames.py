from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest

from eamp.experiments.cell import Cell
from eamp.paper.frames import COLUMNS, checked, flat, load_frames, read_frame, save_frames


def test_cells_that_differ_are_not_averaged(frames: dict[str, pd.DataFrame]) -> None:
    cells = frames["cells"]
    with pytest.raises(ValueError, match="several values of width"):
        checked(cells.assign(width=range(len(cells))), "cells")
    with pytest.raises(ValueError, match="several values of entropy"):
        checked(cells.assign(entropy=[{"weight": k} for k in range(len(cells))]), "cells")
    with pytest.raises(ValueError, match="twice with seed 0"):
        checked(pd.concat([cells, cells.head(1)]), "cells")
    with pytest.raises(ValueError, match="no column test_accuracy"):
        checked(cells.drop(columns="test_accuracy"), "cells")


def test_a_missing_column_of_a_cell_has_its_default(frames: dict[str, pd.DataFrame]) -> None:
    old = frames["cells"].drop(columns=["width"])
    cells = checked(old, "cells")
    assert set(COLUMNS["cells"]) <= set(cells.columns)
    assert {field.name for field in fields(Cell)} <= set(cells.columns)
    assert (cells["width"] == 64).all()


def test_cells_without_their_curves_can_be_saved() -> None:
    frame = pd.DataFrame(
        {"name": ["a", "b"], "energy": [[1.0], [2.0]], "entropy": [None, {"weight": 1}]}
    )
    assert flat(frame).to_dict("list") == {"name": ["a", "b"], "entropy": ["null", '{"weight": 1}']}


def test_numbers_and_names_are_read_as_they_were_written(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "name": ["None", "NA", ""],
            "depth": [4, 8, 16],
            "energy": [0.1 + 0.2, 1e-320, float("nan")],
        }
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    pd.testing.assert_frame_equal(read_frame(tmp_path / "a.csv"), frame, check_exact=True)


def test_missing_frames_are_saved_and_read_as_empty_ones(tmp_path: Path) -> None:
    save_frames(tmp_path, **dict.fromkeys(COLUMNS))
    frames = load_frames(tmp_path)
    for which, columns in COLUMNS.items():
        assert list(getattr(frames, which).columns) == list(columns)
        assert getattr(frames, which).empty
