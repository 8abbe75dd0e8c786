"""Encode models in line charts: colour, dash pattern, marker shape, highlighting and tooltips."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from eamp.optional import extra
from eamp.report.colours import Look

with extra("report"):
    import altair as alt


def fading(column: str) -> Any:
    """Return an opacity by which lines fade while the reader has picked others in the legend.

    ``column`` holds the names that stand in the legend.
    """
    shown = f"!highlight.length || indexof(highlight, datum.{column}) >= 0"
    return alt.condition(shown, alt.value(1.0), alt.value(0.12))


OPACITY = fading("name")


def model_chart(
    frame: pd.DataFrame, legend: Mapping[str, Look], *, dashes: bool = True, **encodings: Any
) -> alt.Chart:
    """Return a chart in which every name of ``frame`` looks as in the legend."""
    colours = by_name(legend, [look.colour for look in legend.values()])
    encodings |= {"color": alt.Color("name:N", scale=colours), "opacity": OPACITY}
    if dashes:
        patterns = by_name(legend, [list(look.dash) for look in legend.values()])
        encodings["strokeDash"] = alt.StrokeDash("name:N", scale=patterns)
    return alt.Chart(frame).encode(**encodings)


def shape(legend: Mapping[str, Look]) -> alt.Shape:
    """Encode the column ``name`` as the marker shapes of the legend."""
    return alt.Shape("name:N", scale=by_name(legend, [look.shape for look in legend.values()]))


def by_name(legend: Mapping[str, Look], values: list[Any]) -> alt.Scale:
    """Return a scale that maps every name of the legend to its value."""
    return alt.Scale(domain=list(legend), range=values)


def tooltips(titles: Mapping[str, str], **options: Any) -> list[alt.Tooltip]:
    """Return tooltips that show fields under their titles."""
    return [alt.Tooltip(field, title=title, **options) for field, title in titles.items()]
