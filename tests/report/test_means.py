import math

import pandas as pd
import pytest

from eamp.report.means import means_of, means_table, takeaway


def rows(**columns: object) -> pd.DataFrame:
    given = {"data": "cora", "name": "a", "depth": 2, "seed": 0, "best_val_accuracy": 0.5}
    return pd.DataFrame({**given, "test_accuracy": 0.5, **columns})


def test_means_are_taken_over_seeds_and_splits() -> None:
    table = rows(seed=[0, 0, 1, 1], split=[0, 1, 0, 1], test_accuracy=[0.4, 0.6, 0.6, 0.8])
    (one,) = means_of(table).to_dict("records")
    assert (one["runs"], one["mean"]) == (4, pytest.approx(0.6))
    assert one["deviation"] == pytest.approx(math.sqrt(0.08 / 3))
    assert means_of(table, by_split=True)["mean"].tolist() == pytest.approx([0.5, 0.7])


def test_a_dataset_is_one_block_of_the_table() -> None:
    table = rows(data=["x", "y", "x"], name=["a", "a", "b"])
    assert [row[0] for row in means_table(table).rows] == ["x", "x", "y"]


def test_validation_nodes_choose_the_network_and_test_nodes_do_not() -> None:
    table = rows(name=["a", "b"], best_val_accuracy=[0.9, 0.8], test_accuracy=[0.7, 0.95])
    (sentence,) = takeaway(table)
    assert "choose a with 2 layers" in sentence
    assert ".700 (1 run). The next is b" in sentence


def test_networks_that_diverged_are_marked_and_not_chosen() -> None:
    table = rows(name=["a", "b"], best_val_accuracy=[0.9, 0.8], diverged=[3, None])
    (sentence,) = takeaway(table)
    assert sentence.startswith("On cora, the validation nodes choose b with 2 layers")
    assert " a " not in sentence
    shown = means_table(table)
    assert shown.rows[0][-2:] == (".900†", ".500†")
    assert shown.rows[1][-2:] == (".800", ".500")
    assert shown.note == "† Training diverged."
    assert shown.raw["diverged"].tolist() == [1, 0]
    assert takeaway(table[:1]) == ["On cora, the training of every network diverged."]
    sound = means_table(rows(seed=[0, 1]))
    assert not sound.note
    assert "diverged" not in sound.raw


def test_another_metric_is_called_by_its_name() -> None:
    metric = {"metric": "roc_auc", "select": "val_metric", "best_val_metric": 0.6}
    (sentence,) = takeaway(rows(seed=[0, 1], **metric, test_metric=[0.6, 0.8]))
    assert "test ROC AUC at highest validation ROC AUC .700 ± .141 (2 runs)" in sentence
