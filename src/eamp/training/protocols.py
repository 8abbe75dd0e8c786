"""Training protocols: the settings of a training run, and which of its epochs counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, get_type_hints

from eamp.spelling import did_you_mean
from eamp.training.metrics import METRICS
from eamp.training.objectives import Consistency, PseudoLabels, options_of
from eamp.training.ranges import check_range


@dataclass(frozen=True)
class Protocol:
    """The settings of a training run.

    Attributes:
        select: the epoch that counts is the one of lowest validation loss, of highest validation
            accuracy, or of the best validation value of ``metric``.
        epochs: the largest number of epochs.
        learning_rate: of Adam.
        weight_decay: of all parameters but those that the entropy step learns.
        conv_decay: weight decay of message-passing layers, if it differs from ``weight_decay``.
        reduction: the training loss is the sum or the mean over the training nodes.
        schedule: anneal the learning rate to 0 along a cosine over all epochs, or keep it.
        label_smoothing: of the training loss.
        patience: stop after this many epochs without a lower validation loss; ``None`` never stops.
        metric: what is measured beside the loss, a key of :data:`eamp.training.METRICS`; the
            results are called by its name. By default accuracy for classes, the mean absolute error
            for numbers, and ROC AUC for binary labels and links.
        consistency: options of :class:`~.objectives.Consistency`, as an object or a mapping;
            ``None`` trains on the cross-entropy of a single pass.
        pseudo_labels: options of :class:`~.objectives.PseudoLabels`, as an object or a mapping;
            ``None`` learns from the labels of the training nodes alone.
        batch_size: graphs per mini-batch, where there are many graphs.
    """

    select: Literal["val_loss", "val_accuracy", "val_metric"]
    epochs: int
    learning_rate: float
    weight_decay: float = 0.0
    conv_decay: float | None = None
    reduction: Literal["sum", "mean"] = "mean"
    schedule: Literal["cosine", "none"] = "none"
    label_smoothing: float = 0.0
    patience: int | None = None
    metric: str | None = None
    consistency: Consistency | None = None
    pseudo_labels: PseudoLabels | None = None
    batch_size: int = 32

    def __post_init__(self) -> None:
        known = get_type_hints(Protocol)
        for name in ("select", "reduction", "schedule"):
            if (value := getattr(self, name)) not in (choices := get_args(known[name])):
                expected = ", ".join(map(repr, choices))
                raise ValueError(f"{name} must be one of {expected}, but is {value!r}.")
        known_metrics = [None, *METRICS]  # a list, since the value may not be hashable
        if self.metric not in known_metrics:
            expected = ", ".join(map(repr, METRICS))
            raise ValueError(f"metric must be one of {expected}, but is {self.metric!r}.")
        check_range("epochs", self.epochs, int, 1)
        check_range("learning_rate", self.learning_rate, float, 0)
        check_range("weight_decay", self.weight_decay, float, 0)
        check_range("label_smoothing", self.label_smoothing, float, 0, 1)
        check_range("batch_size", self.batch_size, int, 1)
        if self.conv_decay is not None:
            check_range("conv_decay", self.conv_decay, float, 0)
        if self.patience is not None:
            check_range("patience", self.patience, int, 1)
        if self.consistency is not None:
            options = options_of(Consistency, "consistency", self.consistency)
            object.__setattr__(self, "consistency", options)
        if self.pseudo_labels is not None:
            labels = options_of(PseudoLabels, "pseudo_labels", self.pseudo_labels)
            object.__setattr__(self, "pseudo_labels", labels)

    def with_changes(self, **changes: Any) -> "Protocol":
        """Return the protocol with some settings changed."""
        names = [field.name for field in fields(self)]
        if unknown := sorted(set(changes) - set(names)):
            raise ValueError(
                f"a protocol has no {', '.join(unknown)}; it has {', '.join(names)}."
                f"{did_you_mean(unknown[0], names)}"
            )
        return replace(self, **changes)


PROTOCOLS = {
    # The paper's training. Its number is the highest validation accuracy; test nodes are not used.
    "paper": Protocol(
        "val_accuracy", epochs=100, learning_rate=1e-3, reduction="sum", schedule="cosine"
    ),
    # The protocol of eamp's claims: test accuracy at the epoch of lowest validation loss.
    "standard": Protocol(
        "val_loss", epochs=1500, learning_rate=0.01, weight_decay=5e-4, patience=100
    ),
}
"""Protocols by their names in recipes and on the command line."""


def protocol_of(protocol: Protocol | str) -> Protocol:
    """Return a protocol by its name, or the protocol itself."""
    if isinstance(protocol, Protocol):
        return protocol
    if not isinstance(protocol, str):
        raise ValueError(
            f"protocol must be a Protocol or one of {', '.join(PROTOCOLS)}, but is {protocol!r}."
        )
    if protocol not in PROTOCOLS:
        raise ValueError(
            f"no protocol named {protocol!r}; there are {', '.join(PROTOCOLS)}."
            f"{did_you_mean(protocol, PROTOCOLS)}"
        )
    return PROTOCOLS[protocol]


class Epoch(NamedTuple):
    """Losses and accuracies after one epoch of a run whose metric is accuracy."""

    train_loss: float
    val_loss: float
    val_accuracy: float
    test_accuracy: float

    @property
    def val_metric(self) -> float:
        """The validation accuracy."""
        return self.val_accuracy

    @property
    def test_metric(self) -> float:
        """The test accuracy."""
        return self.test_accuracy


class MetricEpoch(NamedTuple):
    """Losses, accuracies and the protocol's metric after one epoch, if it is not accuracy."""

    train_loss: float
    val_loss: float
    val_accuracy: float
    test_accuracy: float
    val_metric: float
    test_metric: float


