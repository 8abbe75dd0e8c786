"""Measures against depth, as small charts side by side. Colours are few and neutral, so that a page can restyle them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import altair as alt
import pandas as pd

from eamp.diagnostics.rendering import WHICH_LAYER, logarithmic

WIDTH, HEIGHT, COLUMNS = 230, 130, 3
MARK_COLOUR = "#b3261e"
# Labels of one width, so that charts below each other line up.
QUIET: dict[str, Any] = {
    "gridOpacity": 0.4,
    "domain": False,
    "ticks": False,
    "minExtent": 30,
    "maxExtent": 30,
}
POINTS_UP_TO = 32  # layers; beyond, points merge into the line

# What each chart says above itself. Measures of one's own go by their name.
TITLES = {
    "energy": "Energy (paper)",
    "relative_energy": "Relative energy, scale-free",
    "rayleigh_quotient": "Rayleigh quotient, scale-free",
    "rusch_energy": "Energy (Rusch)",
    "laplacian_energy": "Energy (Cai & Wang)",
    "entropy": "Entropy",
    "mad": "MAD: neighbours",
    "mad_gap": "MADGap: remote − neighbours",
    "norm": "Norm (root mean square)",
    "effective_rank": "Effective rank",
    "numerical_rank": "Numerical rank",
    "dead_units": "Dead units",
    "dead_inputs": "Dead units at the input",
    "group_distance_ratio": "Class separation",
    "gradient": "Gradient norm",
}
# What is drawn when nothing is asked for: the other energies follow these, and stay in the table.
SHOWN = (
    "energy",
    "relative_energy",
    "rayleigh_quotient",
    "norm",
    "effective_rank",
    "mad",
    "mad_gap",
    "entropy",
    "dead_inputs",
    "group_distance_ratio",
    "gradient",
)


def depth_charts(
    table: pd.DataFrame, measures: Iterable[str] | None = None, mark: int | None = None
) -> alt.ConcatChart:
    """One chart per measure, layers from left to right; a rule at layer ``mark``."""
    available = [
        name for name in table.columns if name not in WHICH_LAYER and table[name].notna().any()
    ]
    if measures is None:
        own = [name for name in available if name not in TITLES]
        chosen = [name for name in SHOWN if name in available] + own or available
    else:
        chosen = list(measures)
        if missing := [name for name in chosen if name not in table.columns]:
            raise ValueError(
                f"the table has no {', '.join(missing)}; it has {', '.join(available)}."
            )
    charts = [depth_chart(table, name, mark) for name in chosen]
    return alt.concat(*charts, columns=min(COLUMNS, len(charts)), spacing=18).configure_view(
        strokeWidth=0
    )


def depth_chart(
    table: pd.DataFrame, measure: str, mark: int | None = None
) -> alt.LayerChart | alt.FacetChart:
    """One measure against depth, on a logarithmic axis where it spans decades; a line per forward pass."""
    several = "forward" in table.columns and table["forward"].nunique() > 1
    columns = [
        name for name in ("forward", "layer", "name", "type", measure) if name in table.columns
    ]
    data = table[columns].dropna(subset=[measure])
    log = logarithmic(data[measure].tolist())
    if log:
        data = data[data[measure] > 0]  # a logarithm has no place for zero: the line ends there
    depth = int(table["layer"].max())
    title = alt.Title(
        TITLES.get(measure, measure), anchor="start", fontSize=12, fontWeight="normal"
    )
    line = (
        alt.Chart(data, title=title, width=WIDTH, height=HEIGHT)
        .mark_line(
            strokeWidth=1.8,
            point=alt.OverlayMarkDef(size=22) if depth <= POINTS_UP_TO and not several else False,
        )
        .encode(
            x=layer_axis(depth),
            y=decades_axis(measure, data[measure]) if log else linear_axis(measure),
            tooltip=[
                alt.Tooltip(name, format=".3g") if name == measure else alt.Tooltip(name)
                for name in columns
            ],
        )
    )
    if several:
        legend = alt.Legend(gradientLength=90, tickMinStep=1, format="d")
        line = line.encode(
            color=alt.Color(
                "forward:Q", title="pass", scale=alt.Scale(scheme="viridis"), legend=legend
            ),
            detail="forward:N",
        )
    if mark is None:
        return alt.layer(line)
    rule = (
        alt.Chart(pd.DataFrame({"layer": [mark]}))
        .mark_rule(strokeDash=[4, 3], color=MARK_COLOUR, strokeWidth=1.2)
        .encode(x=layer_axis(depth))
    )
    return alt.layer(rule, line)


def layer_axis(depth: int) -> alt.X:
    """Whole layers, from the first to the last."""
    scale = alt.Scale(domain=[1, max(depth, 2)], nice=False)
    return alt.X(
        "layer:Q",
        title="layer",
        scale=scale,
        axis=alt.Axis(tickCount=min(depth, 6), tickMinStep=1, format="d", grid=False),
    )


def linear_axis(measure: str) -> alt.Y:
    """From zero, which every measure has a meaning for."""
    return alt.Y(
        f"{measure}:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4, **QUIET)
    )


def decades_axis(measure: str, values: Iterable[float]) -> alt.Y:
    """Whole powers of ten, a handful of which are marked."""
    exponents = [math.log10(value) for value in values if math.isfinite(value)]
    low, high = math.floor(min(exponents)), math.ceil(max(exponents))
    step = max(1, math.ceil((high - low) / 5))
    ticks = [10.0**k for k in range(low, high + 1) if k % step == 0]
    label = "datum.value == 1 ? '1' : replace(format(datum.value, '.0e'), '+', '')"
    scale = alt.Scale(type="log", domain=[10.0**low, 10.0**high], nice=False)
    return alt.Y(
        f"{measure}:Q",
        title=None,
        scale=scale,
        axis=alt.Axis(values=ticks, labelExpr=label, **QUIET),
    )
