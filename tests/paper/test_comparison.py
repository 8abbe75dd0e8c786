import pandas as pd
import pytest

from eamp.paper.comparison import paired, summarised


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
    # The deviation of a sample: its sum of squares is divided by n − 1.
    assert row["best_val_accuracy_deviation"] == pytest.approx(0.02 / 2**0.5)
    assert row["test_accuracy"] == pytest.approx(0.80)


def test_only_cells_further_than_the_tolerance_are_far(frames: dict[str, pd.DataFrame]) -> None:
    summary = summarised(frames["cells"])
    far = summary.loc[summary["far"], ["data", "name", "depth"]]
    assert far.to_numpy().tolist() == [["cora", "G2", 64]]
    cells = frames["cells"].query("name == 'Basic GCN' and data == 'cora' and seed == 0")
    # .06 away from .82, and .07 away from .18
    moved = summarised(cells.assign(best_val_accuracy=[0.88, 0.11]))
    assert moved["far"].tolist() == [False, True]


def test_one_seed_has_no_deviation(frames: dict[str, pd.DataFrame]) -> None:
    summary = summarised(frames["cells"].query("seed == 0"))
    assert summary["best_val_accuracy_deviation"].isna().all()


def test_variants_are_compared_seed_by_seed(frames: dict[str, pd.DataFrame]) -> None:
    row = one(paired(frames["cells"]), name="G2, no ReLU on logits", depth=4)
    assert row["best_val_accuracy_change"] == pytest.approx(0.2)
    # Both accuracies vary over the seeds, but their difference does not.
    assert row["best_val_accuracy_change_deviation"] == pytest.approx(0, abs=1e-12)
    assert row["test_accuracy_change"] == pytest.approx(0.12)
