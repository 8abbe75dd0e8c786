"""The chart of any sweep: a metric against depth with bands, or as bars where depths are equal."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from eamp.optional import extra
from eamp.report.axes import depth_axis, linear_axis
from eamp.report.colours import Look, looks
from eamp.report.encodings import model_chart, shape, tooltips
from eamp.report.figure import Chart, Figure, Panel
from eamp.report.number_format import format_mean, format_value
from eamp.report.theme import ink

with extra("report"):
    import altair as alt

LABEL = "datum.value ? replace(format(datum.value, '.1f'), /^0/, '') : '0'"
BAR = 26  # pixels of height per network
BAR_END = 1.2  # of the axis of bars, which leaves space for the numbers beside them
BANDS = "Bands: one sample standard deviation to both sides of the mean."


def depth_chart(
    means: pd.DataFrame,
    reading: str,
    *,
    key: str = "accuracy",
    title: str = "Accuracy against depth",
    caption: str = "",
    titles: Mapping[str, str] | None = None,
    shares: bool = True,
) -> Figure:
    """Draw means against depth, a panel per dataset; networks of one depth become bars.

    Args:
        means: the frame of :func:`eamp.report.means.means_of`.
        reading: the name of the reading, for axes and tooltips.
        key: the name of the figure's files.
        title: its heading.
        caption: text below it, before the words on the bands.
        titles: headings of datasets that are not their names.
        shares: whether the values lie between 0 and 1, as accuracies do; errors may be larger.

    Example:
        >>> row = {"data": "cora", "name": "GCN", "runs": 1, "deviation": float("nan")}
        >>> rows = [{**row, "depth": 2, "mean": 0.81}, {**row, "depth": 8, "mean": 0.6}]
        >>> depth_chart(pd.DataFrame(rows), "test accuracy").panels[0].heading
        'cora'
    """
    written = format_mean if shares else format_value
    means = means[np.isfinite(means["mean"])]
    if means.empty:
        return Figure(key, title, "No network has a finite value.", (), {}, 1)
    shown = means.assign(
        low=(means["mean"] - means["deviation"]).clip(lower=0),
        high=(means["mean"] + means["deviation"]).clip(upper=1 if shares else None),
        value=[written(*pair) for pair in zip(means["mean"], means["deviation"], strict=True)],
    )
    legend = looks(shown["name"])
    lines = shown["depth"].nunique() > 1
    ends = axis_ends(shown) if lines else (0.0, BAR_END)
    if not shares:
        highest = float(pd.concat([shown["mean"], shown["high"]]).max())
        ends = (0.0, (1.05 if lines else BAR_END) * highest or 1.0)
    panels = []
    for data, part in shown.groupby("data", sort=False):
        heading = (titles or {}).get(str(data), str(data))
        if lines:
            chart, height = line_chart(part, reading, ends, legend, shares), 360
        else:
            chart, height = bar_chart(part, reading, ends, legend, shares), BAR * len(part) + 10
        panels.append(Panel(heading, chart, height=height))
    spread = BANDS if lines else BANDS.replace("Bands", "Thin lines")
    caption = f"{caption} {spread if shown['deviation'].notna().any() else ''}".strip()
    return Figure(key, title, caption, tuple(panels), legend if lines else {}, 1)


def axis_ends(shown: pd.DataFrame) -> tuple[float, float]:
    """Return the same ends for all panels, whole tenths around every mean and band."""
    values = pd.concat([shown["mean"], shown["low"], shown["high"]]).dropna()
    low, high = math.floor(10 * values.min()), math.ceil(10 * values.max())
    return max(low, 0) / 10, min(max(high, low + 1), 10) / 10


def value_axis(
    channel: type[alt.X] | type[alt.Y],
    field: str,
    title: str,
    ends: tuple[float, float],
    shares: bool,
) -> alt.X | alt.Y:
    """Encode a field on an axis; shares have a label at every tenth, or at every fifth."""
    if not shares:
        return linear_axis(channel, field, title, ends)
    low, high = round(10 * ends[0]), round(10 * ends[1])
    values = [k / 10 for k in range(low, min(high, 10) + 1) if high - low <= 6 or k % 2 == 0]
    return linear_axis(channel, field, title, ends, values=values, labelExpr=LABEL)


def line_chart(
    part: pd.DataFrame,
    reading: str,
    ends: tuple[float, float],
    legend: dict[str, Look],
    shares: bool,
) -> Chart:
    """Draw a line with points and a band per network."""
    x: alt.X | alt.Y = depth_axis(part["depth"].clip(lower=1))
    if part["depth"].min() < 1:  # a logarithmic axis has no place for 0
        x = linear_axis(alt.X, "depth", "layers", (0, part["depth"].max()), format="d")
    y = value_axis(alt.Y, "mean", reading, ends, shares)
    titles = {"name:N": "network", "depth:Q": "layers", "value:N": reading, "runs:Q": "runs"}
    base = model_chart(part, legend, x=x, y=y)
    points = base.mark_point(filled=True, size=62, opacity=1, strokeDash=[1, 0])
    points = points.encode(shape=shape(legend), tooltip=tooltips(titles))
    layers = [base.mark_line(strokeWidth=2.2), points]
    if part["deviation"].notna().any():
        low = value_axis(alt.Y, "low", reading, ends, shares)
        band = model_chart(part, legend, dashes=False, x=x, y=low, y2="high:Q")
        layers.insert(0, band.mark_area(fillOpacity=0.14, strokeOpacity=0))
    return alt.layer(*layers)


def bar_chart(
    part: pd.DataFrame,
    reading: str,
    ends: tuple[float, float],
    legend: dict[str, Look],
    shares: bool,
) -> Chart:
    """Draw a bar per network, with its mean beside it."""
    names = alt.Y("name:N", sort=list(legend), title=None, axis=alt.Axis(labelLimit=240))
    titles = {"name:N": "network", "depth:Q": "layers", "value:N": reading, "runs:Q": "runs"}
    x = value_axis(alt.X, "mean", reading, ends, shares)
    base = model_chart(part, legend, dashes=False, x=x, y=names)
    bars = base.mark_bar(height=14, fillOpacity=0.8).encode(tooltip=tooltips(titles))
    spread = alt.Chart(part).transform_filter("isValid(datum.low)").mark_rule(color=ink("ink"))
    spread = spread.encode(x=value_axis(alt.X, "low", reading, ends, shares), x2="high:Q", y=names)
    words = alt.Chart(part).mark_text(align="left", dx=8, color=ink("ink"))
    far = alt.X("end:Q", scale=alt.Scale(domain=list(ends), nice=False))
    words = words.transform_calculate(end="isValid(datum.high) ? datum.high : datum.mean")
    return alt.layer(bars, spread, words.encode(x=far, y=names, text="value:N"))
