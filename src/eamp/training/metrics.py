"""Metrics by which a node classifier is judged: pure functions, and one dictionary of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


def predicted_class(logits: Tensor) -> Tensor:
    """Return the class of the largest logit, ``[n]``."""
    return logits.argmax(1)


def preference(logits: Tensor) -> Tensor:
    """Return the logit of class 1 minus that of class 0, ``[n]``.

    It orders the nodes as the probability of class 1 does, without the ties of probabilities that
    are rounded to 0 or 1. NaN counts as the lowest value: a network that returns nothing else
    prefers no node to another.
    """
    difference = logits[:, 1].double() - logits[:, 0].double()
    return difference.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)


def accuracy(predicted: Tensor, labels: Tensor) -> float:
    """Return the share of nodes whose class is predicted."""
    return ((predicted == labels).sum() / labels.numel()).item()


def macro_f1(predicted: Tensor, labels: Tensor) -> float:
    """Return the mean over classes of the F1 score.

    The classes are those that at least one node has or is predicted to have.

    Example:
        >>> macro_f1(torch.tensor([0, 0, 2, 2]), torch.tensor([0, 0, 0, 2]))  # 4/5 and 2/3
        0.733...
    """
    # F1 = 2 TP / (2 TP + FP + FN), whose denominator counts labels and predictions of the class.
    counted = torch.cat([predicted, labels]).bincount()
    right = labels[predicted == labels].bincount(minlength=counted.numel())
    present = counted > 0
    return (2 * right[present].double() / counted[present]).mean().item()


def roc_auc(scores: Tensor, labels: Tensor) -> float:
    """Return the area under the ROC curve: the probability that a positive outscores a negative.

    It is the share of pairs of a node of class 1 and a node of class 0 in which the first has the
    higher score. A tie counts half.

    Example:
        >>> roc_auc(torch.tensor([1.0, 2.0, 2.0, 3.0]), torch.tensor([0, 0, 1, 1]))  # 3.5 of 4
        0.875
    """
    positives, negatives = counts_by_score(scores, labels)
    below = negatives.cumsum(0) - negatives
    won = (positives * (below + negatives / 2)).sum()
    return (won / (positives.sum() * negatives.sum())).item()


def average_precision(scores: Tensor, labels: Tensor) -> float:
    """Return the mean over nodes of class 1 of the precision at their score.

    The precision at a score is the share of class 1 among the nodes with at least that score.

    Example:
        >>> average_precision(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 0, 1]))  # 1 and 2/3
        0.833...
    """
    positives, negatives = (counts.flip(0) for counts in counts_by_score(scores, labels))
    precision = positives.cumsum(0) / (positives + negatives).cumsum(0)
    return ((positives * precision).sum() / positives.sum()).item()


def counts_by_score(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many nodes of class 1 and of class 0 have each distinct score, lowest first."""
    distinct, place = torch.unique(scores, return_inverse=True)
    negatives, positives = (
        place[labels == label].bincount(minlength=distinct.numel()).double() for label in (0, 1)
    )
    return positives, negatives


@dataclass(frozen=True)
class Metric:
    """A metric: its name in words, how to compute it, and which values are better.

    Attributes:
        words: its name in tables and sentences.
        reads: takes logits, ``[n, classes]``, and returns the number per node that ``of`` takes.
        of: takes these numbers, ``[n]``, and the labels, ``[n]``, and returns the value.
        direction: whether higher or lower values are better, in the words of Optuna.
        two_classes: whether it is defined for two classes only.

    Example:
        >>> metric = METRICS["roc_auc"]
        >>> labels = torch.tensor([0, 1, 1])
        >>> logits = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
        >>> metric.words, metric.of(metric.reads(logits), labels)
        ('ROC AUC', 0.5)
    """

    words: str
    reads: Callable[[Tensor], Tensor]
    of: Callable[[Tensor, Tensor], float]
    direction: Literal["maximize", "minimize"] = "maximize"
    two_classes: bool = False

    def merit(self, value: float) -> float:
        """Return a number that is higher for better values; twice applied, it is the value."""
        return value if self.direction == "maximize" else -value

    @property
    def best(self) -> str:
        """The best value of several in words: the highest or the lowest."""
        return "highest" if self.direction == "maximize" else "lowest"


METRICS = {
    "accuracy": Metric("accuracy", predicted_class, accuracy),
    "macro_f1": Metric("macro F1", predicted_class, macro_f1),
    "roc_auc": Metric("ROC AUC", preference, roc_auc, two_classes=True),
    "average_precision": Metric(
        "average precision", preference, average_precision, two_classes=True
    ),
}
"""Metrics by their names in protocols and recipes."""
