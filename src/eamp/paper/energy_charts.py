"""Energy against depth: untrained networks (Figure 2), λ's threshold, and the layers of trained ones (Figure 3)."""

from __future__ import annotations

from dataclasses import replace

import altair as alt
import pandas as pd

from eamp.paper.comparison import data_order, deepest, in_order, is_variant, title
from eamp.paper.published import ENTROPIC_SETTINGS, FIGURE_3_DATA, FIGURE_3_DEPTH, FIGURE_3_LOWEST
from eamp.report import number_format as numbers
from eamp.report.colours import PUSH, Look, family, looks
from eamp.report.figure import Chart, Figure, Panel
from eamp.report.log_axis import (
    OPACITY,
    Decades,
    around,
    depth_axis,
    finite,
    model_encodings,
    shape,
)
from eamp.report.theme import ink

ENERGY = "mean Dirichlet energy"
SHADES = (PUSH, "#6c9fd0", "#41698c", "#8496a8", "#5b7f8f")
# Where networks lose their energy by many decades, those that keep it are shown again on their own.
CLOSE_UP, CLOSE_UP_BELOW = 1e-4, -6
# Basic GCN lies widest and lowest, so that a line on top of it does not hide it.
STROKES = (("thin", 1.2, 22), ("wide", 4.4, 105), ("strong", 2.4, 46))
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down")


