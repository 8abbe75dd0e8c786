"""Metrics against cases worked by hand, their definitions, and what they must not depend on."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from torch import Tensor

from eamp.training.metrics import (
    METRICS,
    average_precision,
    macro_f1,
    mean_absolute_error,
    preference,
    roc_auc,
    root_mean_squared_error,
)

ROUNDING = 1e-6  # torchmetrics counts in whole numbers and divides in float32
# Few distinct scores, so that most examples have ties.
NODES = st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 1)), min_size=2, max_size=40).filter(
    lambda nodes: {label for _, label in nodes} == {0, 1}
)


def tensors(nodes: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    scores, labels = zip(*nodes, strict=True)
    return torch.tensor(scores, dtype=torch.float64), torch.tensor(labels)


@pytest.mark.parametrize(
    ("scores", "labels", "auc", "precision"),
    [
        ([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 3 / 4, (1 + 2 / 3) / 2),
        ([1.0, 2.0, 3.0], [0, 0, 1], 1.0, 1.0),
        ([3.0, 2.0, 1.0], [0, 0, 1], 0.0, 1 / 3),
        ([5.0, 5.0, 5.0, 5.0], [1, 0, 0, 0], 1 / 2, 1 / 4),  # nothing is preferred
        # One tie of a positive with a negative: 3 + 1/2 of 4 pairs.
        ([1.0, 2.0, 2.0, 3.0], [0, 1, 0, 1], 3.5 / 4, (1 + 2 / 3) / 2),
        # Two positives tied with one negative above another: (1 + 1/2) twice, of 4 pairs.
        ([2.0, 2.0, 2.0, 1.0], [1, 1, 0, 0], 3 / 4, 2 / 3),
        ([-math.inf, 0.0, math.inf], [0, 1, 1], 1.0, 1.0),
    ],
)
def test_cases_worked_by_hand(
    scores: list[float], labels: list[int], auc: float, precision: float
) -> None:
    given = torch.tensor(scores), torch.tensor(labels)
    assert roc_auc(*given) == pytest.approx(auc, abs=ROUNDING)
    assert average_precision(*given) == pytest.approx(precision, abs=ROUNDING)


@given(NODES)
def test_the_auc_is_the_share_of_pairs_that_are_in_order(nodes: list[tuple[int, int]]) -> None:
    positives = [score for score, label in nodes if label == 1]
    negatives = [score for score, label in nodes if label == 0]
    won = sum((p > n) + (p == n) / 2 for p in positives for n in negatives)
    assert roc_auc(*tensors(nodes)) == pytest.approx(won / (len(positives) * len(negatives)))


@given(NODES)
def test_average_precision_is_the_mean_precision_at_the_positives(
    nodes: list[tuple[int, int]],
) -> None:
    precisions = []
    for score in (score for score, label in nodes if label == 1):
        above = [label for other, label in nodes if other >= score]
        precisions.append(sum(above) / len(above))
    assert average_precision(*tensors(nodes)) == pytest.approx(sum(precisions) / len(precisions))


@given(NODES, st.randoms(use_true_random=False))
def test_only_the_order_of_the_scores_counts(nodes: list[tuple[int, int]], random: object) -> None:
    scores, labels = tensors(nodes)
    for metric in (roc_auc, average_precision):
        value = metric(scores, labels)
        for rising in (torch.exp, torch.atan, lambda s: s**3 - 100, lambda s: 7 * s):
            assert metric(rising(scores), labels) == value
        random.shuffle(shuffled := [*nodes])  # type: ignore[attr-defined]  # of the standard library
        assert metric(*tensors(shuffled)) == value
    assert roc_auc(-scores, labels) == pytest.approx(1 - roc_auc(scores, labels), abs=ROUNDING)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
def test_macro_f1_is_the_mean_of_harmonic_means(nodes: list[tuple[int, int]]) -> None:
    found = []
    for label in sorted({one for node in nodes for one in node}):
        right = sum(node == (label, label) for node in nodes)
        predicted, true = (sum(node[side] == label for node in nodes) for side in (0, 1))
        if right == 0:
            found.append(0.0)
        else:
            precision, recall = right / predicted, right / true
            found.append(2 * precision * recall / (precision + recall))
    predicted, labels = torch.tensor(nodes).T
    assert macro_f1(predicted, labels) == pytest.approx(sum(found) / len(found))


def test_the_preference_orders_nodes_as_their_probabilities_do() -> None:
    logits = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    assert preference(logits).argsort().equal(logits.double().softmax(1)[:, 1].argsort())
    # Both probabilities are rounded to 1, the preferences differ.
    sure = torch.tensor([[0.0, 50.0], [0.0, 60.0]])
    assert sure.softmax(1)[0, 1] == sure.softmax(1)[1, 1]
    assert preference(sure).tolist() == [50.0, 60.0]


def test_a_network_that_returns_nan_is_as_good_as_chance() -> None:
    labels, broken = torch.tensor([0, 1, 0, 0]), torch.full((4, 2), math.nan)
    assert roc_auc(preference(broken), labels) == 0.5
    assert average_precision(preference(broken), labels) == 0.25
    broken[1] = torch.tensor([0.0, -9.0])  # a number ranks above NaN
    assert roc_auc(preference(broken), labels) == 1.0
    overflow = torch.tensor([[-math.inf, 0.0], [0.0, -math.inf], [math.inf, math.inf]])
    assert preference(overflow).tolist() == [math.inf, -math.inf, -math.inf]


@given(NODES)
def test_scikit_learn_agrees(nodes: list[tuple[int, int]]) -> None:
    scores, labels = tensors(nodes)
    predicted = (scores > 0).long()
    for ours, theirs, read in (
        (roc_auc, metrics.roc_auc_score, scores),
        (average_precision, metrics.average_precision_score, scores),
        (mean_absolute_error, metrics.mean_absolute_error, scores),
        (root_mean_squared_error, metrics.root_mean_squared_error, scores),
    ):
        assert ours(read, labels) == pytest.approx(theirs(labels, read), abs=ROUNDING)
    theirs_f1 = metrics.f1_score(labels, predicted, average="macro", zero_division=0.0)
    assert macro_f1(predicted, labels) == pytest.approx(theirs_f1, abs=ROUNDING)


@pytest.mark.parametrize("name", ["mae", "rmse"])
def test_an_error_is_lower_for_better_predictions_and_has_no_percents(name: str) -> None:
    metric, values = METRICS[name], torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert metric.of(values, values) == 0
    assert metric.merit(metric.of(values + 1, values)) > metric.merit(metric.of(values + 2, values))
    assert math.isnan(metric.of(values[:0], values[:0]))
    assert math.isnan(metric.of(values * math.nan, values))
    assert (metric.best, metric.percent, metric.text(0.12341)) == ("lowest", False, "0.1234")
    assert METRICS["roc_auc"].text(0.12341) == "12.34"


@pytest.mark.parametrize("name", [name for name in METRICS if not METRICS[name].regression])
def test_every_metric_reads_logits_and_is_nan_without_nodes(name: str) -> None:
    metric, labels = METRICS[name], torch.tensor([0, 1, 1, 0])
    right = torch.nn.functional.one_hot(labels).float()
    assert metric.merit(metric.of(metric.reads(right), labels)) > metric.merit(
        metric.of(metric.reads(1 - right), labels)
    )
    assert metric.of(metric.reads(right), labels) == 1
    assert math.isnan(metric.of(metric.reads(right[:0]), labels[:0]))
    assert metric.best == "highest"


@pytest.mark.parametrize("name", METRICS)
def test_nan_is_worse_than_any_value(name: str) -> None:
    merit = METRICS[name].merit
    assert merit(math.nan) == -math.inf
    assert merit(merit(0.25)) == 0.25
