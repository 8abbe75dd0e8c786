"""A probe's numbers for a terminal and for a notebook: a line per measure, with its course over depth drawn small."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

BARS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 32
DECADES = (
    2.0  # a course that spans more than this many powers of ten is drawn on a logarithmic scale
)

WHICH_LAYER = (
    "forward",
    "layer",
    "name",
    "type",
    "nodes",
    "width",
)  # columns of a table that are no measures

Rows = Sequence[dict[str, Any]]


def text_summary(title: str, rows: Rows) -> str:
    """Title, and per measure the first, lowest, highest and last value and a sparkline."""
    if not rows:
        return f"{title}; no forward pass yet"
    lines = [title, f"{'':22}{'first':>9}{'lowest':>15}{'highest':>15}{'last':>10}   over depth"]
    for name, values in courses(rows):
        first, low, high, last = landmarks(values)
        scale = " log" if logarithmic(values) else ""
        lines.append(
            f"{name:22}{first:>9}{low:>15}{high:>15}{last:>10}   {sparkline(values)}{scale}"
        )
    return "\n".join(line.rstrip() for line in lines)


def html_summary(title: str, rows: Rows) -> str:
    """The same as an HTML table, in the colours of the page it lands on."""
    if not rows:
        return f"<p>{html.escape(title)}; no forward pass yet</p>"
    cell = "<td style='text-align:right;font-variant-numeric:tabular-nums'>{}</td>"
    body = []
    for name, values in courses(rows):
        numbers = "".join(cell.format(html.escape(mark)) for mark in landmarks(values))
        note = "log" if logarithmic(values) else ""
        body.append(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>{numbers}<td>{svg_sparkline(values)} <small>{note}</small></td></tr>"
        )
    head = "".join(
        f"<th style='text-align:right'>{word}</th>"
        for word in ("first", "lowest", "highest", "last")
    )
    return (
        f"<table><caption style='text-align:left'>{html.escape(title)}</caption>"
        f"<thead><tr><th></th>{head}<th style='text-align:left'>over depth</th></tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def courses(rows: Rows) -> list[tuple[str, list[float]]]:
    """Each measure's values from the first layer to the last."""
    return [
        (name, [float(row[name]) for row in rows]) for name in rows[0] if name not in WHICH_LAYER
    ]


def landmarks(values: list[float]) -> tuple[str, str, str, str]:
    """First, lowest and highest (with their layers) and last value."""
    known = [(value, layer) for layer, value in enumerate(values, start=1) if not math.isnan(value)]
    if not known:
        return "–", "–", "–", "–"
    low, high = min(known), max(known, key=lambda pair: pair[0])
    return (
        short(values[0]),
        f"{short(low[0])} @{low[1]}",
        f"{short(high[0])} @{high[1]}",
        short(values[-1]),
    )


def short(value: float) -> str:
    """Three significant digits, in powers of ten only where that is shorter to read."""
    if math.isnan(value):
        return "–"
    if value == 0 or not math.isfinite(value) or 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 or not math.isfinite(value) else f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def logarithmic(values: Iterable[float]) -> bool:
    """Whether values that are never negative span more than :data:`DECADES` powers of ten."""
    finite = [value for value in values if math.isfinite(value)]
    positive = [value for value in finite if value > 0]
    return (
        bool(positive)
        and min(finite) >= 0
        and math.log10(max(positive)) - math.log10(min(positive)) > DECADES
    )


def heights(values: list[float]) -> list[float | None]:
    """Values mapped to [0, 1], logarithmically where they span decades; ``None`` for what is not finite."""
    log = logarithmic(values)
    floor = min((value for value in values if value > 0), default=1.0)
    scaled = [math.log10(max(value, floor)) if log else value for value in values]
    finite = [value for value in scaled if math.isfinite(value)]
    low, span = (min(finite), max(finite) - min(finite)) if finite else (0.0, 0.0)
    return [
        None if not math.isfinite(value) else (value - low) / span if span > 0 else 0.5
        for value in scaled
    ]


def sparkline(values: list[float]) -> str:
    """At most :data:`SPARK_WIDTH` block characters."""
    picked = values
    if len(values) > SPARK_WIDTH:
        picked = [
            values[round(k * (len(values) - 1) / (SPARK_WIDTH - 1))] for k in range(SPARK_WIDTH)
        ]
    return "".join(
        "·" if h is None else BARS[min(int(h * len(BARS)), len(BARS) - 1)] for h in heights(picked)
    )


def svg_sparkline(values: list[float], width: int = 120, height: int = 20) -> str:
    """A polyline in the colour of the text around it."""
    step = width / max(len(values) - 1, 1)
    points = " ".join(
        f"{k * step:.1f},{(1 - h) * (height - 4) + 2:.1f}"
        for k, h in enumerate(heights(values))
        if h is not None
    )
    return (
        f"<svg width='{width}' height='{height}' viewBox='0 0 {width} {height}' role='img' aria-label='course over depth'>"
        f"<polyline points='{points}' fill='none' stroke='currentColor' stroke-width='1.5'/></svg>"
    )
