"""Metrics by which a model is judged: pure functions, and one dictionary of them."""

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
    from torchmetrics.functional.classification import multiclass_f1_score  # slow to load

    if labels.numel() == 0:
        return math.nan
    classes = max(int(torch.cat([predicted, labels]).max()) + 1, 2)
    return multiclass_f1_score(predicted, labels, classes, average="macro").item()


def roc_auc(scores: Tensor, labels: Tensor) -> float:
    """Return the area under the ROC curve: the probability that a positive outscores a negative.

    It is the share of pairs of a node of class 1 and a node of class 0 in which the first has the
    higher score. A tie counts half.

    Example:
        >>> roc_auc(torch.tensor([1.0, 2.0, 2.0, 3.0]), torch.tensor([0, 0, 1, 1]))  # 3.5 of 4
        0.875
    """
    from torchmetrics.functional.classification import binary_auroc  # slow to load

    if labels.unique().numel() < 2:
        return math.nan
    return binary_auroc(places(scores), labels.long()).item()


def average_precision(scores: Tensor, labels: Tensor) -> float:
    """Return the mean over nodes of class 1 of the precision at their score.

    The precision at a score is the share of class 1 among the nodes with at least that score.

    Example:
        >>> average_precision(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 0, 1]))  # 1 and 2/3
        0.833...
    """
    from torchmetrics.functional.classification import binary_average_precision  # slow to load

    if not bool((labels == 1).any()):
        return math.nan
    return binary_average_precision(places(scores), labels.long()).item()


def places(scores: Tensor) -> Tensor:
    """Return the places of the scores in their order, from 0 to 1; equal scores share a place.

    torchmetrics takes other numbers than those from 0 to 1 for logits, and their sigmoids, rounded
    to 1, for ties.
    """
    distinct, place = torch.unique(scores, return_inverse=True)
    return place.double() / max(distinct.numel() - 1, 1)


def mean_absolute_error(predicted: Tensor, values: Tensor) -> float:
    """Return the mean distance of predictions from values.

    Example:
        >>> mean_absolute_error(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 2.0]))
        1.5
    """
    # slow to load
    from torchmetrics.functional.regression import mean_absolute_error as mean_error

    return mean_error(predicted, values).item() if values.numel() else math.nan


def root_mean_squared_error(predicted: Tensor, values: Tensor) -> float:
    """Return the root of the mean squared distance of predictions from values.

    Example:
        >>> root_mean_squared_error(torch.tensor([1.0, 9.0]), torch.tensor([2.0, 2.0]))
        5.0
    """
    from torchmetrics.functional.regression import mean_squared_error  # slow to load

    return (
        mean_squared_error(predicted, values, squared=False).item() if values.numel() else math.nan
    )


@dataclass(frozen=True)
class Metric:
    """A metric: its name in words, how to compute it, and which values are better.

    Attributes:
        words: its name in tables and sentences.
        reads: takes logits, ``[n, classes]``, and returns the number per node that ``of`` takes.
        of: takes these numbers, ``[n]``, and the labels, ``[n]``, and returns the value.
        direction: whether higher or lower values are better, in the words of Optuna.
        two_classes: whether it is defined for two classes only.
        regression: whether it judges predicted numbers, and not classes.

    Example:
        >>> metric = METRICS["roc_auc"]
        >>> labels = torch.tensor([0, 1, 1])
        >>> logits = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
        >>> metric.words, metric.of(metric.reads(logits), labels)
        ('ROC AUC', 0.5)
        >>> METRICS["mae"].described
        'MAE, lower is better'
    """

    words: str
    reads: Callable[[Tensor], Tensor]
    of: Callable[[Tensor, Tensor], float]
    direction: Literal["maximize", "minimize"] = "maximize"
    two_classes: bool = False
    regression: bool = False

    def merit(self, value: float) -> float:
        """Return a number that is higher for better values; twice applied, it is the value.

        NaN, the value of a network that diverged, is worse than any other: it becomes −∞. A
        database of Optuna that holds NaN as a value cannot be read again.

        Example:
            >>> METRICS["mae"].merit(0.5), METRICS["mae"].merit(math.nan)
            (-0.5, -inf)
        """
        if math.isnan(value):
            return -math.inf
        return value if self.direction == "maximize" else -value

    @property
    def best(self) -> str:
        """The best value of several in words: the highest or the lowest."""
        return "highest" if self.direction == "maximize" else "lowest"

    @property
    def better(self) -> str:
        """Whether higher or lower values are better, in words."""
        return "higher is better" if self.direction == "maximize" else "lower is better"

    @property
    def described(self) -> str:
        """Its name, and whether higher or lower values are better."""
        return f"{self.words}, {self.better}"

    @property
    def percent(self) -> bool:
        """Whether its values are shares, which are printed in percent, and not in units of y."""
        return not self.regression

    def text(self, value: float, sign: str = "") -> str:
        """Return a value for tables: a share in percent, another number with four digits.

        Example:
            >>> METRICS["accuracy"].text(0.8125), METRICS["mae"].text(0.8125)
            ('81.25', '0.8125')
        """
        return f"{100 * value:{sign}.2f}" if self.percent else f"{value:{sign}.4g}"


METRICS = {
    "accuracy": Metric("accuracy", predicted_class, accuracy),
    "macro_f1": Metric("macro F1", predicted_class, macro_f1),
    "roc_auc": Metric("ROC AUC", preference, roc_auc, two_classes=True),
    "average_precision": Metric(
        "average precision", preference, average_precision, two_classes=True
    ),
    "mae": Metric("MAE", Tensor.detach, mean_absolute_error, "minimize", regression=True),
    "rmse": Metric("RMSE", Tensor.detach, root_mean_squared_error, "minimize", regression=True),
}
"""Metrics by their names in protocols and recipes."""
