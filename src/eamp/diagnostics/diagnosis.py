"""``diagnose``: run a model once, and say in words what its layers do to the embedding."""

from __future__ import annotations

import html
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from eamp.diagnostics.advice import advise
from eamp.diagnostics.probing import Probe
from eamp.diagnostics.rendering import short
from eamp.diagnostics.verdict import Finding, Kind, findings, smoothness
from eamp.graph.edge_index_cache import as_graph
from eamp.nn.wrapping import Selection

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

# Relative energy above which neighbours are more often opposite than unrelated: not collapse, but worth knowing.
SHARPENED = 1.25

LINE = 120  # characters of a line of text

HEADLINES: dict[Kind, str] = {
    "healthy": "Healthy",
    "smoothing": "Oversmoothing",
    "shrinking": "Shrinking",
    "rank loss": "Loss of rank",
    "exploding": "Exploding",
    "dead units": "Dead units",
}


@dataclass(frozen=True, repr=False, eq=False)
class Diagnosis:
    """What :func:`diagnose` found.

    Attributes:
        kind: ``"healthy"``, ``"smoothing"``, ``"shrinking"``, ``"rank loss"``, ``"exploding"`` or ``"dead units"``: the first finding's.
        layer: the layer, counted from 1, at which it sets in; ``None`` for a healthy model.
        findings: everything that goes wrong, the most telling first.
        notes: what is worth knowing besides.
        advice: what to try.
        table: the evidence, a row per layer with every measure.
    """

    kind: Kind
    layer: int | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    advice: tuple[str, ...]
    table: pd.DataFrame

    def __str__(self) -> str:
        lines = [
            f"{HEADLINES[f.kind]} {span(f, len(self.table))}: {f.words}." for f in self.findings
        ] or [healthy_words(self.table)]
        lines += self.notes
        if self.advice:
            lines += [
                "What to try:",
                *(f"  {k}. {sentence}" for k, sentence in enumerate(self.advice, start=1)),
            ]
        return "\n".join(
            textwrap.fill(line, LINE, subsequent_indent="     " if line.startswith(" ") else "  ")
            for line in lines
        )

    def __repr__(self) -> str:
        return f"Diagnosis(kind={self.kind!r}, layer={self.layer}, num_layers={len(self.table)})"

    def plot(self, measures: Iterable[str] | None = None) -> alt.ConcatChart:
        """The evidence as charts, with a rule where the first finding sets in."""
        from eamp.diagnostics.charts import depth_charts

        return depth_charts(self.table, measures, mark=self.layer)

    def _repr_html_(self) -> str:
        return f"<div style='white-space:pre-wrap'>{html.escape(str(self))}</div>"


def diagnose(
    model: Module,
    data: Any,
    *,
    layers: Selection = None,
    labels: Tensor | None = None,
    temperature: float = 10.0,
    run: Callable[[Module, Any], Any] | None = None,
) -> Diagnosis:
    """Run ``model`` once on ``data``, in evaluation mode and without gradients, and say what its layers do to the embedding.

    It tells collapse by *smoothing* (neighbours become alike: a scale-free energy falls) from *shrinking* (the embedding as a whole
    vanishes) and from *loss of rank* (rows become parallel though neighbours still differ), and sees explosions and dead units.

    Args:
        model: any model that :func:`eamp.probe` can watch.
        data: a PyG ``Data``, or the arguments of ``model`` as a tuple ``(x, edge_index, ...)``.
        layers: which modules to watch, see :func:`eamp.probe`.
        labels: ``[n]``, adds the separation of classes to the table.
        temperature: of the entropy in the table.
        run: how to call the model, where neither ``model(x, edge_index)`` nor the names of its arguments say so:
            ``run=lambda model, data: model(data.x, data.adj_t)``.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GCN
        >>> from torch_geometric.utils import erdos_renyi_graph
        >>> _ = torch.manual_seed(0)
        >>> x, edge_index = torch.randn(100, 16), erdos_renyi_graph(100, 0.1)
        >>> diagnosis = eamp.diagnose(GCN(16, 64, num_layers=32), (x, edge_index))
        >>> diagnosis.kind
        'smoothing'
    """
    probe = Probe(model, layers=layers, labels=labels, temperature=temperature)
    with probe, evaluating(model), torch.no_grad():
        (run or run_model)(model, data)
    table = probe.table()
    if (
        np.isnan(smoothness(table)).all()
        and table["norm"].gt(0).any()
        and np.isfinite(table["norm"]).any()
    ):
        raise ValueError(
            "no layer could be measured on a graph, so there is no verdict; the warnings above say why."
        )
    found = findings(table)
    degree = mean_degree(data, int(table["nodes"].iloc[0]))
    return Diagnosis(
        kind=found[0].kind if found else "healthy",
        layer=found[0].layer if found else None,
        findings=found,
        notes=sharpening_note(table),
        advice=advise(found, table, model, degree),
        table=table,
    )


