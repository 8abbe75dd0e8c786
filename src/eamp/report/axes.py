"""Axes of charts: linear, of depths, and of energies over many decades with a place for zeros."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from eamp.optional import extra
from eamp.report.theme import ink

with extra("report"):
    import altair as alt

LABELS_APART = 0.14  # smallest distance of two labels, as a fraction of the axis
LANE = 0.14  # height of the lane of zeros, as a fraction of the axis
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def linear_axis(
    channel: type[alt.X] | type[alt.Y], field: str, title: str, ends: Sequence[float], **axis: Any
) -> alt.X | alt.Y:
    """Encode a field on a linear axis between two ends; ``axis`` holds options of ``alt.Axis``."""
    scale = alt.Scale(domain=list(ends), nice=False)
    return channel(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(**axis))


def depth_axis(depths: Iterable[int], base: int = 2) -> alt.X:
    """Return a logarithmic axis of depths; a depth whose label would overlap another has none."""
    known = sorted({int(depth) for depth in depths}, reverse=True)
    apart = LABELS_APART * math.log(max(known) / min(known))
    marked = known[:1]
    for depth in known:
        if math.log(marked[-1] / depth) > apart:
            marked.append(depth)
    axis = alt.Axis(values=sorted(marked), format="d", labelOverlap="greedy")
    return alt.X("depth:Q", title="layers", scale=log_scale(known, base), axis=axis)


def log_scale(values: Sequence[float], base: int) -> alt.Scale:
    """Return a logarithmic scale with margins, so that no marker at its ends is cut in half."""
    low, high = min(values), max(values)
    margin = (high / low) ** 0.04 if high > low else 2.0
    return alt.Scale(type="log", base=base, domain=[low / margin, high * margin], nice=False)


def finite(frame: pd.DataFrame, column: str = "energy") -> pd.DataFrame:
    """Return the rows whose value in ``column`` is a finite number."""
    return frame[frame[column].map(math.isfinite).astype(bool)]


class LogAxis:
    """A logarithmic y axis of whole decades, with a lane below it for values that are exactly 0."""

    def __init__(self, values: Iterable[float], title: str) -> None:
        values = list(values)
        # The tolerance of 1e-9 absorbs the rounding of the logarithm of an exact power of ten.
        exponents = [math.log10(value) for value in values if value > 0] or [0.0]
        self.low = math.floor(min(exponents) + 1e-9)
        self.high = max(math.ceil(max(exponents) - 1e-9), self.low + 1)
        self.title = title
        self.has_zeros = any(value == 0 for value in values)
        lane = LANE * (self.high - self.low)
        self.zero, self.border = 10.0 ** (self.low - lane), 10.0 ** (self.low - lane / 2)
        self.bottom = 10.0 ** (self.low - 1.35 * lane) if self.has_zeros else 10.0**self.low

    def place(self, value: float) -> float:
        """Return the value at which ``value`` is drawn."""
        return value if value > 0 else self.zero

    def y(self, field: str) -> alt.Y:
        """Encode a field on this axis, which labels about six powers of ten, and the lane as 0."""
        step = max(1, math.ceil((self.high - self.low) / 6))
        exponents = [k for k in range(self.low, self.high + 1) if k % step == 0]
        plain = {-3: ".001", -2: ".01", -1: ".1", 0: "1", 1: "10", 2: "100"}
        labels = {str(k): plain.get(k) or f"10{str(k).translate(SUPERSCRIPTS)}" for k in exponents}
        ticks = [10.0**k for k in exponents] + ([self.zero] if self.has_zeros else [])
        power = f"{labels}[toString(round(log(datum.value) / LN10))]"
        axis = alt.Axis(values=ticks, labelExpr=f"datum.value < {self.border!r} ? '0' : {power}")
        scale = alt.Scale(type="log", domain=[self.bottom, 10.0**self.high], nice=False)
        return alt.Y(f"{field}:Q", title=self.title, scale=scale, axis=axis)

    def lane(self) -> list[alt.Chart]:
        """Return the border of the lane and its label, or nothing if no value is 0."""
        if not self.has_zeros:
            return []
        here = alt.Chart(pd.DataFrame({"border": [self.border], "zero": [self.zero]}))
        rule = here.mark_rule(color=ink("axis"), strokeDash=[2, 3])
        words = here.mark_text(
            color=ink("soft"), align="left", dx=6, text="exactly 0", fontStyle="italic"
        )
        return [rule.encode(y=self.y("border")), words.encode(x=alt.value(0), y=self.y("zero"))]
