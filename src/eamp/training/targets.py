"""Targets: how labels of a kind are learned and judged, whatever they are labels of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from eamp.training.metrics import METRICS
from eamp.training.process import SingleProcess
from eamp.training.protocols import Figures, Protocol, as_epoch

# The metric of a protocol that names none, and the one that is measured beside it.
DEFAULTS = {
    "classes": ("accuracy", "accuracy"),
    "labels": ("roc_auc", "average_precision"),
    "numbers": ("mae", "rmse"),
}


@dataclass(frozen=True)
class Target:
    """What a model predicts: classes, binary labels, or numbers.

    Attributes:
        kind: ``"classes"``, one of several per row, with cross-entropy; ``"labels"``, one or more
            yes-or-no answers per row, with binary cross-entropy; or ``"numbers"``, one or more per
            row, with the absolute error, or the squared error if the metric is RMSE.
        outputs: number of outputs of the model: classes, or targets.
        metric: the name of the metric.
        second: the name of another metric, which is measured as well;
            where there are no classes, on test rows only.
    """

    kind: Literal["classes", "labels", "numbers"]
    outputs: int
    metric: str
    second: str

    def column(self, y: Tensor) -> Tensor:
        """Return the labels as the loss takes them.

        Classes are ``[n]``. Labels and numbers are ``[n, targets]``, and NaN where one is missing.
        """
        if self.kind == "classes":
            return y.long()  # cross-entropy takes no other whole numbers, and no true or false
        y = y if y.dim() == 2 else y.unsqueeze(1)
        if self.kind == "labels" and not y.is_floating_point():
            return torch.where(y < 0, torch.nan, y.float())
        return y if y.is_floating_point() else y.float()

    def loss(self, out: Tensor, y: Tensor, protocol: Protocol, process: SingleProcess) -> Tensor:
        """Return the training loss of outputs; under several processes, this one's share."""
        if self.kind == "classes":
            return process.cross_entropy(out, y, protocol.reduction, protocol.label_smoothing)
        return self.error(out, y, protocol.reduction, process)

    def validation_loss(self, out: Tensor, y: Tensor, process: SingleProcess) -> Tensor:
        """Return the mean loss, without label smoothing."""
        if self.kind == "classes":
            return process.cross_entropy(out, y)
        return self.error(out, y, "mean", process)

    def error(self, out: Tensor, y: Tensor, reduction: str, process: SingleProcess) -> Tensor:
        """Return the loss over the labels or numbers that are known."""
        known = ~y.isnan()
        of: Callable[..., Tensor] = F.mse_loss if self.metric == "rmse" else F.l1_loss
        of = F.binary_cross_entropy_with_logits if self.kind == "labels" else of
        total = of(out[known], y[known].to(out.dtype), reduction="sum")
        return total if reduction == "sum" else process.mean(total, int(known.sum()))

    def reads(self, metric: str, out: Tensor) -> Tensor:
        """Return the part of the outputs that a metric needs: one number per row for classes."""
        return METRICS[metric].reads(out) if self.kind == "classes" else out.detach()

    def value(self, metric: str, read: Tensor, y: Tensor) -> float:
        """Return a metric of what :meth:`reads` returns.

        Of several binary labels it is the mean over those for which the metric is defined, and of
        several numbers the value over all of them.
        """
        found = METRICS[metric]
        if self.kind == "classes":
            return found.of(read, y)
        known = ~y.isnan()
        if self.kind == "numbers":
            return found.of(read[known], y[known].to(read.dtype))
        # A logit z of yes or no is the pair of logits (0, z) of two classes.
        pairs = F.pad(read.unsqueeze(2), (1, 0))
        values = [
            found.of(found.reads(pairs[rows, target]), y[rows, target].long())
            for target, rows in enumerate(known.T)
        ]
        return float(torch.tensor(values, dtype=torch.float64).nanmean())

    @property
    def measured(self) -> list[tuple[str, str]]:
        """The metrics among the figures of an epoch, each with the part whose rows it is of."""
        if self.kind == "classes":
            metrics = dict.fromkeys((self.second, self.metric))
            return [(metric, part) for metric in metrics for part in ("val", "test")]
        return [(self.metric, "val"), (self.metric, "test"), (self.second, "test")]

    def figures(
        self, losses: tuple[float, float], val: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]
    ) -> Figures:
        """Return the figures of an epoch from outputs and labels of validation and test rows."""
        rows, found = {"val": val, "test": test}, list[float]()
        for metric, part in self.measured:
            out, y = rows[part]
            found.append(self.value(metric, self.reads(metric, out), y))
        return self.epoch([*losses, *found])

    def epoch(self, figures: list[float]) -> Figures:
        """Return the figures of an epoch under their names."""
        return as_epoch(figures, self.kind == "classes")

    def check_outputs(self, out: Tensor) -> None:
        """Raise a ValueError unless the model has the outputs that the labels need."""
        found = out.size(-1)
        if self.kind == "classes" and found < self.outputs:
            raise ValueError(
                f"the model has {found} outputs, but y holds class {self.outputs - 1}; make it "
                f"with out_channels={self.outputs}."
            )
        if self.kind == "classes" and METRICS[self.metric].two_classes and found != 2:
            raise ValueError(
                f"the metric {self.metric} is for two classes, but the model has {found} outputs; "
                "make it with out_channels=2."
            )
        if self.kind != "classes" and found != self.outputs:
            raise ValueError(
                f"the model has {found} outputs, but y has {self.outputs} targets; make it with "
                f"out_channels={self.outputs}."
            )


