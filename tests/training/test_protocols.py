"""Protocols: their checks, the selected epoch, patience and the learning rate."""

import math
from dataclasses import replace

import pytest

from eamp.training.metrics import METRICS
from eamp.training.protocols import (
    PROTOCOLS,
    Epoch,
    MetricEpoch,
    Protocol,
    Selection,
    as_epoch,
    learning_rate,
    selected,
)

STANDARD = PROTOCOLS["standard"]


def is_over(rows: list[Epoch] | list[MetricEpoch], protocol: Protocol) -> bool:
    return Selection(protocol, rows).is_over


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"select": "foo"},
            "select must be one of 'val_loss', 'val_accuracy', 'val_metric', but is 'foo'",
        ),
        (
            {"metric": "auc"},
            "metric must be one of 'accuracy', 'macro_f1', 'roc_auc', 'average_precision', 'mae', "
            "'rmse', but is 'auc'",
        ),
        ({"metric": ["roc_auc"]}, r"metric must be one of .* but is \['roc_auc'\]"),
        ({"reduction": "max"}, "reduction must be one of 'sum', 'mean', but is 'max'"),
        ({"schedule": None}, "schedule must be one of 'cosine', 'none', but is None"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, but is 0"),
        ({"epochs": "many"}, "epochs must be a whole number of at least 1, but is 'many'"),
        ({"epochs": True}, "epochs must be a whole number .* True"),
        ({"learning_rate": "fast"}, "learning_rate must be a number of at least 0, but is 'fast'"),
        ({"learning_rate": -0.1}, "learning_rate must be a number of at least 0, but is -0.1"),
        ({"learning_rate": math.nan}, "learning_rate .* nan"),
        ({"weight_decay": None}, "weight_decay must be a number of at least 0, but is None"),
        ({"conv_decay": -1}, "conv_decay must be a number of at least 0, but is -1"),
        ({"label_smoothing": 2}, "label_smoothing must be a number from 0 to 1, but is 2"),
        ({"patience": 1.5}, "patience must be a whole number of at least 1, but is 1.5"),
        ({"lr": 0.1}, "a protocol has no lr; it has select, epochs, learning_rate"),
    ],
)
def test_a_wrong_setting_is_an_error(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        STANDARD.with_changes(**changes)


def test_patience_counts_epochs_since_the_lowest_validation_loss() -> None:
    rows = [Epoch(1.0, loss, 0.5, 0.5) for loss in (3.0, 2.0, 1.0, 1.5, 1.6)]
    assert is_over(rows, STANDARD.with_changes(patience=2))
    assert not is_over(rows, STANDARD.with_changes(patience=3))
    assert not is_over(rows, STANDARD.with_changes(patience=None))


@pytest.mark.parametrize("select", ["val_loss", "val_accuracy"])
def test_epochs_taken_one_by_one_give_what_the_whole_history_gives(select: str) -> None:
    values = [math.nan, 1.5, 2.0, 1.5, math.inf, 1.0, 1.0, 3.0]
    rows = [Epoch(1.0, value, 1 - value / 4, 0.5) for value in values]
    protocol = STANDARD.with_changes(select=select, patience=2)
    for start in range(len(rows)):  # as after a checkpoint
        selection = Selection(protocol, rows[:start])
        for number, row in enumerate(rows[start:], start=start):
            best = max(
                range(number + 1),
                key=lambda epoch: -values[epoch] if math.isfinite(values[epoch]) else -math.inf,
            )
            assert selection.add(row) == (best == number)
            assert selection.epoch == selection.lowest == best
            assert selection.is_over == (number - best >= 2)


def test_without_a_finite_loss_the_first_epoch_counts() -> None:
    rows = [Epoch(1.0, math.nan, 0.1 * k, 0.5) for k in range(4)]
    assert selected(rows, STANDARD) == 0
    assert selected(rows, STANDARD.with_changes(select="val_accuracy")) == 0
    assert not is_over(rows, STANDARD.with_changes(patience=4))
    assert is_over(rows, STANDARD.with_changes(patience=3))


def test_a_loss_that_is_not_finite_ends_a_run() -> None:
    assert not is_over([], STANDARD)
    assert not is_over([Epoch(1.0, math.nan, 0.5, 0.5)], STANDARD)
    assert is_over([Epoch(math.inf, 1.0, 0.5, 0.5)], STANDARD)


def test_selection_follows_the_protocol_takes_the_first_of_equals_and_skips_nan() -> None:
    rows = [
        Epoch(1.0, 2.0, 0.7, 0.1),
        Epoch(1.0, 1.0, 0.6, 0.2),
        Epoch(1.0, 1.0, 0.7, 0.3),
        Epoch(math.nan, math.nan, 0.9, 0.4),
    ]
    assert selected(rows, STANDARD) == 1
    assert selected(rows, STANDARD.with_changes(select="val_accuracy")) == 0


def test_selection_by_a_metric_follows_its_name_and_direction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        MetricEpoch(1.0, 1.0, 0.9, 0.1, 0.5, 0.1),
        MetricEpoch(1.0, 2.0, 0.7, 0.2, 0.8, 0.2),
        MetricEpoch(1.0, 3.0, 0.8, 0.3, 0.8, 0.3),
        MetricEpoch(1.0, math.nan, 0.9, 0.4, 0.9, 0.4),
    ]
    by_metric = STANDARD.with_changes(select="val_metric", metric="roc_auc")
    assert selected(rows, by_metric) == 1
    assert selected(rows, by_metric.with_changes(select="val_accuracy")) == 0
    assert is_over(rows, by_metric.with_changes(patience=2))  # early stopping is by the loss
    monkeypatch.setitem(METRICS, "roc_auc", replace(METRICS["roc_auc"], direction="minimize"))
    assert selected(rows, by_metric) == 0


def test_the_metric_of_an_epoch_is_accuracy_unless_it_has_another() -> None:
    plain, other = as_epoch([1.0, 2.0, 0.3, 0.4]), as_epoch([1.0, 2.0, 0.3, 0.4, 0.5, 0.6])
    assert (type(plain), plain.val_metric, plain.test_metric) == (Epoch, 0.3, 0.4)
    assert (other.val_accuracy, other.val_metric, other.test_metric) == (0.3, 0.5, 0.6)
    rows = [Epoch(1.0, 1.0, 0.6, 0.2), Epoch(1.0, 2.0, 0.7, 0.3)]
    by_accuracy = STANDARD.with_changes(select="val_accuracy")
    assert selected(rows, STANDARD.with_changes(select="val_metric")) == 1
    assert selected(rows, by_accuracy) == 1


def test_the_papers_protocol_is_the_papers() -> None:
    paper = PROTOCOLS["paper"]
    assert (paper.epochs, paper.learning_rate, paper.weight_decay) == (100, 1e-3, 0.0)
    assert (paper.reduction, paper.select) == ("sum", "val_accuracy")
    assert [learning_rate(paper, epoch) for epoch in (0, 50)] == pytest.approx([1e-3, 5e-4])
    assert learning_rate(paper, 99) < 1e-6
    assert STANDARD.select == "val_loss"
    assert learning_rate(STANDARD, 1000) == STANDARD.learning_rate
