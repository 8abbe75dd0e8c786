"""Charts of accuracy by depth: Table 1 beside the paper's, and variants beside their parents."""

import pandas as pd

from eamp.optional import extra
from eamp.paper.comparison import mean_text, summarised
from eamp.paper.naming import PAPER_READING, TEST_READING, in_order, is_variant, title
from eamp.report.axes import depth_axis, linear_axis
from eamp.report.colours import Look, family, looks
from eamp.report.encodings import model_chart, shape, tooltips
from eamp.report.figure import Figure, Panel
from eamp.report.number_format import format_accuracy
from eamp.report.theme import ink

with extra("report"):
    import altair as alt

LABEL = "replace(format(datum.value, '.1f'), '0.', '.')"


def table_1(cells: pd.DataFrame) -> Figure | None:
    """Draw a panel per dataset: our lines solid and filled, the paper's dashed and hollow."""
    summary = summarised(cells)
    if summary.empty:
        return None
    legend = looks(summary["name"])
    panels = []
    for data, part in summary.groupby("data", sort=False):
        layers = [*published(part, legend), *lines(part, legend, dashes=False)]
        panels.append(Panel(title(data), alt.layer(*layers)))
    several = summary["seeds"].max() > 1
    caption = f"{PAPER_READING.capitalize()} over the epochs. Filled and solid: ours, "
    caption += "with the sample deviation over seeds." if several else "one seed."
    if summary["published"].notna().any():
        caption += " Hollow and dashed: the paper's Table 1."
    return Figure("table_1", "Accuracy by depth", caption, tuple(panels), legend)


def variants(cells: pd.DataFrame) -> Figure | None:
    """Draw a panel per dataset and family with variants: the parent solid, the variants dashed."""
    summary = summarised(cells, variants=True)
    summary["family"] = summary["name"].map(family)
    groups = ["data", "family"]
    variant = summary["name"].map(is_variant).groupby([summary[key] for key in groups])
    summary = summary[variant.transform("any").astype(bool)]
    if summary.empty:
        return None
    legend = looks(in_order(summary["name"]))
    panels = []
    for (data, parent), part in summary.groupby(groups, sort=False):
        chart = alt.layer(*lines(part, legend, dashes=True))
        panels.append(Panel(f"{title(data)}: {parent}", chart, height=260))
    caption = (
        f"{PAPER_READING.capitalize()} over the epochs; "
        "solid: the model as in Table 1, dashed: its variants."
    )
    return Figure("variants", "What the paper's shortcuts cost", caption, tuple(panels), legend)


def lines(part: pd.DataFrame, legend: dict[str, Look], *, dashes: bool) -> list[alt.Chart]:
    """Draw the means as lines and points, with bars of one deviation if there are several seeds."""
    mean, deviation = part["best_val_accuracy"], part["best_val_accuracy_deviation"]
    rows = part.to_dict("records")
    shown = part.assign(
        low=mean - deviation,
        high=mean + deviation,
        ours=[mean_text(row, "best_val_accuracy") for row in rows],
        test=[mean_text(row, "test_accuracy") for row in rows],
        paper=[format_accuracy(value, 2) for value in part["published"]],
    )
    x, y = depth_axis(part["depth"]), accuracy_axis("best_val_accuracy")
    base = model_chart(shown, legend, dashes=dashes, x=x, y=y)
    titles = {"name:N": "model", "depth:Q": "layers", "ours:N": PAPER_READING}
    titles |= {"paper:N": "the paper's", "test:N": TEST_READING, "seeds:Q": "seeds"}
    points = base.mark_point(filled=True, size=62, opacity=1, strokeDash=[1, 0])
    points = points.encode(shape=shape(legend), tooltip=tooltips(titles))
    known = base.transform_filter("isValid(datum.low)")
    bars = known.mark_rule(strokeWidth=1.4, strokeDash=[1, 0])
    bars = bars.encode(y=accuracy_axis("low"), y2="high:Q")
    several = part["seeds"].max() > 1
    return [*([bars] if several else []), base.mark_line(strokeWidth=2.2), points]


def published(part: pd.DataFrame, legend: dict[str, Look]) -> list[alt.Chart]:
    """Draw the paper's numbers at the depths that were run, or nothing if there are none."""
    known = part[part["published"].notna()]
    if known.empty:
        return []
    x, y = depth_axis(part["depth"]), accuracy_axis("published")
    base = model_chart(known, legend, dashes=False, x=x, y=y)
    tooltip = tooltips({"name:N": "model", "depth:Q": "layers"})
    tooltip += tooltips({"published:Q": "the paper's Table 1"}, format=".2f")
    points = base.mark_point(fill=ink("paper"), filled=False, size=58, strokeWidth=1.5)
    points = points.encode(shape=shape(legend), tooltip=tooltip)
    return [base.mark_line(strokeWidth=1.3, strokeDash=[4, 3]), points]


def accuracy_axis(field: str) -> alt.X | alt.Y:
    """Encode a field on an axis from 0 to 1, so that panels can be compared."""
    values = [k / 10 for k in range(0, 11, 2)]
    return linear_axis(alt.Y, field, "accuracy", (0, 1), values=values, labelExpr=LABEL)
