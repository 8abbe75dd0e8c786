"""What the line charts have in common: how a model is encoded, and axes of layers and of energies over many decades."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import pandas as pd

from eamp.report.colours import Look
from eamp.report.theme import ink

LABELS_APART = 0.14  # of the axis
LANE = 0.14  # of the axis' decades, kept below them for energies that are exactly 0
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")

# A line that the reader does not point at steps back.
OPACITY = alt.condition(
    "highlight === '' || highlight === datum.name", alt.value(1.0), alt.value(0.12)
)


def model_encodings(legend: dict[str, Look], *, dashes: bool = True) -> dict[str, Any]:
    """Colour, and dashes where asked for, by ``name``; points add :func:`shape`."""
    names = list(legend)
    colours = alt.Scale(domain=names, range=[legend[name].colour for name in names])
    encodings: dict[str, Any] = {"color": alt.Color("name:N", scale=colours)}
    if not dashes:
        return encodings
    dash = alt.Scale(domain=names, range=[list(legend[name].dash) for name in names])
    return encodings | {"strokeDash": alt.StrokeDash("name:N", scale=dash)}


def shape(legend: dict[str, Look]) -> alt.Shape:
    """The model's shape, by ``name``."""
    names = list(legend)
    return alt.Shape(
        "name:N", scale=alt.Scale(domain=names, range=[legend[name].shape for name in names])
    )


def depth_axis(depths: Iterable[int], title: str = "layers", base: int = 2) -> alt.X:
    """Depths on a logarithmic scale, each marked unless its label would run into another."""
    known = sorted({int(depth) for depth in depths}, reverse=True)
    apart = LABELS_APART * math.log(max(known) / min(known))
    marked = known[:1]
    for depth in known:
        if math.log(marked[-1] / depth) > apart:
            marked.append(depth)
    scale = around(known, base)
    axis = alt.Axis(values=sorted(marked), format="d", labelOverlap="greedy")
    return alt.X("depth:Q", title=title, scale=scale, axis=axis)


def around(values: Sequence[float], base: int) -> alt.Scale:
    """A logarithmic scale with a margin at both ends, so that no point is cut in half; of one value, with that value in its middle."""
    margin = (max(values) / min(values)) ** 0.04 if max(values) > min(values) else 2.0
    return alt.Scale(
        type="log", base=base, domain=[min(values) / margin, max(values) * margin], nice=False
    )


def finite(frame: pd.DataFrame, column: str = "energy") -> pd.DataFrame:
    """Rows that can be drawn."""
    return frame[frame[column].map(lambda value: math.isfinite(value)).astype(bool)]


class Decades:
    """A logarithmic axis of whole decades, with a lane below for what is exactly 0, since a logarithm has no place for it."""

    def __init__(self, energies: Sequence[float]) -> None:
        exponents = [math.log10(value) for value in energies if value > 0] or [0.0]
        self.low = math.floor(min(exponents) + 1e-9)
        self.high = max(math.ceil(max(exponents) - 1e-9), self.low + 1)
        self.has_zeros = any(value == 0 for value in energies)
        span = self.high - self.low
        self.zero = 10.0 ** (self.low - LANE * span)
        self.border = 10.0 ** (self.low - LANE * span / 2)
        self.bottom = 10.0 ** (self.low - 1.35 * LANE * span) if self.has_zeros else 10.0**self.low

    def place(self, energy: float) -> float:
        """Where an energy is drawn."""
        return energy if energy > 0 else self.zero

    def axis(self, field: str, title: str) -> alt.Y:
        """Powers of ten, a handful of which are marked; ``0`` names the lane."""
        step = max(1, math.ceil((self.high - self.low) / 6))
        exponents = [k for k in range(self.low, self.high + 1) if k % step == 0]
        plain = {-3: ".001", -2: ".01", -1: ".1", 0: "1", 1: "10", 2: "100"}
        labels = {str(k): plain.get(k) or f"10{str(k).translate(SUPERSCRIPTS)}" for k in exponents}
        ticks = [10.0**k for k in exponents] + ([self.zero] if self.has_zeros else [])
        label = f"datum.value < {self.border!r} ? '0' : {labels}[toString(round(log(datum.value) / LN10))]"
        return alt.Y(
            f"{field}:Q",
            title=title,
            scale=alt.Scale(type="log", domain=[self.bottom, 10.0**self.high], nice=False),
            axis=alt.Axis(values=ticks, labelExpr=label),
        )

    def lane(self, title: str) -> list[alt.Chart]:
        """The line above the lane and its name; nothing where no energy is 0."""
        if not self.has_zeros:
            return []
        here = alt.Chart(pd.DataFrame({"border": [self.border], "zero": [self.zero]}))
        rule = here.mark_rule(color=ink("axis"), strokeDash=[2, 3]).encode(
            y=self.axis("border", title)
        )
        words = here.mark_text(
            color=ink("soft"), align="left", dx=6, text="exactly 0", fontStyle="italic"
        )
        return [rule, words.encode(x=alt.value(0), y=self.axis("zero", title))]
