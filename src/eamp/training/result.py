"""``Result``: the outcome of a training run."""

from dataclasses import dataclass, field

from eamp.training.metrics import METRICS
from eamp.training.protocols import Figures, TaskEpoch, diverged
from eamp.training.targets import Target


@dataclass(frozen=True)
class Result:
    """The outcome of a training run.

    ``best_val_accuracy`` and ``test_accuracy`` belong to different protocols: do not compare them.
    ``test_accuracy``, ``val_accuracy``, ``val_loss``, ``test_metric`` and ``val_metric`` are those
    of the selected epoch. Where there are no classes, accuracies are NaN.
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
    also: dict[str, float] = field(default_factory=dict)
    """Test values of further metrics at the selected epoch, where there are no classes."""

    @property
    def diverged(self) -> bool:
        """Whether the loss became infinite or NaN, so that training ended there."""
        return diverged(self.history) is not None


def result_of(
    history: list[Figures],
    epoch: int,
    target: Target,
    *,
    energy: list[float],
    final_energy: list[float],
) -> Result:
    """Return the outcome of a run, given its history and the selected epoch."""
    chosen, metric = history[epoch], METRICS[target.metric]
    return Result(
        best_val_accuracy=max(row.val_accuracy for row in history),
        test_accuracy=chosen.test_accuracy,
        val_accuracy=chosen.val_accuracy,
        val_loss=chosen.val_loss,
        metric=target.metric,
        best_val_metric=max((row.val_metric for row in history), key=metric.merit),
        test_metric=chosen.test_metric,
        val_metric=chosen.val_metric,
        epoch=epoch,
        energy=energy,
        final_energy=final_energy,
        history=history,
        also={target.second: chosen.test_second} if isinstance(chosen, TaskEpoch) else {},
    )
