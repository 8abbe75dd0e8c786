"""``Monitor``: watch the layers of a model during training, and say when one collapses."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import DataParallel, Module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from eamp.diagnostics.monitoring.gain_control import GainControl, number_of, takes_part
from eamp.diagnostics.monitoring.logged_values import logged_values
from eamp.diagnostics.monitoring.monitor_page import fragment, page
from eamp.diagnostics.probing import Probe, Row
from eamp.diagnostics.result import headline
from eamp.diagnostics.running import evaluation_mode
from eamp.diagnostics.verdict import Finding, findings
from eamp.diagnostics.watched_layers import models_around
from eamp.files import check_writable, write_atomically
from eamp.nn.checks import check_count
from eamp.nn.wrapping import Selection

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

# What the verdict looks at. The other measures of a probe would cost more than these together.
MEASURES = (
    "energy",
    "relative_energy",
    "rayleigh_quotient",
    "norm",
    "effective_rank",
    "dead_units",
)


class CollapseWarning(UserWarning):
    """A layer has collapsed during training."""


class Alarm(NamedTuple):
    """A finding, and the epoch at which it was made."""

    epoch: int
    finding: Finding
    words: str


class Monitor:
    """Measure every layer during training, every few epochs, and raise an alarm at a collapse.

    It needs one call per epoch. At every ``every``-th epoch it measures the first forward pass in
    training mode, as :func:`eamp.probe` does, and the gradients that come back. It runs nothing
    itself, with one exception: a model of ``torch.compile`` skips hooks, so its original module is
    run once more, in evaluation mode and on the same input.

    A kind of collapse that was not there at the measurement before is an alarm: a
    :class:`CollapseWarning`, an entry in ``alarms``, and a call of ``on_alarm``.

    With DistributedDataParallel, process 0 measures and the others do nothing. With ``gain_limit``
    they take its λ in ``step``, which every process must call.

    Args:
        model: the model, as it is called or inside of ``torch.compile`` and
            ``DistributedDataParallel``. A part of it, such as the encoder, will do.
        every: number of epochs between measurements. One measurement takes about the time of an
            epoch.
        folder: where ``monitor.csv`` is written at every measurement, and ``monitor.html`` at the
            end.
        log: a function of a dictionary and an epoch, called at every measurement:
            ``log=lambda values, epoch: wandb.log(values, step=epoch)``.
        on_alarm: a function that is called with every :class:`Alarm`.
        gain_limit: whether to act: where the scale-free energy of an :class:`eamp.EntropyAware`
            layer falls to half of its highest value, λ is raised by one half, at most until
            λ · max_i Σ_j a_ij (C_i + C_j) reaches this limit. Take a number well below 1, such as
            0.5. λ is no part of ``state_dict``; the table has it in the column ``weight``.
        layers: the modules to measure, see :func:`eamp.probe`.

    Example:
        >>> import torch, warnings
        >>> from torch_geometric.nn import GCN
        >>> from eamp.diagnostics import Monitor
        >>> model, x = GCN(8, 16, num_layers=24), torch.randn(4, 8)
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> with warnings.catch_warnings(), Monitor(model, every=2) as monitor:
        ...     warnings.simplefilter("ignore")  # the alarm
        ...     for epoch in range(4):
        ...         model(x, edge_index).sum().backward()
        ...         _ = monitor.step(epoch)
        >>> monitor.table().groupby("epoch")["layer"].count().to_dict()
        {0: 24, 2: 24}
        >>> monitor.alarms[0].epoch
        0
    """

    def __init__(
        self,
        model: Module,
        *,
        every: int = 25,
        folder: str | Path | None = None,
        log: Callable[[dict[str, float], int], Any] | None = None,
        on_alarm: Callable[[Alarm], Any] | None = None,
        gain_limit: float | None = None,
        layers: Selection = None,
    ) -> None:
        check_count("every", every)
        self.model, self.compiled = original_of(model)
        self.every, self.log, self.on_alarm = every, log, on_alarm
        self.folder = None if folder is None else Path(folder)
        self.leads = not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0
        if self.folder is not None and self.leads:
            check_writable(self.folder)
        self.alarms: list[Alarm] = []
        self.rows: list[Row] = []
        self.gain = None if gain_limit is None else GainControl(self.model, gain_limit)
        gradients = self.compiled is None
        self._probe = Probe(self.model, MEASURES, layers=layers, gradients=gradients)
        self._handles: list[RemovableHandle] = []
        self._present: frozenset[str] = frozenset()  # kinds at the last measurement
        self._next, self._told = 0, False

    def __enter__(self) -> Monitor:
        """Measure the next forward pass."""
        if self.leads and not self._handles:
            self._arm()
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove all hooks, and write the page."""
        self._disarm()
        if self.folder is not None and self.leads and self.rows:
            write_atomically(self.folder / "monitor.html", page(*self._contents()))

    def step(self, epoch: int | None = None) -> dict[str, float]:
        """Close an epoch; return what was measured in it, under the names that ``log`` gets.

        Args:
            epoch: its number, by default one more than at the last call, from 0.
        """
        epoch = self._next if epoch is None else int(epoch)
        self._next = epoch + 1
        if not self.leads:
            self._share_gain()
            return {}
        rows, values, known = self._probe.rows, dict[str, float](), len(self.alarms)
        if rows:
            self._disarm()
            self._probe.clear()
            values = self._record(epoch, rows)
        elif self._handles and not self._told:
            self._told = True
            warnings.warn(
                "the monitor has seen no forward pass in training mode in this epoch. Call the "
                "model itself inside `with Monitor(model)`, and pass torch.compile's result.",
                stacklevel=2,
            )
        if self._next % self.every == 0 and not self._handles:
            self._arm()
        self._share_gain()
        for alarm in self.alarms[known:]:  # last, since a user may turn warnings into errors
            warnings.warn(f"epoch {epoch}: {alarm.words}", CollapseWarning, stacklevel=2)
        return values

    def _share_gain(self) -> None:
        """Let all processes have the same λ, which process 0 may have raised."""
        if self.gain is not None:
            self.gain.share()

    def table(self) -> pd.DataFrame:
        """Return all measurements, with one row per epoch and layer."""
        import pandas as pd  # slow to load, and needed for tables only

        if not self.rows:
            raise RuntimeError(
                "the monitor has measured nothing yet. Call monitor.step() after every epoch."
            )
        return pd.DataFrame(self.rows)

    def plot(self, measures: list[str] | None = None) -> alt.ConcatChart:
        """Return charts of the measures against depth, with one line per measured epoch."""
        from eamp.diagnostics.charts import depth_charts  # loads Altair, which is slow

        return depth_charts(self.table().rename(columns={"epoch": "forward"}), measures)

    def callback(self) -> Any:
        """Return this monitor as a Lightning callback: ``Trainer(callbacks=[m.callback()])``."""
        # imports Lightning, an optional package
        from eamp.diagnostics.monitoring.lightning_callback import lightning_callback

        return lightning_callback(self)

    def __repr__(self) -> str:
        epochs = len({row["epoch"] for row in self.rows})
        name = type(self.model).__name__
        return f"Monitor({name}, every={self.every}): {epochs} epochs, {len(self.alarms)} alarms"

    def _repr_html_(self) -> str:
        return fragment(*self._contents()) if self.rows else f"<p>{self!r}</p>"

    def _contents(self) -> tuple[str, pd.DataFrame, list[tuple[int, str]]]:
        title = f"Training of {type(self.model).__name__}, layer by layer"
        return title, self.table(), [(alarm.epoch, alarm.words) for alarm in self.alarms]

    def _arm(self) -> None:
        """Add hooks, in place before the next forward pass starts."""
        self._probe.clear()
        if self.compiled is not None:
            hook = self.compiled.register_forward_hook(self._after_compiled, with_kwargs=True)
            self._handles = [hook]
            return
        self._probe.__enter__()
        gain_hooks = self.gain.hooks() if self.gain is not None else ()
        # The innermost module that holds all layers is the first to end.
        around = models_around(self.model, self._probe.watched) or [self.model]
        self._handles = [*gain_hooks, *(m.register_forward_hook(self._after_pass) for m in around)]

    def _disarm(self) -> None:
        """Remove the hooks; the gradients of the measured pass still arrive in its rows."""
        if not self._handles:
            return
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self.compiled is None:
            self._probe.__exit__()

    def _after_pass(self, module: Module, args: Any, out: Any) -> None:
        if module.training:
            self._disarm()
        else:
            self._probe.clear()

    def _after_compiled(self, module: Module, args: Any, kwargs: Any, out: Any) -> None:
        if not module.training:
            return
        self._disarm()
        handles = list(self.gain.hooks()) if self.gain is not None else []
        try:
            with self._probe, evaluation_mode(self.model), torch.no_grad():
                self.model(*args, **kwargs)
        finally:
            for handle in handles:
                handle.remove()

    def _record(self, epoch: int, rows: list[Row]) -> dict[str, float]:
        """Keep the rows of an epoch, raise alarms, act, and write."""
        import pandas as pd  # slow to load, and needed for the verdict only

        found = findings(pd.DataFrame(rows))
        modules = dict(self.model.named_modules())
        weights = {n: number_of(m) for n, m in modules.items() if takes_part(m)}
        for row in rows:
            if weights:
                row["weight"] = weights.get(row["name"], math.nan)
            self.rows.append({"epoch": epoch, **row})
        values = logged_values(rows)
        for finding in found:
            if finding.kind not in self._present:
                words = f"{headline(finding, len(rows))}: {finding.words}."
                self.alarms.append(Alarm(epoch, finding, words))
                if self.on_alarm is not None:
                    self.on_alarm(self.alarms[-1])
        self._present = frozenset(finding.kind for finding in found)
        if self.gain is not None:
            self.gain.act(lowest_energies(rows))
        if self.log is not None:
            self.log(values, epoch)
        if self.folder is not None:
            csv = self.table().to_csv(index=False)
            write_atomically(self.folder / "monitor.csv", csv)
        return values


def original_of(model: Module) -> tuple[Module, Module | None]:
    """Return the model inside of wrappers, and the compiled one if there is one."""
    compiled: Module | None = None
    while True:
        inner = getattr(model, "_orig_mod", None)
        if isinstance(inner, Module):
            model, compiled = inner, compiled or model
        elif isinstance(model, DistributedDataParallel | DataParallel):
            model = model.module
        else:
            return model, compiled


def lowest_energies(rows: list[Row]) -> dict[str, float]:
    """Return the lowest scale-free energy of every layer by its name."""
    lowest: dict[str, float] = {}
    for row in rows:
        energy = min(row["relative_energy"], row["rayleigh_quotient"])
        lowest[row["name"]] = min(energy, lowest.get(row["name"], math.inf))
    return lowest
