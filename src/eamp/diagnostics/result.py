"""``Diagnosis``: the result of a diagnosis, and its words."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from eamp.diagnostics.causes.attribution import scale_free_energy
from eamp.diagnostics.causes.usefulness import Usefulness
from eamp.diagnostics.rendering import format_number
from eamp.diagnostics.verdict import Finding, Kind

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

LINE_WIDTH = 120  # characters
# Columns from which the factors of the parts are computed, and which say nothing more.
RAW = ("alone_norm", "alone_energy", "alone_rank", "alone_gradient", "layer_gradient")


@dataclass(frozen=True, repr=False, eq=False)
class Diagnosis:
    """The result of :func:`diagnose`.

    Attributes:
        kind: the kind of the first finding, such as ``"smoothing"``. Without a finding it is
            ``"untrained"`` if the model answers no better than chance, and else ``"healthy"``.
        layer: the layer at which it starts, counted from 1; ``None`` without a finding.
        findings: everything that goes wrong, the most important first.
        notes: further observations.
        advice: what to try.
        table: every measure, with one row per layer.
        usefulness: what linear probes read from the layers; ``None`` without labels.
    """

    kind: Kind
    layer: int | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    advice: tuple[str, ...]
    table: pd.DataFrame
    usefulness: Usefulness | None = field(default=None)

    def __str__(self) -> str:
        lines = [f"{headline(f, len(self.table))}: {f.words}." for f in self.findings]
        lines = [*(lines or [healthy_text(self.kind, self.table)]), *self.notes]
        if self.advice:
            lines += ["What to try:", *(f"  {k}. {s}" for k, s in enumerate(self.advice, start=1))]
        return "\n".join(
            textwrap.fill(line, LINE_WIDTH, subsequent_indent="     " if line[0] == " " else "  ")
            for line in lines
        )

    def __repr__(self) -> str:
        return f"Diagnosis(kind={self.kind!r}, layer={self.layer}, num_layers={len(self.table)})"

    def plot(self, measures: Iterable[str] | None = None) -> alt.ConcatChart:
        """Return charts of the measures, with a rule where the first finding starts."""
        from eamp.diagnostics.charts import depth_charts  # loads Altair, which is slow

        return depth_charts(self.table, measures, mark=self.layer)

    def _repr_html_(self) -> str:
        return f"<div style='white-space:pre-wrap'>{html.escape(str(self))}</div>"


def headline(finding: Finding, num_layers: int) -> str:
    """Return the kind and the layers of a finding in words."""
    names = {"smoothing": "Oversmoothing", "rank loss": "Loss of rank"}
    name = names.get(finding.kind, finding.kind.capitalize())
    if finding.last == num_layers and finding.layer < num_layers:
        return f"{name} from layer {finding.layer} of {num_layers} on"
    if finding.layer == finding.last:
        return f"{name} at layer {finding.layer} of {num_layers}"
    return f"{name} between layers {finding.layer} and {finding.last} of {num_layers}"


def healthy_text(kind: Kind, table: pd.DataFrame) -> str:
    """Return the ranges of the main measures in words."""
    measures = {
        "scale-free energy": scale_free_energy(table),
        "norm": table["norm"],
        "effective rank": table["effective_rank"],
    }
    ranges = [
        f"the {name} is between {format_number(np.nanmin(v))} and {format_number(np.nanmax(v))}"
        for name, v in measures.items()
        if not np.isnan(v).all()
    ]
    word = "Healthy" if kind == "healthy" else "Untrained, and nothing wrong is found"
    layers = "1 layer" if len(table) == 1 else f"{len(table)} layers"
    return f"{word}: over {layers} " + ", ".join(ranges) + "."
