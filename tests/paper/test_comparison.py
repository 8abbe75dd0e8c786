import pandas as pd
import pytest

from eamp.paper.comparison import checked, flat, paired, summarised


def one(frame: pd.DataFrame, **where: object) -> pd.Series:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_means_and_sample_deviations_beside_the_papers_number(
    frames: dict[str, pd.DataFrame],
) -> None:
    row = one(summarised(frames["cells"]), data="cora", name="Basic GCN", depth=4)
    assert row["seeds"] == 2
    assert row["published"] == 0.82
    assert row["best_val_accuracy"] == pytest.approx(0.82)
    assert row["best_val_accuracy_deviation"] == pytest.approx(
        0.02 / 2**0.5
    )  # of the sample: divided by n − 1
    assert row["test_accuracy"] == pytest.approx(0.80)


def test_only_cells_further_than_the_tolerance_are_far(frames: dict[str, pd.DataFrame]) -> None:
    summary = summarised(frames["cells"])
    assert [
        (r["data"], r["name"], r["depth"]) for r in summary[summary["far"]].to_dict("records")
    ] == [("cora", "G2", 64)]
    cells = (
        frames["cells"]
        .query("name == 'Basic GCN' and data == 'cora' and seed == 0")
        .assign(best_val_accuracy=[0.88, 0.11])
    )
    assert summarised(cells)["far"].tolist() == [
        False,
        True,
    ]  # .06 away from .82, and .07 away from .18


def test_one_seed_has_no_deviation(frames: dict[str, pd.DataFrame]) -> None:
    assert (
        summarised(frames["cells"].query("seed == 0"))["best_val_accuracy_deviation"].isna().all()
    )


def test_variants_are_compared_seed_by_seed(frames: dict[str, pd.DataFrame]) -> None:
    row = one(paired(frames["cells"]), name="G2, no ReLU on logits", depth=4)
    assert row["best_val_accuracy_change"] == pytest.approx(0.2)
    assert row["best_val_accuracy_change_deviation"] == pytest.approx(
        0, abs=1e-12
    )  # though both vary over seeds
    assert row["test_accuracy_change"] == pytest.approx(0.12)


def test_runs_that_differ_are_not_averaged(frames: dict[str, pd.DataFrame]) -> None:
    cells = frames["cells"]
    with pytest.raises(ValueError, match="several values of width"):
        checked(cells.assign(width=range(len(cells))), "cells")
    with pytest.raises(ValueError, match="twice with seed 0"):
        checked(pd.concat([cells, cells.head(1)]), "cells")
    with pytest.raises(ValueError, match="no column test_accuracy"):
        checked(cells.drop(columns="test_accuracy"), "cells")


def test_curves_and_settings_of_cells_can_be_saved() -> None:
    frame = pd.DataFrame(
        {"name": ["a", "b"], "energy": [[1.0], [2.0]], "entropy": [None, {"weight": 1}]}
    )
    assert flat(frame).to_dict("list") == {"name": ["a", "b"], "entropy": ["null", '{"weight": 1}']}
