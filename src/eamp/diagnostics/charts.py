"""Charts of measures against depth. Colours are few and neutral, so that a page can restyle them.

Altair is slow to load, so the rest of the room imports this module only to draw.
"""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import pandas as pd

from eamp.diagnostics.rendering import LAYER_COLUMNS, logarithmic
from eamp.optional import extra

with extra("report"):
    import altair as alt
    import vl_convert

WIDTH, HEIGHT, COLUMNS = 230, 130, 3
PNG_SCALE = 1.5  # pixels of a notebook's picture per pixel of a chart
MARK_COLOUR = "#b3261e"
# Labels have a fixed width, so that charts below each other line up.
styled_axis = partial(
    alt.Axis, gridOpacity=0.4, domain=False, ticks=False, minExtent=30, maxExtent=30
)
POINTS_UP_TO = 32  # layers; with more, points merge into the line

# Titles of charts, in the order of drawing. Users' own measures have their name as the title.
TITLES = {
    "energy": "Energy (paper)",
    "relative_energy": "Relative energy, scale-free",
    "rayleigh_quotient": "Rayleigh quotient, scale-free",
    "norm": "Norm (root mean square)",
    "effective_rank": "Effective rank",
    "mad": "MAD: neighbours",
    "mad_gap": "MADGap: remote − neighbours",
    "entropy": "Entropy",
    "dead_inputs": "Dead units at the input",
    "group_distance_ratio": "Class separation",
    "gradient": "Gradient norm",
    "rusch_energy": "Energy (Rusch)",
    "laplacian_energy": "Energy (Cai & Wang)",
    "probe_accuracy": "Linear probe: accuracy",
    "propagation_accuracy": "Plain propagation: accuracy",
    "numerical_rank": "Numerical rank",
    "rank_one_distance": "Distance from rank one",
    "matrix_rank": "Directions above tolerance",
    "column_correlation": "Correlation between units",
    "dead_units": "Dead units",
}
# Measures that are drawn on request only, because others show the same.
ON_REQUEST = (
    "rusch_energy",
    "laplacian_energy",
    "numerical_rank",
    "rank_one_distance",
    "matrix_rank",
    "column_correlation",
    "dead_units",
)
# Columns of a diagnosis about parts of layers, and about what enters and leaves them.
PREFIXES = ("input_", "after_", "weights_", "aggregation_", "between_")


class OfflineConcatChart(alt.ConcatChart):
    """Charts side by side that a notebook shows as a picture, without a network.

    Altair itself gives a notebook a page that loads Vega from elsewhere.
    """

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, bytes]:
        return {"image/png": vl_convert.vegalite_to_png(self.to_dict(), scale=PNG_SCALE)}


def depth_charts(
    table: pd.DataFrame, measures: Iterable[str] | None = None, mark: int | None = None
) -> alt.ConcatChart:
    """Return one chart per measure against depth, with a rule at layer ``mark``."""
    charts = [depth_chart(table, name, mark) for name in drawn_measures(table, measures)]
    grid = OfflineConcatChart(concat=charts, columns=min(COLUMNS, len(charts)), spacing=18)
    return grid.configure_view(strokeWidth=0)


def drawn_measures(table: pd.DataFrame, measures: Iterable[str] | None = None) -> list[str]:
    """Return the measures to draw: those asked for, or else all that have values and a use."""
    numeric = table.select_dtypes("number").dropna(axis=1, how="all").columns
    available = [name for name in numeric if name not in LAYER_COLUMNS]
    if measures is None:
        default = [name for name in TITLES if name in available and name not in ON_REQUEST]
        own = [n for n in available if n not in TITLES and not n.startswith(PREFIXES)]
        return default + own or available
    chosen = list(measures)
    if missing := [name for name in chosen if name not in table.columns]:
        raise ValueError(
            f"the table has no {', '.join(missing)}. Choose among {', '.join(available)}."
        )
    return chosen


