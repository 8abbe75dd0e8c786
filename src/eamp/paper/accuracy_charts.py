"""Accuracy against depth: Table 1 as lines beside the paper's, and the variants beside their parents."""

from __future__ import annotations

import altair as alt
import pandas as pd

from eamp.paper.comparison import PAPER_READING, TEST_READING, in_order, summarised, title
from eamp.report import number_format as numbers
from eamp.report.colours import Look, family, looks
from eamp.report.figure import Figure, Panel
from eamp.report.log_axis import OPACITY, depth_axis, model_encodings, shape
from eamp.paper.tables import main_rows
from eamp.report.theme import ink

ACCURACY_LABEL = "replace(format(datum.value, '.1f'), '0.', '.')"


def table_1(cells: pd.DataFrame) -> Figure | None:
    """Ours filled and solid, the paper's hollow and dashed; a panel per dataset."""
    summary = main_rows(summarised(cells))
    if summary.empty:
        return None
    legend = looks(summary["name"])
    panels = []
    for data, part in summary.groupby("data", sort=False):
        layers = lines(part, legend, dashes=False)
        if part["published"].notna().any():
            layers = [*published(part, legend), *layers]
        panels.append(Panel(title(data), alt.layer(*layers)))
    caption = f"{PAPER_READING.capitalize()} over the epochs. Filled and solid: ours"
    caption += (
        ", with the sample deviation over seeds." if summary["seeds"].max() > 1 else ", one seed."
    )
    if summary["published"].notna().any():
        caption += " Hollow and dashed: the paper's Table 1."
    return Figure("table_1", "Accuracy by depth", caption, tuple(panels), legend)


def variants(cells: pd.DataFrame) -> Figure | None:
    """Each family that has variants: parent solid, variants dashed; a panel per dataset and family."""
    summary = summarised(cells)
    with_variants = summary.assign(family=summary["name"].map(family))
    with_variants = with_variants[
        with_variants.groupby(["data", "family"])["variant"].transform("any").astype(bool)
    ]
    if with_variants.empty:
        return None
    legend = looks(in_order(with_variants["name"]))
    panels = []
    for (data, parent), part in with_variants.groupby(["data", "family"], sort=False):
        panels.append(
            Panel(
                f"{title(data)}: {parent}", alt.layer(*lines(part, legend, dashes=True)), height=260
            )
        )
    caption = f"{PAPER_READING.capitalize()} over the epochs; solid: the model as in Table 1, dashed: its variants."
    return Figure("variants", "What the paper's shortcuts cost", caption, tuple(panels), legend)


def lines(part: pd.DataFrame, legend: dict[str, Look], *, dashes: bool) -> list[alt.Chart]:
    """Means, joined by depth, with their deviations."""
    shown = part.assign(
        low=part["best_val_accuracy"] - part["best_val_accuracy_deviation"],
        high=part["best_val_accuracy"] + part["best_val_accuracy_deviation"],
        ours=[
            numbers.with_deviation(*pair)
            for pair in zip(
                part["best_val_accuracy"], part["best_val_accuracy_deviation"], strict=True
            )
        ],
        test=[
            numbers.with_deviation(*pair)
            for pair in zip(part["test_accuracy"], part["test_accuracy_deviation"], strict=True)
        ],
        paper=[numbers.accuracy(value, 2) for value in part["published"]],
    )
    base = alt.Chart(shown).encode(
        x=depth_axis(part["depth"]), opacity=OPACITY, **model_encodings(legend, dashes=dashes)
    )
    y = accuracy_axis("best_val_accuracy")
    tooltip = [
        alt.Tooltip("name:N", title="model"),
        alt.Tooltip("depth:Q", title="layers"),
        alt.Tooltip("ours:N", title=PAPER_READING),
        alt.Tooltip("paper:N", title="the paper's"),
        alt.Tooltip("test:N", title=TEST_READING),
        alt.Tooltip("seeds:Q", title="seeds"),
    ]
    bars = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.4, strokeDash=[1, 0])
        .encode(y=accuracy_axis("low"), y2="high:Q")
    )
    line = base.mark_line(strokeWidth=2.2).encode(y=y)
    points = base.mark_point(filled=True, size=62, opacity=1, strokeDash=[1, 0]).encode(
        y=y, shape=shape(legend), tooltip=tooltip
    )
    return [bars, line, points] if part["seeds"].max() > 1 else [line, points]


def published(part: pd.DataFrame, legend: dict[str, Look]) -> list[alt.Chart]:
    """The paper's numbers at the depths that were run."""
    known = part[part["published"].notna()]
    base = alt.Chart(known).encode(
        x=depth_axis(part["depth"]), opacity=OPACITY, **model_encodings(legend, dashes=False)
    )
    y = accuracy_axis("published")
    tooltip = [
        alt.Tooltip("name:N", title="model"),
        alt.Tooltip("depth:Q", title="layers"),
        alt.Tooltip("published:Q", title="the paper's Table 1", format=".2f"),
    ]
    line = base.mark_line(strokeWidth=1.3, strokeDash=[4, 3]).encode(y=y)
    points = base.mark_point(fill=ink("paper"), filled=False, size=58, strokeWidth=1.5).encode(
        y=y, shape=shape(legend), tooltip=tooltip
    )
    return [line, points]


def accuracy_axis(field: str) -> alt.Y:
    """The whole range, so that panels can be compared."""
    axis = alt.Axis(values=[k / 10 for k in range(0, 11, 2)], labelExpr=ACCURACY_LABEL)
    return alt.Y(
        f"{field}:Q", title="accuracy", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis
    )