class TaskEpoch(NamedTuple):
    """Losses, metric and a second test metric after one epoch of a run without classes."""

    train_loss: float
    val_loss: float
    val_metric: float
    test_metric: float
    test_second: float

    @property
    def val_accuracy(self) -> float:
        """NaN, since there are no classes."""
        return math.nan

    @property
    def test_accuracy(self) -> float:
        """NaN, since there are no classes."""
        return math.nan


Figures: TypeAlias = Epoch | MetricEpoch | TaskEpoch


def as_epoch(figures: Sequence[float], classes: bool = True) -> Figures:
    """Return the figures of an epoch under their names."""
    if not classes:
        return TaskEpoch(*figures)
    return Epoch(*figures) if len(figures) == len(Epoch._fields) else MetricEpoch(*figures)


class Selection:
    """The epoch that counts and the end of training, kept up to date with every epoch.

    Args:
        protocol: the rule that selects, and the patience.
        history: the epochs so far.

    Attributes:
        epoch: the epoch that counts: the first of the best, never one whose loss is not finite.
        lowest: the first epoch of the lowest validation loss.
    """

    def __init__(self, protocol: Protocol, history: Sequence[Figures] = ()) -> None:
        self.protocol = protocol
        self.epoch = self.lowest = 0
        self._count, self._merit, self._loss = 0, -math.inf, math.inf
        self._last_loss = 0.0
        for row in history:
            self.add(row)

    def add(self, row: Figures) -> bool:
        """Take the figures of the next epoch, and return whether it is now the one that counts."""
        epoch, merit = self._count, self.merit(row)
        if math.isfinite(row.val_loss) and row.val_loss < self._loss:
            self.lowest, self._loss = epoch, row.val_loss
        if better := epoch == 0 or merit > self._merit:
            self.epoch, self._merit = epoch, merit
        self._count, self._last_loss = epoch + 1, row.train_loss
        return better

    def merit(self, row: Figures) -> float:
        """Return what the protocol selects an epoch by; higher is better."""
        if not math.isfinite(row.val_loss):
            return -math.inf
        if self.protocol.select == "val_metric":
            return METRICS[self.protocol.metric or "accuracy"].merit(row.val_metric)
        return -row.val_loss if self.protocol.select == "val_loss" else row.val_accuracy

    @property
    def is_over(self) -> bool:
        """Whether training ends early: out of patience, or with a loss that is not finite."""
        if not math.isfinite(self._last_loss):
            return True
        patience = self.protocol.patience
        return patience is not None and self._count - 1 - self.lowest >= patience


def selected(history: Sequence[Figures], protocol: Protocol) -> int:
    """Return the epoch that counts, as :class:`Selection` finds it."""
    return Selection(protocol, history).epoch


def diverged(history: Sequence[Figures]) -> int | None:
    """Return the first epoch whose training loss is not finite, or ``None`` if there is none.

    The validation loss counts in the last epoch only: it shows the weights that were reached.
    """
    last = len(history) - 1
    for epoch, row in enumerate(history):
        loss = row.train_loss + row.val_loss if epoch == last else row.train_loss
        if not math.isfinite(loss):
            return epoch
    return None


def advice_on_divergence(epoch: int, meaningful: bool) -> str:
    """Return what happened in a run that diverged in an epoch, and what to try."""
    said = "are those of an earlier epoch" if meaningful else "mean nothing"
    return (
        f"training diverged: the loss is not finite in epoch {epoch}, counted from 0. The "
        f"results {said}. Try a lower learning rate, fewer layers or a smaller weight of the "
        "entropy step, and look for NaN in the features."
    )


def learning_rate(protocol: Protocol, epoch: int) -> float:
    """Return the learning rate of an epoch.

    It depends on the epoch alone, so a resumed run needs no state of a scheduler.
    """
    if protocol.schedule == "none":
        return protocol.learning_rate
    return protocol.learning_rate * (1 + math.cos(math.pi * epoch / protocol.epochs)) / 2
