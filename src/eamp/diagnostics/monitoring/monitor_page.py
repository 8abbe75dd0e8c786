"""A page of training curves by layer: plain HTML and SVG, without any script or network."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eamp.diagnostics.rendering import LAYER_COLUMNS, format_number, logarithmic

if TYPE_CHECKING:
    import pandas as pd

WIDTH, HEIGHT = 300, 150
LEFT, RIGHT, TOP, BOTTOM = 52, 6, 8, 20

STYLE = """
.eamp-monitor { color-scheme: light dark; font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
.eamp-monitor .charts { display: grid; gap: 1rem 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 280px), 1fr)); }
.eamp-monitor figure { margin: 0; }
.eamp-monitor figcaption { font-size: .9rem; }
.eamp-monitor svg { width: 100%; height: auto; display: block; }
.eamp-monitor text { font-size: 11px; fill: currentColor; opacity: .75; }
.eamp-monitor polyline { fill: none; stroke-width: 1.4; }
.eamp-monitor .axis { stroke: currentColor; opacity: .25; }
.eamp-monitor .alarm { stroke: #d0443c; stroke-dasharray: 4 3; }
.eamp-monitor .alarms { color: #d0443c; padding-left: 1.2rem; overflow-wrap: anywhere; }
.eamp-monitor .depth { display: inline-block; width: 7rem; height: .5rem; margin: 0 .4rem;
  background: linear-gradient(to right, hsl(225 75% 58%), hsl(135 55% 45%), hsl(45 80% 47%)); }
"""


def page(title: str, table: pd.DataFrame, alarms: Sequence[tuple[int, str]]) -> str:
    """Return a whole page that loads nothing."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        f'<title>{html.escape(title)}</title><link rel="icon" href="data:,">'
        "<style>:root { color-scheme: light dark; } "
        "body { margin: 1.5rem auto; max-width: 1100px; padding: 0 1rem; }</style></head>"
        f"<body>{fragment(title, table, alarms)}</body></html>\n"
    )


def fragment(title: str, table: pd.DataFrame, alarms: Sequence[tuple[int, str]]) -> str:
    """Return the same for a notebook: alarms, then a chart per measure with a line per layer.

    Args:
        title: the heading.
        table: a row per epoch and layer, in columns ``epoch``, ``layer`` and the measures.
        alarms: epochs and words.
    """
    words = "".join(f"<li>Epoch {epoch}: {html.escape(text)}</li>" for epoch, text in alarms)
    alarmed = f'<ul class="alarms">{words}</ul>' if words else "<p>No alarm.</p>"
    measures = [name for name in table.columns if name not in ("epoch", *LAYER_COLUMNS)]
    epochs = sorted({epoch for epoch, _ in alarms})
    drawn = (chart(table[["epoch", "layer", name]].dropna(), name, epochs) for name in measures)
    depth = int(table["layer"].max()) if len(table) else 0
    legend = f'layer 1<span class="depth"></span>layer {depth}'
    return (
        f'<div class="eamp-monitor"><style>{STYLE}</style><h2>{html.escape(title)}</h2>'
        f'{alarmed}<p>{legend}</p><div class="charts">{"".join(drawn)}</div></div>'
    )


def chart(data: pd.DataFrame, measure: str, alarms: Sequence[int]) -> str:
    """Return a figure of one measure against epochs, a line per layer."""
    finite = [value for value in data[measure].tolist() if math.isfinite(value)]
    if not finite:
        return ""
    log = logarithmic(finite)
    smallest = min((value for value in finite if value > 0), default=1.0)

    def height(value: float) -> float:
        return math.log10(max(value, smallest)) if log else value

    low, high = height(min(finite)) if log else min(0.0, *finite), height(max(finite))
    first, last = int(data["epoch"].min()), int(data["epoch"].max())

    def x(epoch: float) -> float:
        return LEFT + (epoch - first) / max(last - first, 1) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        share = (height(value) - low) / (high - low) if high > low else 0.5
        return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)

    depth = int(data["layer"].max())
    lines = ""
    for layer, rows in data.groupby("layer"):
        pairs = zip(rows["epoch"], rows[measure], strict=True)
        points = " ".join(f"{x(e):.1f},{y(v):.1f}" for e, v in pairs if math.isfinite(v))
        if " " not in points:  # one epoch: a short dash
            points = " ".join([points, f"{x(last) + 6:.1f},{points.rpartition(',')[2]}"])
        hue = 225 - 180 * (int(layer) - 1) / max(depth - 1, 1)
        lines += (
            f'<polyline points="{points}" stroke="hsl({hue:.0f} 65% 50%)">'
            f"<title>layer {layer}</title></polyline>"
        )
    rules = "".join(
        f'<line class="alarm" x1="{x(e):.1f}" x2="{x(e):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        for e in alarms
    )
    bottom, label = HEIGHT - BOTTOM, '<text x="{}" y="{}" text-anchor="{}">{}</text>'
    lowest = smallest if log else low
    texts = (
        label.format(LEFT - 6, TOP + 8, "end", format_number(max(finite)))
        + label.format(LEFT - 6, bottom, "end", format_number(lowest))
        + label.format(LEFT, HEIGHT - 4, "start", f"epoch {first}")
        + label.format(WIDTH - RIGHT, HEIGHT - 4, "end", last)
    )
    name = html.escape(measure.replace("_", " ")) + (" (logarithmic)" if log else "")
    axis = f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'
    return (
        f"<figure><figcaption>{name}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name} by layer and epoch">'
        f"{axis}{lines}{rules}{texts}</svg></figure>"
    )