def report(
    model: Module,
    data: Any,
    folder: str | Path | None = None,
    stream: TextIO | None = None,
    **options: Any,
) -> Diagnosis:
    """Diagnose, write the words to ``stream`` (standard output by default) and, with a ``folder``, save words, table and charts there.

    The files are ``diagnosis.txt``, ``layers.csv``, ``layers.html`` (interactive) and ``layers.svg``.
    """
    diagnosis = diagnose(model, data, **options)
    stream = sys.stdout if stream is None else stream
    stream.write(f"{diagnosis}\n")
    if folder is not None:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "diagnosis.txt").write_text(f"{diagnosis}\n", encoding="utf-8")
        diagnosis.table.to_csv(folder / "layers.csv", index=False)
        chart = diagnosis.plot()
        chart.save(
            folder / "layers.html", inline=True
        )  # nothing is fetched when the page is opened
        chart.save(folder / "layers.svg")
    return diagnosis


def run_model(model: Module, data: Any) -> Any:
    """Call ``model`` with a tuple of arguments, or with what a ``Data`` has under the names of its arguments."""
    if isinstance(data, tuple | list):
        return model(*data)
    parameters = inspect.signature(model.forward).parameters
    named = {name: data[name] for name in parameters if name in data and data[name] is not None}
    if "x" in named or "edge_index" in named:
        return model(**named)
    wanted = [
        p
        for p in parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return model(data) if len(wanted) == 1 else model(data.x, data.edge_index)


@contextmanager
def evaluating(model: Module) -> Iterator[None]:
    """Evaluation mode; afterwards every module is back in the mode it was in."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def mean_degree(data: Any, num_nodes: int) -> float:
    """Of the undirected graph in ``data``; 0 where none is to be found."""
    pair = isinstance(data, tuple | list)
    found = data[1:2] if pair else [getattr(data, name, None) for name in ("edge_index", "adj_t")]
    return next(
        (
            float(as_graph(a, num_nodes, symmetrize=True).degree.mean())
            for a in found
            if a is not None
        ),
        0.0,
    )


def span(finding: Finding, num_layers: int) -> str:
    """The layers of a finding in words."""
    if finding.last == num_layers and finding.layer < num_layers:
        return f"from layer {finding.layer} of {num_layers} on"
    if finding.layer == finding.last:
        return f"at layer {finding.layer} of {num_layers}"
    return f"between layers {finding.layer} and {finding.last} of {num_layers}"


def healthy_words(table: pd.DataFrame) -> str:
    """The ranges of what was looked at."""
    courses = {
        "scale-free energy": smoothness(table),
        "norm": table["norm"],
        "effective rank": table["effective_rank"],
    }
    ranges = [
        f"the {name} between {short(float(np.nanmin(v)))} and {short(float(np.nanmax(v)))}"
        for name, v in courses.items()
    ]
    return f"Healthy: over {len(table)} layers " + ", ".join(ranges) + "."


def sharpening_note(table: pd.DataFrame) -> tuple[str, ...]:
    """The opposite of smoothing, which a strong entropy step can bring about."""
    energy = np.asarray(table["relative_energy"])
    if not np.nanmax(energy, initial=0) > SHARPENED:
        return ()
    most = int(np.nanargmax(energy))
    return (
        f"Note: neighbours are more often opposite than alike; the relative energy is {short(float(energy[most]))} at layer {most + 1}, "
        "where 1 means unrelated. Where neighbours share labels, a smaller λ or T may serve better.",
    )
