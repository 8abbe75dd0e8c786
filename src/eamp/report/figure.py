"""Figures: panels of charts with one legend, as specifications for the page and as files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from eamp.files import write_atomically
from eamp.optional import extra
from eamp.report.colours import INK, Look
from eamp.report.theme import config, ink, params

with extra("report"):
    import altair as alt
    import vl_convert

Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart

PNG_SCALE = 2.0


@dataclass(frozen=True)
class Panel:
    """One chart of a figure.

    Attributes:
        heading: Text above the chart.
        chart: The chart, without its size.
        width: Width in pixels in files; the page may override it.
        height: Height in pixels.
        stretches: Whether the page may change the width alone; else it scales the whole chart.
    """

    heading: str
    chart: Chart
    width: int = 460
    height: int = 320
    stretches: bool = True


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with one legend for all.

    Attributes:
        key: File name without its ending, and anchor on the page.
        title: A few words on what the figure shows.
        caption: How to read the figure, and its differences from the paper's.
        panels: The charts.
        legend: The look of every name.
        columns: Number of panels side by side in files.
        picked: Names of the legend whose lines the page shows at first while the others fade.
    """

    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    legend: Mapping[str, Look] = field(default_factory=dict)
    columns: int = 2
    picked: tuple[str, ...] = ()

    def _repr_png_(self) -> bytes:
        """Return the figure as a picture for notebooks, which needs no network."""
        return vl_convert.vegalite_to_png(disk_spec(self), scale=PNG_SCALE)


def page_spec(panel: Panel) -> dict[str, Any]:
    """Return a panel's specification; the page adds configuration, signals and legend itself."""
    spec: dict[str, Any] = panel.chart.to_dict()
    spec.pop("config", None)
    spec |= {"width": panel.width, "height": panel.height}
    if panel.stretches:
        spec |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    return spec


def disk_spec(figure: Figure) -> dict[str, Any]:
    """Return the whole figure as one chart on white, with its legend."""
    charts = [
        panel.chart.properties(width=panel.width, height=panel.height, title=panel.heading)
        for panel in figure.panels
    ]
    legend = [key(figure.legend)] if figure.legend else []
    parts = [alt.concat(*charts, columns=figure.columns, spacing=36), *legend]
    title = alt.Title(figure.title, fontSize=16, offset=18)
    spec: dict[str, Any] = alt.hconcat(*parts, spacing=24).properties(title=title).to_dict()
    return spec | {"params": params("light"), "config": config("light", for_page=False)}


def key(legend: Mapping[str, Look]) -> Chart:
    """Return a chart of the legend: a sample of every line with its name."""
    places = {"start": 0, "middle": 14, "end": 28, "words": 36}
    rows = [{"name": name, "row": row, **places} for row, name in enumerate(legend)]
    base = alt.Chart(pd.DataFrame(rows)).encode(y=alt.Y("row:O", axis=None))

    def at(column: str) -> alt.X:
        return alt.X(f"{column}:Q", axis=None, scale=alt.Scale(domain=[0, 36], nice=False))

    samples = []
    for name, look in legend.items():
        one = base.transform_filter(alt.datum.name == name)
        colour = ink("ink") if look.colour == INK else look.colour
        line = one.mark_rule(color=colour, strokeWidth=2.2, strokeDash=list(look.dash))
        samples.append(line.encode(x=at("start"), x2="end:Q"))
        if look.shape != "stroke":
            marker = one.mark_point(color=colour, shape=look.shape, filled=True, size=60, opacity=1)
            samples.append(marker.encode(x=at("middle")))
    words = base.mark_text(align="left", color=ink("ink"), limit=0)
    named = words.encode(x=at("words"), text="name:N")
    return alt.layer(*samples, named).properties(width=36, height=22 * len(legend))


def save(figure: Figure, folder: Path) -> None:
    """Write the figure to ``folder/<key>.svg``, ``.png`` and ``.pdf``."""
    svg = vl_convert.vegalite_to_svg(disk_spec(figure))
    write_atomically(folder / f"{figure.key}.svg", svg)
    write_atomically(folder / f"{figure.key}.png", vl_convert.svg_to_png(svg, scale=PNG_SCALE))
    write_atomically(folder / f"{figure.key}.pdf", vl_convert.svg_to_pdf(svg))
