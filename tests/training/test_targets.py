"""Targets: their kinds, losses over known labels, and metrics against scikit-learn."""

import math

import pytest
import torch
import torch.nn.functional as F
from sklearn import metrics

import eamp
from eamp.nn import GCN
from eamp.training import PROTOCOLS, train
from eamp.training.process import SingleProcess
from eamp.training.targets import resolved, target_of

STANDARD = PROTOCOLS["standard"]
WHOLE = torch.tensor([0, 2, 1, -1])
NAN = math.nan


@pytest.mark.parametrize(
    ("y", "metric", "expected"),
    [
        (WHOLE, None, ("classes", 3, "accuracy", "accuracy")),
        (WHOLE, "macro_f1", ("classes", 3, "macro_f1", "accuracy")),
        (WHOLE, "mae", ("numbers", 1, "mae", "rmse")),
        (torch.tensor([0.5, 2.0]), None, ("numbers", 1, "mae", "rmse")),
        (torch.tensor([[0.5, 2.0], [NAN, 1.0]]), "rmse", ("numbers", 2, "rmse", "mae")),
        (torch.tensor([[1, 0], [-1, 1]]), None, ("labels", 2, "roc_auc", "average_precision")),
        (torch.tensor([[1.0, NAN]]), None, ("labels", 2, "roc_auc", "average_precision")),
        (torch.tensor([0.0, 1.0]), None, ("numbers", 1, "mae", "rmse")),
        (
            torch.tensor([0.0, 1.0]),
            "average_precision",
            ("labels", 1, "average_precision", "roc_auc"),
        ),
    ],
)
def test_labels_and_metric_say_what_is_predicted(
    y: torch.Tensor, metric: str | None, expected: tuple[object, ...]
) -> None:
    target = target_of(y, STANDARD.with_changes(metric=metric))
    assert (target.kind, target.outputs, target.metric, target.second) == expected


def test_labels_that_fit_no_metric_are_refused() -> None:
    with pytest.raises(ValueError, match=r"roc_auc is for classes, but y holds numbers; use .*mae"):
        target_of(torch.tensor([0.5, 2.0]), STANDARD.with_changes(metric="roc_auc"))
    with pytest.raises(ValueError, match=r"others than 0, 1 and -1 .* data.y\[:, 0\]"):
        target_of(torch.tensor([[0], [2]]), STANDARD)
    numbers = target_of(torch.tensor([0.5, 2.0]), STANDARD)
    with pytest.raises(ValueError, match=r"'val_accuracy' is for classes, .*select='val_metric'"):
        resolved(PROTOCOLS["paper"], numbers)
    for change in ({"label_smoothing": 0.1}, {"consistency": {}}, {"pseudo_labels": {}}):
        with pytest.raises(ValueError, match=f"{next(iter(change))} is for classes, but y holds"):
            resolved(STANDARD.with_changes(**change), numbers)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("missing", ["nan", "-1"])
def test_missing_labels_count_nowhere(missing: str, reduction: str) -> None:
    out, yes = drawn(50, 3), drawn(51, 3)[:50] > 0
    lost = drawn(52, 3)[:50] > 0.5
    y = torch.where(lost, NAN, yes.float()) if missing == "nan" else torch.where(lost, -1, yes)
    rules = STANDARD.with_changes(reduction=reduction)
    target = target_of(y, rules)
    column = target.column(y)
    literal = [
        -math.log(torch.sigmoid(z if label else -z))
        for z, label, gone in zip(out.flatten(), yes.flatten(), lost.flatten(), strict=True)
        if not gone
    ]
    loss = target.loss(out, column, rules, SingleProcess())
    expected = sum(literal) / (len(literal) if reduction == "mean" else 1)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    for name, theirs in (
        ("roc_auc", metrics.roc_auc_score),
        ("average_precision", metrics.average_precision_score),
    ):
        each = [theirs(yes[~lost[:, t], t], out[~lost[:, t], t]) for t in range(3)]
        assert target.value(name, out, column) == pytest.approx(sum(each) / 3, abs=1e-6)
    share = (((out > 0) == yes) & ~lost).sum(0) / (~lost).sum(0)
    assert target.value("accuracy", out, column) == pytest.approx(share.mean().item())


def test_a_target_without_both_answers_is_left_out_of_the_mean() -> None:
    y = torch.tensor([[1, 1], [0, 1], [1, 1]])
    target = target_of(y, STANDARD)
    out = torch.tensor([[1.0, 5.0], [0.0, 2.0], [2.0, 1.0]])
    assert target.value("roc_auc", out, target.column(y)) == 1
    assert math.isnan(target.value("roc_auc", out[:, 1:], target.column(y[:, 1:])))


@pytest.mark.parametrize(("metric", "of"), [("mae", F.l1_loss), ("rmse", F.mse_loss)])
def test_the_loss_of_numbers_follows_the_metric(metric: str, of: object) -> None:
    y, out = drawn(20, 2), drawn(21, 2)[:20]
    y[::3, 0] = NAN
    known = ~y.isnan()
    rules = STANDARD.with_changes(metric=metric)
    target = target_of(y, rules)
    expected = of(out[known], y[known])  # type: ignore[operator]  # a loss of torch
    assert target.loss(out, y, rules, SingleProcess()).item() == pytest.approx(expected.item())
    value = expected.item() if metric == "mae" else expected.item() ** 0.5
    assert target.value(metric, out, y) == pytest.approx(value)


def test_a_diverged_network_has_figures() -> None:
    for y in (WHOLE[:3], torch.tensor([[1, 0], [0, 1], [1, 1]]), torch.tensor([0.5, 2.0, 1.0])):
        target = target_of(y, STANDARD)
        broken = torch.full((3, max(target.outputs, 1)), NAN)
        row = target.figures((NAN, NAN), (broken, target.column(y)), (broken, target.column(y)))
        assert len(row) == (4 if target.kind == "classes" else 5)


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.int32])
def test_classes_may_be_any_whole_numbers(kind: torch.dtype) -> None:
    data = eamp.data.load("csbm:nodes=60,features=8,classes=2").clone()
    expected = train(GCN(8, 4, 2, num_layers=1).eval(), data, STANDARD.with_changes(epochs=1))
    data.y = data.y.to(kind)
    found = train(GCN(8, 4, 2, num_layers=1).eval(), data, STANDARD.with_changes(epochs=1))
    assert found.metric == expected.metric == "accuracy"


def test_an_infinite_label_is_refused_before_training() -> None:
    data = eamp.data.load("csbm:nodes=60,features=8").clone()
    data.y = torch.where(data.train_mask, torch.inf, 1.5)
    with pytest.raises(ValueError, match=r"y of train_mask is infinite 5 times; .*float\('nan'\)"):
        train(GCN(8, 4, 1, num_layers=1), data, STANDARD)
