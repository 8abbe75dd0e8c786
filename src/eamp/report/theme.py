"""The look of every chart: type, axes and grid, in light and in dark. Colours of models are the same in both."""

from __future__ import annotations

from typing import Any

FONT = "Inter, Roboto, 'Segoe UI', system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"

INKS = {
    "light": {
        "ink": "#1c2430",
        "soft": "#5b6675",
        "grid": "#e6e9ee",
        "axis": "#b4bcc8",
        "paper": "#ffffff",
    },
    "dark": {
        "ink": "#e8ecf2",
        "soft": "#9aa6b6",
        "grid": "#28303b",
        "axis": "#4b5665",
        "paper": "#151a21",
    },
}


def config(mode: str, *, for_page: bool) -> dict[str, Any]:
    """Vega-Lite's configuration; on the page the chart has the page's own background."""
    ink = INKS[mode]
    text = {
        "labelFont": FONT,
        "titleFont": FONT,
        "labelColor": ink["soft"],
        "titleColor": ink["soft"],
        "labelFontSize": 11,
    }
    return {
        "background": "transparent" if for_page else ink["paper"],
        "font": FONT,
        "padding": 4 if for_page else 14,
        "view": {"stroke": None},
        "axis": {
            **text,
            "titleFontSize": 11.5,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelPadding": 6,
            "gridColor": ink["grid"],
            "domain": False,
            "ticks": False,
        },
        "axisX": {
            "grid": False,
            "domain": True,
            "domainColor": ink["axis"],
            "ticks": True,
            "tickColor": ink["axis"],
            "tickSize": 4,
        },
        "header": {**text, "labelFontSize": 13, "labelFontWeight": 600, "labelColor": ink["ink"]},
        "title": {
            "font": FONT,
            "subtitleFont": FONT,
            "fontSize": 14,
            "fontWeight": 600,
            "color": ink["ink"],
            "subtitleColor": ink["soft"],
            "subtitleFontSize": 11.5,
            "subtitlePadding": 4,
            "anchor": "start",
            "offset": 12,
        },
        "legend": {
            "disable": True
        },  # keys are drawn by hand: with dashes and shapes together, and never cut short
        "text": {"font": FONT, "fontSize": 11.5},
    }


def params(mode: str) -> list[dict[str, Any]]:
    """Signals that every chart may use: the inks of the theme, and the line that the reader points at in the key ("" for none)."""
    return [{"name": "theme", "value": INKS[mode]}, {"name": "highlight", "value": ""}]


def ink(kind: str) -> dict[str, str]:
    """The colour of a mark that is neither a model nor an axis: ``ink``, ``soft``, ``axis`` or ``paper``."""
    return {"expr": f"theme.{kind}"}
