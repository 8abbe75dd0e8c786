"""Training protocols: the settings of a training run, and which of its epochs counts."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args, get_type_hints


@dataclass(frozen=True)
class Protocol:
    """The settings of a training run.

    Attributes:
        select: the epoch that counts is the one of lowest validation loss, or of highest
            validation accuracy.
        epochs: the largest number of epochs.
        learning_rate: of Adam.
        weight_decay: of all parameters but those that the entropy step learns.
        conv_decay: weight decay of message-passing layers, if it differs from ``weight_decay``.
        reduction: the training loss is the sum or the mean over the training nodes.
        schedule: anneal the learning rate to 0 along a cosine over all epochs, or keep it.
        label_smoothing: of the training loss.
        patience: stop after this many epochs without a lower validation loss; ``None`` never stops.
    """

    select: Literal["val_loss", "val_accuracy"]
    epochs: int
    learning_rate: float
    weight_decay: float = 0.0
    conv_decay: float | None = None
    reduction: Literal["sum", "mean"] = "mean"
    schedule: Literal["cosine", "none"] = "none"
    label_smoothing: float = 0.0
    patience: int | None = None

    def __post_init__(self) -> None:
        known = get_type_hints(Protocol)
        for name in ("select", "reduction", "schedule"):
            if (value := getattr(self, name)) not in (choices := get_args(known[name])):
                expected = ", ".join(map(repr, choices))
                raise ValueError(f"{name} must be one of {expected}, but is {value!r}.")
        epochs = self.epochs
        if not isinstance(epochs, int) or epochs < 1:
            raise ValueError(f"epochs must be a whole number of at least 1, but is {epochs!r}.")

    def with_changes(self, **changes: Any) -> "Protocol":
        """Return the protocol with some settings changed."""
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


class Epoch(NamedTuple):
    """Losses and accuracies after one epoch."""

    train_loss: float
    val_loss: float
    val_accuracy: float
    test_accuracy: float


def selected(history: list[Epoch], protocol: Protocol) -> int:
    """Return the epoch that counts: the first of the best, never one whose loss is not finite."""

    def merit(epoch: int) -> float:
        row = history[epoch]
        if not math.isfinite(row.val_loss):
            return -math.inf
        return -row.val_loss if protocol.select == "val_loss" else row.val_accuracy

    return max(range(len(history)), key=merit)


def is_over(history: list[Epoch], protocol: Protocol) -> bool:
    """Return whether training ends early: out of patience, or with a loss that is not finite."""
    if not history or not math.isfinite(history[-1].train_loss):
        return bool(history)
    if protocol.patience is None:
        return False
    lowest = selected(history, protocol.with_changes(select="val_loss"))
    return len(history) - 1 - lowest >= protocol.patience


def learning_rate(protocol: Protocol, epoch: int) -> float:
    """Return the learning rate of an epoch.

    It depends on the epoch alone, so a resumed run needs no state of a scheduler.
    """
    if protocol.schedule == "none":
        return protocol.learning_rate
    return protocol.learning_rate * (1 + math.cos(math.pi * epoch / protocol.epochs)) / 2