def over_seeds(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Mean, lowest and highest energy over seeds, and the three in words."""
    spread = {
        "energy": ("energy", "mean"),
        "low": ("energy", "min"),
        "high": ("energy", "max"),
        "seeds": ("seed", "nunique"),
    }
    means = finite(frame).groupby(keys, as_index=False, sort=False).agg(**spread)
    means["value"] = means["energy"].map(numbers.energy)
    means["range"] = [
        f"{numbers.energy(low)} to {numbers.energy(high)}"
        for low, high in zip(means["low"], means["high"], strict=True)
    ]
    return means


def figure_2(depth_energies: pd.DataFrame) -> Figure | None:
    """Untrained networks on the grid, both axes logarithmic; the paper's networks in strong lines."""
    means = over_seeds(depth_energies.rename(columns={"network": "name"}), ["name", "depth"])
    if means.empty:
        return None
    legend = looks(means["name"])
    decades = Decades(means["energy"].tolist())
    panels = [Panel("", depth_chart(means, decades, legend), width=500, height=380)]
    upper = means[means["energy"] >= CLOSE_UP]
    if decades.low < CLOSE_UP_BELOW and not upper.empty:
        heading = "Close-up: energies of 10⁻⁴ and more"
        panels = [replace(panels[0], heading="All energies")]
        panels.append(
            Panel(
                heading,
                depth_chart(upper, Decades(upper["energy"].tolist()), legend),
                width=500,
                height=380,
            )
        )
    caption = (
        "Untrained networks on a 10 × 10 grid, a fresh one per depth; energy of what reaches the output layer. "
        "Strong lines: the paper's models."
    )
    if decades.has_zeros:
        caption += " A logarithmic axis has no place for 0: energies that are exactly 0 stand in the lane below it."
    return Figure("figure_2", "Energy against depth, untrained", caption, tuple(panels), legend)


def depth_chart(means: pd.DataFrame, decades: Decades, legend: dict[str, Look]) -> Chart:
    """One panel of Figure 2."""
    means = means.assign(shown=means["energy"].map(decades.place))
    x = depth_axis(means["depth"], base=10)
    tooltip = [
        alt.Tooltip("name:N", title="network"),
        alt.Tooltip("depth:Q", title="layers"),
        alt.Tooltip("value:N", title=ENERGY),
    ]
    layers = decades.lane(ENERGY)
    for weight, width, size in STROKES:
        part = means[[stroke(name, legend) == weight for name in means["name"]]]
        if part.empty:
            continue
        base = alt.Chart(part).encode(
            x=x, y=decades.axis("shown", ENERGY), opacity=OPACITY, **model_encodings(legend)
        )
        points = base.mark_point(filled=True, size=size, strokeDash=[1, 0], opacity=1)
        layers += [
            base.mark_line(strokeWidth=width),
            points.encode(shape=shape(legend), tooltip=[*tooltip, *seed_range(means)]),
        ]
    return alt.layer(*layers)


def stroke(name: str, legend: dict[str, Look]) -> str:
    """Which of the strokes a network of Figure 2 is drawn with."""
    if family(name) == "Basic GCN":
        return "wide"
    return "strong" if legend[name].prominent else "thin"


def seed_range(means: pd.DataFrame) -> list[alt.Tooltip]:
    """Lowest and highest of the seeds, where there are several."""
    return (
        [alt.Tooltip("range:N", title="over seeds"), alt.Tooltip("seeds:Q", title="seeds")]
        if means["seeds"].max() > 1
        else []
    )


def figure_3(layer_energies: pd.DataFrame) -> Figure | None:
    """The U-curves, a panel per dataset and depth, with the paper's landmarks where it gave them."""
    trained = deepest(layer_energies)
    trained = trained[~trained["name"].map(is_variant).astype(bool)]
    means = over_seeds(trained, ["data", "name", "depth", "layer"])
    if means.empty:
        return None
    legend = looks(in_order(means["name"]))
    panels = []
    for data in data_order(means["data"]):
        for depth, part in means[means["data"] == data].groupby("depth"):
            panels.append(
                Panel(f"{title(data)}, {depth} layers", u_chart(part, data, int(depth), legend))
            )
    when = ", after their last epoch" if "selected_energy" in layer_energies.columns else ""
    caption = f"Energy after every layer of the deepest trained networks{when}; logarithmic."
    if means["seeds"].max() > 1:
        caption += " Bands span the seeds."
    if any(
        data == FIGURE_3_DATA and depth == FIGURE_3_DEPTH
        for data, depth in zip(means["data"], means["depth"], strict=True)
    ):
        caption += " Thin dashed lines: the lowest energies that the paper gives."
    if (means["energy"] == 0).any():
        caption += " Energies that are exactly 0 stand in the lane below the axis."
    return Figure("figure_3", "Energy layer by layer, trained", caption, tuple(panels), legend)


def u_chart(part: pd.DataFrame, data: str, depth: int, legend: dict[str, Look]) -> Chart:
    """One panel of Figure 3."""
    here = set(part["name"])
    landmarks = (
        {name: FIGURE_3_LOWEST[name] for name in here if name in FIGURE_3_LOWEST}
        if (data, depth) == (FIGURE_3_DATA, FIGURE_3_DEPTH)
        else {}
    )
    decades = Decades([*part["energy"], *part["low"], *landmarks.values()])
    part = part.assign(
        shown=part["energy"].map(decades.place),
        bottom=part["low"].map(decades.place),
        top=part["high"].map(decades.place),
    )
    last = int(part["layer"].max())
    x = alt.X(
        "layer:Q",
        title="layer",
        scale=alt.Scale(domain=[1, max(last, 2)], nice=False),
        axis=alt.Axis(tickCount=8, tickMinStep=1, format="d"),
    )
    base = alt.Chart(part).encode(x=x, opacity=OPACITY, **model_encodings(legend))
    tooltip = [
        alt.Tooltip("name:N", title="model"),
        alt.Tooltip("layer:Q", title="layer"),
        alt.Tooltip("value:N", title=ENERGY),
        *seed_range(part),
    ]
    layers = decades.lane(ENERGY)
    if landmarks:
        published = pd.DataFrame({"name": list(landmarks), "shown": list(landmarks.values())})
        rules = alt.Chart(published).encode(
            y=decades.axis("shown", ENERGY),
            opacity=OPACITY,
            **model_encodings(legend, dashes=False),
        )
        layers += [
            rules.mark_rule(strokeDash=[3, 4], strokeWidth=1.1).encode(
                tooltip=["name:N", alt.Tooltip("shown:Q", title="paper's lowest")]
            )
        ]
    if part["seeds"].max() > 1:
        bands = alt.Chart(part).mark_area(fillOpacity=0.14, strokeOpacity=0)
        encodings = model_encodings(legend, dashes=False)
        layers += [
            bands.encode(
                x=x, y=decades.axis("bottom", ENERGY), y2="top:Q", opacity=OPACITY, **encodings
            )
        ]
    layers += [base.mark_line(strokeWidth=2.2).encode(y=decades.axis("shown", ENERGY))]
    # Invisible but wide, so that a finger finds them.
    targets = base.mark_point(filled=True, size=90, fillOpacity=0, strokeOpacity=0).encode(
        y=decades.axis("shown", ENERGY), tooltip=tooltip
    )
    return alt.layer(*layers, targets)


def thresholds(found: pd.DataFrame) -> Figure | None:
    """Measured thresholds as points on the predicted lines, between the two λ that the paper chose."""
    if found.empty:
        return None
    graphs = list(dict.fromkeys(found["graph"]))
    legend = {
        g: Look(SHADES[k % len(SHADES)], SHAPES[k % len(SHAPES)], (1, 0), True)
        for k, g in enumerate(graphs)
    }
    named = found.rename(columns={"graph": "name"})
    widths = sorted({int(width) for width in found["width"]})
    x = alt.X(
        "width:Q",
        title="width of the layers",
        scale=around(widths, base=2),
        axis=alt.Axis(values=widths, format="d"),
    )
    scale = alt.Scale(type="log", domain=[0.8, 12], nice=False)
    axis = alt.Axis(values=[1, 2, 3, 4, 5, 6, 8, 10], format="d", titleAngle=0)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title="λ", scale=scale, axis=axis)

    base = alt.Chart(named).encode(x=x, opacity=OPACITY, **model_encodings(legend, dashes=False))
    tooltip = [alt.Tooltip("name:N", title="graph"), "width:Q"] + [
        alt.Tooltip(f"{c}:Q", title=f"λ, {c}", format=".2f") for c in ("measured", "predicted")
    ]
    chosen = pd.DataFrame(
        [
            {"weight": weight, "words": f"λ = {weight:g}: the paper's choice for {title(data)}"}
            for data, (weight, _) in ENTROPIC_SETTINGS.items()
        ]
    )
    marks = alt.Chart(chosen).encode(y=y("weight"))
    # A line through one width would have no length.
    predicted = (
        base.mark_line(strokeDash=[5, 3], strokeWidth=1.6)
        if len(widths) > 1
        else base.mark_tick(orient="horizontal", width=26)
    )
    chart = alt.layer(
        marks.mark_rule(color=ink("axis"), strokeWidth=1.2),
        marks.mark_text(color=ink("soft"), align="left", baseline="bottom", dx=4, dy=-4).encode(
            x=alt.value(0), text="words:N"
        ),
        predicted.encode(y=y("predicted")),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            y=y("measured"), shape=shape(legend), tooltip=tooltip
        ),
    )
    caption = (
        "λ above which the entropy step wins over a layer's own contraction, so that an untrained ReLU GCN of 100 layers keeps its energy. "
        "Points: measured; dashes: predicted from the graph's spectrum alone."
    )
    return Figure(
        "thresholds",
        "The threshold of λ",
        caption,
        (Panel("", chart, width=520, height=320),),
        legend,
        columns=1,
    )
