"""A monitor as a Lightning callback; its numbers go to the loggers of the trainer."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from eamp.optional import extra

if TYPE_CHECKING:
    from eamp.diagnostics.monitoring.monitor import Monitor


def lightning_callback(monitor: Monitor) -> Any:
    """Return a ``Callback`` that runs ``monitor`` during ``Trainer.fit``."""
    with extra("lightning"):
        # Two packages have the same classes; a trainer takes those of its own.
        older = "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules
        callback: Any = import_module(
            "pytorch_lightning" if older else "lightning.pytorch"
        ).Callback

    class MonitorCallback(callback):  # type: ignore[misc]  # either of two classes
        """Opens the monitor, closes its epochs and logs what it has measured."""

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            monitor.__enter__()

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            values = monitor.step(trainer.current_epoch)
            if values:
                pl_module.log_dict(values, rank_zero_only=True)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            monitor.__exit__()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            monitor.__exit__()

    return MonitorCallback()
