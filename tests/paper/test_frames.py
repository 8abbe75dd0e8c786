import csv
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest

from eamp.experiments.cell import Cell
from eamp.experiments.csv_text import write_csv
from eamp.paper import from_folder
from eamp.paper.frames import (
    COLUMNS,
    DamagedFileError,
    Frames,
    checked,
    flat,
    load_frames,
    read_frame,
    save_frames,
)


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
    save_frames(tmp_path, Frames())
    frames = load_frames(tmp_path)
    for which, columns in COLUMNS.items():
        assert list(getattr(frames, which).columns) == list(columns)
        assert getattr(frames, which).empty


FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "'=1", "''+1", "\t=1", "'quoted'", "gcn"]


def test_a_spreadsheet_runs_no_name_and_names_come_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": FORMULAS, "energy": -1.5, "=2+3": "x"})
    write_csv(frame, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        heading, *rows = csv.reader(file)
    assert heading == ["name", "energy", "'=2+3"]
    assert not [name for name, *_ in rows if name[0] in "=+-@\t\r"]
    assert {energy for _, energy, _ in rows} == {"-1.5"}  # numbers stay numbers
    pd.testing.assert_frame_equal(read_frame(tmp_path / "a.csv"), frame, check_exact=True)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2 - 3], r"cells.csv is damaged: line \d+ is cut off"),
        (lambda text: text[:-1], r"cells.csv is damaged: line \d+ is cut off"),
        (lambda text: "".join(text.splitlines(True)[:-2]), r"it has \d+ rows of the \d+ written"),
        (lambda text: "", "cells.csv is damaged: No columns to parse"),
        (lambda text: text + "a,b,c" * 30 + "\n", "damaged: .*Expected 12 fields in line"),
        (lambda text: text + "\udcff", "damaged: 'utf-8' codec can't decode"),
        (lambda text: text.replace(",2.5,", ",2.5x,"), "seconds of cells must hold .* '2.5x'"),
        (None, "cells.csv is damaged: it has 0 rows of the 40 written. Delete it and run"),
    ],
)
def test_a_damaged_file_is_named(
    report: Path, tmp_path: Path, damage: Callable[[str], str] | None, message: str
) -> None:
    for source in [report.parent / "run.json", *report.parent.glob("*.csv")]:
        shutil.copy(source, tmp_path)
    file = tmp_path / "cells.csv"
    if damage is None:
        file.unlink()
    else:
        file.write_text(damage(file.read_text("utf-8")), "utf-8", errors="surrogateescape")
    with pytest.raises(ValueError, match=message):
        from_folder(tmp_path)


@pytest.mark.parametrize("text", ["", "[1]", '{"command": "eamp'])
def test_a_damaged_note_of_the_run_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(DamagedFileError, match=r"run\.json is damaged: .*Delete it"):
        from_folder(tmp_path)