def depth_chart(
    table: pd.DataFrame, measure: str, mark: int | None
) -> alt.LayerChart | alt.FacetChart:
    """Return a chart of one measure, with one line per forward pass or per relation."""
    several = "forward" in table.columns and table["forward"].nunique() > 1
    columns = ["forward", "layer", "name", "type", "relation", measure]
    columns = [name for name in columns if name in table.columns]
    data = table[columns].dropna(subset=[measure])
    log = logarithmic(data[measure].tolist())
    if log:
        data = data[data[measure] > 0]  # a logarithmic axis cannot show zero: the line ends there
    depth = int(table["layer"].max())
    name = TITLES.get(measure, measure)
    title = alt.Title(name, anchor="start", fontSize=12, fontWeight="normal")
    points = alt.OverlayMarkDef(size=22) if depth <= POINTS_UP_TO and not several else False
    line = alt.Chart(data, title=title, width=WIDTH, height=HEIGHT)
    line = line.mark_line(strokeWidth=1.8, point=points).encode(
        x=layer_axis(depth),
        y=value_axis(measure, data[measure], log),
        tooltip=[alt.Tooltip(c, format=".3g") if c == measure else alt.Tooltip(c) for c in columns],
    )
    if several:
        legend = alt.Legend(gradientLength=90, tickMinStep=1, format="d")
        colours = alt.Scale(scheme="viridis")
        colour = alt.Color("forward:Q", title="pass", scale=colours, legend=legend)
        line = line.encode(color=colour, detail="forward:N")
    elif "relation" in table.columns:
        line = line.encode(color=alt.Color("relation:N", title="relation"))
    if mark is None:
        return alt.layer(line)
    rule = alt.Chart(pd.DataFrame({"layer": [mark]})).encode(x=layer_axis(depth))
    dashed = rule.mark_rule(strokeDash=[4, 3], color=MARK_COLOUR, strokeWidth=1.2)
    return alt.layer(dashed, line)


def layer_axis(depth: int) -> alt.X:
    """Return an axis of whole layers, from the first to the last."""
    scale = alt.Scale(domain=[1, max(depth, 2)], nice=False)
    axis = alt.Axis(tickCount=min(depth, 6), tickMinStep=1, format="d", grid=False)
    return alt.X("layer:Q", title="layer", scale=scale, axis=axis)


def value_axis(measure: str, values: Iterable[float], log: bool) -> alt.Y:
    """Return a linear axis from zero, or a logarithmic one of whole decades."""
    if log:
        exponents = [math.log10(value) for value in values if math.isfinite(value)]
        low, high = math.floor(min(exponents)), math.ceil(max(exponents))
        step = max(1, math.ceil((high - low) / 5))  # at most six labels
        ticks = [10.0**k for k in range(low, high + 1) if k % step == 0]
        label = "datum.value == 1 ? '1' : replace(format(datum.value, '.0e'), '+', '')"
        scale = alt.Scale(type="log", domain=[10.0**low, 10.0**high], nice=False)
        axis = styled_axis(values=ticks, labelExpr=label)
    else:
        tiny = "abs(datum.value) > 0 && abs(datum.value) < 1e-4"
        label = f"{tiny} ? format(datum.value, '.0e') : datum.label"
        scale, axis = alt.Scale(zero=True), styled_axis(tickCount=4, labelExpr=label)
    return alt.Y(f"{measure}:Q", title=None, scale=scale, axis=axis)


def influence_chart(
    shares: Iterable[float], mean_distance: float
) -> alt.LayerChart | alt.FacetChart:
    """Return bars of the influence by distance, with a rule at the mean distance."""
    data = pd.DataFrame({"share": list(shares)}).rename_axis("distance").reset_index()
    furthest = int(data["distance"].max())
    scale = alt.Scale(domain=[-0.5, furthest + 0.5], nice=False)
    axis = alt.Axis(tickCount=min(furthest + 1, 12), tickMinStep=1, format="d", grid=False)
    base = alt.Chart(width=2 * WIDTH, height=HEIGHT)
    bars = base.mark_bar(size=min(24, 2 * WIDTH / (furthest + 1) * 0.7)).encode(
        x=alt.X("distance:Q", title="distance (edges)", scale=scale, axis=axis),
        y=alt.Y("share:Q", title="share of the influence", axis=alt.Axis(format="%", domain=False)),
        tooltip=["distance", alt.Tooltip("share", format=".1%")],
    )
    rule = base.mark_rule(strokeDash=[4, 3], color=MARK_COLOUR, strokeWidth=1.4)
    rule = rule.encode(x=alt.X("distance:Q"), tooltip=alt.Tooltip("distance", title="range R"))
    mean = pd.DataFrame({"distance": [mean_distance]})
    return alt.layer(bars.properties(data=data), rule.properties(data=mean))
