"""Protocols: their checks, the selected epoch, patience and the learning rate."""

import math

import pytest

from eamp.training.protocols import (
    PROTOCOLS,
    Epoch,
    is_over,
    learning_rate,
    selected,
)

STANDARD = PROTOCOLS["standard"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"select": "foo"}, "select must be one of 'val_loss', 'val_accuracy', but is 'foo'"),
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


def test_the_papers_protocol_is_the_papers() -> None:
    paper = PROTOCOLS["paper"]
    assert (paper.epochs, paper.learning_rate, paper.weight_decay) == (100, 1e-3, 0.0)
    assert (paper.reduction, paper.select) == ("sum", "val_accuracy")
    assert [learning_rate(paper, epoch) for epoch in (0, 50)] == pytest.approx([1e-3, 5e-4])
    assert learning_rate(paper, 99) < 1e-6
    assert STANDARD.select == "val_loss"
    assert learning_rate(STANDARD, 1000) == STANDARD.learning_rate
