"""Text and HTML summaries of a probe: one line per measure with a sparkline over depth."""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

BARS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 32  # characters
DECADES = 2.0  # values that span more powers of ten are drawn on a logarithmic scale

# The columns of a table that are not measures.
LAYER_COLUMNS = ("forward", "layer", "name", "type", "relation", "nodes", "width")
HEADINGS = ("first", "lowest", "highest", "last")

Rows = Sequence[dict[str, Any]]


def text_summary(title: str, rows: Rows) -> str:
    """Return a table with the first, lowest, highest and last value and a sparkline."""
    if not rows:
        return f"{title}; no layer has run yet"
    layout = "{:22}{:>9}{:>15}{:>15}{:>10}   {}{}"
    lines = [title, layout.format("", *HEADINGS, "over depth", "")]
    for name, values in values_by_measure(rows).items():
        scale = " log" if logarithmic(values) else ""
        lines.append(layout.format(name, *extremes(values), sparkline(values), scale))
    return "\n".join(line.rstrip() for line in lines)


def html_summary(title: str, rows: Rows) -> str:
    """Return the same table in HTML, in the colours of the surrounding page."""
    if not rows:
        return f"<p>{html.escape(title)}; no layer has run yet</p>"
    cell = "<td style='text-align:right;font-variant-numeric:tabular-nums'>{}</td>"
    body = ""
    for name, values in values_by_measure(rows).items():
        numbers = "".join(cell.format(html.escape(number)) for number in extremes(values))
        scale = "log" if logarithmic(values) else ""
        body += (
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>{numbers}"
            f"<td>{svg_sparkline(values)} <small>{scale}</small></td></tr>"
        )
    head = "".join(f"<th style='text-align:right'>{word}</th>" for word in HEADINGS)
    return (
        f"<table><caption style='text-align:left'>{html.escape(title)}</caption>"
        f"<thead><tr><th></th>{head}<th style='text-align:left'>over depth</th></tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def values_by_measure(rows: Rows) -> dict[str, list[float]]:
    """Return each measure's values from the first layer to the last."""
    names = [name for name in rows[0] if name not in LAYER_COLUMNS]
    return {name: [float(row[name]) for row in rows] for name in names}


def extremes(values: list[float]) -> tuple[str, str, str, str]:
    """Return the first, lowest, highest and last value; lowest and highest with their layers."""
    known = [(value, layer) for layer, value in enumerate(values, start=1) if not math.isnan(value)]
    if not known:
        return "–", "–", "–", "–"
    low, high = (
        f"{format_number(value)} @{layer}"
        for value, layer in (min(known), max(known, key=lambda pair: pair[0]))
    )
    return format_number(values[0]), low, high, format_number(values[-1])


def format_number(value: float) -> str:
    """Return three significant digits, with an exponent only for very small and large values."""
    if math.isnan(value):
        return "–"
    if value == 0 or not math.isfinite(value) or 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 or not math.isfinite(value) else f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def logarithmic(values: Iterable[float]) -> bool:
    """Return whether no value is negative and they span more than :data:`DECADES` decades."""
    finite = [value for value in values if math.isfinite(value)]
    positive = [value for value in finite if value > 0]
    if not positive or min(finite) < 0:
        return False
    return math.log10(max(positive)) - math.log10(min(positive)) > DECADES


def normalized(values: list[float]) -> list[float | None]:
    """Map values to [0, 1], on a logarithmic scale if they span decades; non-finite to ``None``."""
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
    """Return at most :data:`SPARK_WIDTH` block characters."""
    if len(values) > SPARK_WIDTH:
        last = len(values) - 1
        values = [values[round(k * last / (SPARK_WIDTH - 1))] for k in range(SPARK_WIDTH)]
    return "".join(
        "·" if h is None else BARS[min(int(h * len(BARS)), len(BARS) - 1)]
        for h in normalized(values)
    )


def svg_sparkline(values: list[float]) -> str:
    """Return an SVG polyline in the colour of the surrounding text."""
    width, height = 120, 20
    step = width / max(len(values) - 1, 1)
    points = " ".join(
        f"{k * step:.1f},{(1 - h) * (height - 4) + 2:.1f}"
        for k, h in enumerate(normalized(values))
        if h is not None
    )
    return (
        f"<svg width='{width}' height='{height}' viewBox='0 0 {width} {height}' role='img' "
        f"aria-label='values over depth'><polyline points='{points}' fill='none' "
        "stroke='currentColor' stroke-width='1.5'/></svg>"
    )