def target_of(y: Tensor, protocol: Protocol) -> Target:
    """Return the target that labels and the protocol's metric ask for.

    Whole numbers ``[n]`` are classes, and ``[n, targets]`` binary labels, with -1 for a missing
    one. Other numbers are for regression, with NaN for a missing one; but 0, 1 and NaN in several
    columns are binary labels. A metric for regression makes numbers of all of them.

    Example:
        >>> from eamp.training import PROTOCOLS
        >>> target_of(torch.tensor([0, 2, 1]), PROTOCOLS["standard"])
        Target(kind='classes', outputs=3, metric='accuracy', second='accuracy')
        >>> target_of(torch.tensor([0.5, 2.0]), PROTOCOLS["standard"]).metric
        'mae'
    """
    asked = None if protocol.metric is None else METRICS[protocol.metric]
    values = y[~y.isnan()] if y.is_floating_point() else y[y >= 0]
    binary = bool(((values == 0) | (values == 1)).all())
    kind: Literal["classes", "labels", "numbers"] = "classes"
    if asked is not None and asked.regression:
        kind = "numbers"
    elif y.is_floating_point() or y.dim() == 2:
        whole = not y.is_floating_point()
        judged = asked is not None and y.dim() == 1  # a metric of classes, beside 0.0 and 1.0
        kind = "labels" if whole or (binary and (y.dim() == 2 or judged)) else "numbers"
    if kind == "labels" and not binary:
        raise ValueError(
            "y has several columns of whole numbers, which are yes-or-no labels, but holds others "
            "than 0, 1 and -1 (missing); pass one column of classes, data.y = data.y[:, 0], or "
            "numbers, data.y = data.y.float()."
        )
    if kind == "numbers" and asked is not None and not asked.regression:
        fitting = " or ".join(name for name, each in METRICS.items() if each.regression)
        raise ValueError(
            f"the metric {protocol.metric} is for classes, but y holds numbers; use metric "
            f"{fitting}, or pass whole numbers, data.y = data.y.long()."
        )
    metric, second = DEFAULTS[kind]
    metric = protocol.metric or metric
    if kind != "classes" and metric == second:
        second = DEFAULTS[kind][0]
    classes = int(values.max()) + 1 if kind == "classes" and values.numel() else 1
    outputs = classes if kind == "classes" else (y.size(1) if y.dim() == 2 else 1)
    return Target(kind, outputs, metric, second)


def resolved(protocol: Protocol, target: Target) -> Protocol:
    """Return the protocol with the metric of the target; raise an error if they do not fit."""
    if target.kind != "classes":
        if protocol.select == "val_accuracy":
            raise ValueError(
                f"select 'val_accuracy' is for classes, but y holds {target.kind}; use "
                "protocol.with_changes(select='val_metric')."
            )
        for name in ("label_smoothing", "consistency", "pseudo_labels"):
            if getattr(protocol, name):
                raise ValueError(f"{name} is for classes, but y holds {target.kind}; leave it out.")
    return protocol.with_changes(metric=target.metric)
