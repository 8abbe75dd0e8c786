"""``Result``: the outcome of a training run."""

from dataclasses import dataclass

from eamp.training.protocols import Figures, diverged


@dataclass(frozen=True)
class Result:
    """The outcome of a training run.

    ``best_val_accuracy`` and ``test_accuracy`` belong to different protocols: do not compare them.
    ``test_accuracy``, ``val_accuracy``, ``val_loss``, ``test_metric`` and ``val_metric`` are those
    of the selected epoch.
    """

    best_val_accuracy: float
    """Highest validation accuracy over the epochs, the number of the paper's protocol."""
    test_accuracy: float
    val_accuracy: float
    val_loss: float
    metric: str
    """The metric of the protocol; if it is accuracy, the next three are accuracies."""
    best_val_metric: float
    """The best validation value over the epochs."""
    test_metric: float
    val_metric: float
    epoch: int
    """The selected epoch, counted from 0."""
    energy: list[float]
    """Mean Dirichlet energy after every message-passing layer, at the selected epoch."""
    final_energy: list[float]
    """The same after the last epoch."""
    history: list[Figures]

    @property
    def diverged(self) -> bool:
        """Whether the loss became infinite or NaN, so that training ended there."""
        return diverged(self.history) is not None
