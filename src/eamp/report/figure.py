"""A figure: charts that belong together, the key to their lines, and how it becomes a page's specification or a file on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import altair as alt
import pandas as pd
import vl_convert

from eamp.report.colours import INK, Look
from eamp.report.theme import config, ink, params

Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart

PNG_SCALE = 2.0


@dataclass(frozen=True)
class Panel:
    """One chart of a figure. ``stretches``: its width may follow the page's; else it is scaled as a whole."""

    heading: str
    chart: Chart
    width: int = 460
    height: int = 320
    stretches: bool = True


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with one key for all.

    Attributes:
        key: its file name, and its anchor on the page.
        title: what it shows, in a few words.
        caption: how to read it, and what differs from the paper's.
        legend: how each model is drawn.
        columns: panels beside each other on disk.
    """

    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    legend: dict[str, Look] = field(default_factory=dict)
    columns: int = 2


def page_spec(panel: Panel) -> dict[str, Any]:
    """A panel for the page, which adds configuration, signals and key itself, by its theme."""
    spec: dict[str, Any] = panel.chart.to_dict()
    spec.pop("config", None)
    spec |= {"width": panel.width, "height": panel.height}
    if panel.stretches:
        spec |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    return spec


def disk_spec(figure: Figure) -> dict[str, Any]:
    """The whole figure as one chart on white, with its own key."""
    charts = [
        p.chart.properties(width=p.width, height=p.height, title=p.heading) for p in figure.panels
    ]
    panels = alt.concat(*charts, columns=figure.columns, spacing=36)
    beside = (
        alt.hconcat(panels, key(figure.legend), spacing=24)
        if figure.legend
        else alt.hconcat(panels)
    )
    spec: dict[str, Any] = beside.properties(
        title=alt.Title(figure.title, fontSize=16, offset=18)
    ).to_dict()
    return spec | {"params": params("light"), "config": config("light", for_page=False)}


def key(legend: dict[str, Look]) -> Chart:
    """A sample of every line, with its dashes and its shape, and its name beside it."""
    rows = [
        {"name": name, "row": row, "start": 0, "middle": 14, "end": 28, "words": 36}
        for row, name in enumerate(legend)
    ]
    base = alt.Chart(pd.DataFrame(rows)).encode(y=alt.Y("row:O", axis=None))

    def at(column: str) -> alt.X:
        return alt.X(f"{column}:Q", axis=None, scale=alt.Scale(domain=[0, 36], nice=False))

    samples = []
    for name, look in legend.items():
        one, colour = (
            base.transform_filter(alt.datum.name == name),
            ink("ink") if look.colour == INK else look.colour,
        )
        samples.append(
            one.mark_rule(color=colour, strokeWidth=2.2, strokeDash=list(look.dash)).encode(
                x=at("start"), x2="end:Q"
            )
        )
        if look.shape != "stroke":
            samples.append(
                one.mark_point(
                    color=colour, shape=look.shape, filled=True, size=60, opacity=1
                ).encode(x=at("middle"))
            )
    words = base.mark_text(align="left", color=ink("ink"), limit=0).encode(
        x=at("words"), text="name:N"
    )
    return alt.layer(*samples, words).properties(width=36, height=22 * len(legend))


def save(figure: Figure, folder: Path) -> None:
    """``folder/<key>.svg``, ``.png`` and ``.pdf``."""
    folder.mkdir(parents=True, exist_ok=True)
    svg = vl_convert.vegalite_to_svg(disk_spec(figure))
    (folder / f"{figure.key}.svg").write_text(svg, encoding="utf-8")
    (folder / f"{figure.key}.png").write_bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))
    (folder / f"{figure.key}.pdf").write_bytes(vl_convert.svg_to_pdf(svg))
