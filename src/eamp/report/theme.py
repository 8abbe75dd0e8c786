"""Fonts, axes and grid of every chart, in a light and a dark mode; models keep their colours."""

from typing import Any

FONT = "Inter, Roboto, 'Segoe UI', system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"

INKS = {
    mode: dict(zip(("ink", "soft", "grid", "axis", "paper"), colours, strict=True))
    for mode, colours in {
        "light": ("#1c2430", "#5b6675", "#e6e9ee", "#b4bcc8", "#ffffff"),
        "dark": ("#e8ecf2", "#9aa6b6", "#28303b", "#4b5665", "#151a21"),
    }.items()
}


def config(mode: str, *, for_page: bool) -> dict[str, Any]:
    """Return Vega-Lite's configuration; on the page, the background of a chart is transparent."""
    ink = INKS[mode]
    label = {"labelFontSize": 11, "labelColor": ink["soft"], "labelPadding": 6}
    title = {"titleFontSize": 11.5, "titleFontWeight": "normal", "titleColor": ink["soft"]}
    ticks = {"ticks": True, "tickColor": ink["axis"], "tickSize": 4}
    heading = {"fontSize": 14, "fontWeight": 600, "color": ink["ink"]}
    axis = {**label, **title, "titlePadding": 8, "gridColor": ink["grid"]}
    return {
        "background": "transparent" if for_page else ink["paper"],
        "font": FONT,
        "padding": 4 if for_page else 14,
        "view": {"stroke": None},
        "axis": {**axis, "domain": False, "ticks": False},
        "axisX": {**ticks, "grid": False, "domain": True, "domainColor": ink["axis"]},
        "title": {**heading, "anchor": "start", "offset": 12},
        # The page and `figure.key` draw the legends: Vega-Lite's own cuts long names short.
        "legend": {"disable": True},
        "text": {"fontSize": 11.5},
    }


def params(mode: str) -> list[dict[str, Any]]:
    """Return the signals of every chart: its colours, and the names that the reader has picked."""
    return [{"name": "theme", "value": INKS[mode]}, {"name": "highlight", "value": []}]


def ink(kind: str) -> dict[str, str]:
    """Return the theme's colour of this kind: ``ink``, ``soft``, ``axis`` or ``paper``."""
    return {"expr": f"theme.{kind}"}
