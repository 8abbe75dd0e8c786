"""Charts of energy: untrained networks by depth (Figure 2), the threshold of λ, and Figure 3."""

import pandas as pd

from eamp.optional import extra
from eamp.paper.energy_statistics import deepest
from eamp.paper.naming import data_order, in_order, title, without_variants
from eamp.paper.published import ENTROPIC_SETTINGS, MODELS, lowest_energies
from eamp.report.axes import LogAxis, depth_axis, finite, linear_axis, log_scale
from eamp.report.colours import SHADES, Look, family, looks
from eamp.report.encodings import model_chart, shape, tooltips
from eamp.report.figure import Chart, Figure, Panel
from eamp.report.number_format import format_energy
from eamp.report.theme import ink

with extra("report"):
    import altair as alt

ENERGY = "mean Dirichlet energy"
# If energies reach below 10⁻⁶, a second panel of Figure 2 shows those of 10⁻⁴ and more.
CLOSE_UP, CLOSE_UP_BELOW = 1e-4, -6
MOST_LINES = 8  # that a reader can tell apart at once
# Width of the line and size of the markers. Basic GCN is drawn widest and below the paper's other
# models, so that they do not hide it.
STROKES = {"thin": (1.2, 22), "wide": (4.4, 105), "strong": (2.4, 46)}
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down")


def over_seeds(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return mean, lowest and highest energy over the seeds, as numbers and as text."""
    spread = {"energy": ("energy", "mean"), "low": ("energy", "min"), "high": ("energy", "max")}
    groups = finite(frame).groupby(keys, as_index=False, sort=False)
    means = groups.agg(**spread, seeds=("seed", "nunique"))
    means["value"] = means["energy"].map(format_energy)
    ends = zip(means["low"], means["high"], strict=True)
    means["range"] = [f"{format_energy(low)} to {format_energy(high)}" for low, high in ends]
    return means


def energy_tooltips(means: pd.DataFrame, titles: dict[str, str]) -> list[alt.Tooltip]:
    """Return tooltips of the energy, and of its range if there are several seeds."""
    several = {"range:N": "over seeds", "seeds:Q": "seeds"} if means["seeds"].max() > 1 else {}
    return tooltips({**titles, "value:N": ENERGY, **several})


def figure_2(depth_energies: pd.DataFrame) -> Figure | None:
    """Draw the energies of untrained networks by depth, the paper's models in strong lines."""
    means = over_seeds(depth_energies.rename(columns={"network": "name"}), ["name", "depth"])
    if means.empty:
        return None
    legend = looks(means["name"])
    axis = LogAxis(means["energy"], ENERGY)
    upper = means[means["energy"] >= CLOSE_UP]
    shown = {"": (means, axis)}
    if axis.low < CLOSE_UP_BELOW and not upper.empty:
        close_up = (upper, LogAxis(upper["energy"], ENERGY))
        shown = {"All energies": (means, axis), "Close-up: energies of 10⁻⁴ and more": close_up}
    panels = tuple(
        Panel(heading, depth_chart(*part, legend), width=500, height=380)
        for heading, part in shown.items()
    )
    caption = (
        "Untrained networks on a 10 × 10 grid, a fresh one per depth; energy of the input of the "
        "output layer. Strong lines: the paper's models."
    )
    if axis.has_zeros:
        caption += (
            " A logarithmic axis has no place for 0: "
            "energies that are exactly 0 stand in the lane below it."
        )
    # Of many lines, the page shows the paper's first; the reader picks others in the legend.
    papers = tuple(name for name in legend if family(name) in MODELS)
    picked = papers if len(legend) > MOST_LINES else ()
    heading = "Energy against depth, untrained"
    return Figure("figure_2", heading, caption, panels, legend, picked=picked)


def depth_chart(means: pd.DataFrame, axis: LogAxis, legend: dict[str, Look]) -> Chart:
    """Draw one panel of Figure 2."""
    means = means.assign(shown=means["energy"].map(axis.place))
    x, y = depth_axis(means["depth"], base=10), axis.y("shown")
    tooltip = energy_tooltips(means, {"name:N": "network", "depth:Q": "layers"})
    layers = axis.lane()
    for kind, (width, size) in STROKES.items():
        part = means[means["name"].map(stroke).eq(kind)]
        if part.empty:
            continue
        base = model_chart(part, legend, x=x, y=y)
        points = base.mark_point(filled=True, size=size, strokeDash=[1, 0], opacity=1)
        points = points.encode(shape=shape(legend), tooltip=tooltip)
        layers += [base.mark_line(strokeWidth=width), points]
    return alt.layer(*layers)


def stroke(name: str) -> str:
    """Return the kind of line that Figure 2 draws a network with."""
    if family(name) == "Basic GCN":
        return "wide"
    return "strong" if family(name) in MODELS else "thin"


def figure_3(layer_energies: pd.DataFrame) -> Figure | None:
    """Draw the energy by layer of the deepest networks, a panel per dataset and depth."""
    trained = without_variants(deepest(layer_energies))
    means = over_seeds(trained, ["data", "name", "depth", "layer"])
    if means.empty:
        return None
    legend = looks(in_order(means["name"]))
    panels, landmarks = [], False
    for data in data_order(means["data"]):
        for depth, part in means[means["data"] == data].groupby("depth"):
            lowest = lowest_energies(data, depth)
            landmarks |= bool(lowest)
            chart = layer_chart(part, lowest, legend)
            panels.append(Panel(f"{title(data)}, {depth} layers", chart))
    when = ", after their last epoch" if "selected_energy" in layer_energies.columns else ""
    caption = f"Energy after every layer of the deepest trained networks{when}; logarithmic."
    if means["seeds"].max() > 1:
        caption += " Bands span the seeds."
    if landmarks:
        caption += " Thin dashed lines: the lowest energies that the paper gives."
    if (means["energy"] == 0).any():
        caption += " Energies that are exactly 0 stand in the lane below the axis."
    return Figure("figure_3", "Energy layer by layer, trained", caption, tuple(panels), legend)


def layer_chart(part: pd.DataFrame, lowest: dict[str, float], legend: dict[str, Look]) -> Chart:
    """Draw one panel of Figure 3, with the paper's ``lowest`` energies of the models in it."""
    lowest = {name: energy for name, energy in lowest.items() if name in set(part["name"])}
    axis = LogAxis([*part["energy"], *part["low"], *lowest.values()], ENERGY)
    columns = {"shown": "energy", "bottom": "low", "top": "high"}
    part = part.assign(**{new: part[old].map(axis.place) for new, old in columns.items()})
    ends = (1, max(int(part["layer"].max()), 2))
    x = linear_axis(alt.X, "layer", "layer", ends, tickCount=8, tickMinStep=1, format="d")
    layers = axis.lane()
    if lowest:
        published = pd.DataFrame({"name": list(lowest), "shown": list(lowest.values())})
        rules = model_chart(published, legend, dashes=False, y=axis.y("shown"))
        tooltip = tooltips({"name:N": "name", "shown:Q": "paper's lowest"})
        layers.append(rules.mark_rule(strokeDash=[3, 4], strokeWidth=1.1).encode(tooltip=tooltip))
    if part["seeds"].max() > 1:
        bands = model_chart(part, legend, dashes=False, x=x, y=axis.y("bottom"), y2="top:Q")
        layers.append(bands.mark_area(fillOpacity=0.14, strokeOpacity=0))
    base = model_chart(part, legend, x=x, y=axis.y("shown"))
    # Invisible points that are wide enough for a finger on a touch screen.
    targets = base.mark_point(filled=True, size=90, fillOpacity=0, strokeOpacity=0)
    tooltip = energy_tooltips(part, {"name:N": "model", "layer:Q": "layer"})
    return alt.layer(*layers, base.mark_line(strokeWidth=2.2), targets.encode(tooltip=tooltip))


def thresholds(found: pd.DataFrame) -> Figure | None:
    """Draw measured thresholds as points on the predicted lines, with the paper's two choices."""
    if found.empty:
        return None
    legend = {
        graph: Look(SHADES[k % len(SHADES)], SHAPES[k % len(SHAPES)])
        for k, graph in enumerate(dict.fromkeys(found["graph"]))
    }
    widths = sorted({int(width) for width in found["width"]})
    marks = alt.Axis(values=widths, format="d")
    x = alt.X("width:Q", title="width of the layers", scale=log_scale(widths, 2), axis=marks)

    def y(field: str) -> alt.Y:
        axis = alt.Axis(values=[1, 2, 3, 4, 5, 6, 8, 10], format="d", titleAngle=0)
        scale = alt.Scale(type="log", domain=[0.8, 12], nice=False)
        return alt.Y(f"{field}:Q", title="λ", scale=scale, axis=axis)

    base = model_chart(found.rename(columns={"graph": "name"}), legend, dashes=False, x=x)
    tooltip = tooltips({"name:N": "graph", "width:Q": "width"})
    tooltip += tooltips({"measured:Q": "λ, measured", "predicted:Q": "λ, predicted"}, format=".2f")
    chosen = [
        {"weight": weight, "words": f"λ = {weight:g}: the paper's choice for {title(data)}"}
        for data, (weight, _) in ENTROPIC_SETTINGS.items()
    ]
    papers = alt.Chart(pd.DataFrame(chosen)).encode(y=y("weight"))
    words = papers.mark_text(color=ink("soft"), align="left", baseline="bottom", dx=4, dy=-4)
    # A line through one width would have no length.
    predicted = (
        base.mark_line(strokeDash=[5, 3], strokeWidth=1.6)
        if len(widths) > 1
        else base.mark_tick(orient="horizontal", width=26)
    )
    measured = base.mark_point(filled=True, size=70, opacity=1)
    chart = alt.layer(
        papers.mark_rule(color=ink("axis"), strokeWidth=1.2),
        words.encode(x=alt.value(0), text="words:N"),
        predicted.encode(y=y("predicted")),
        measured.encode(y=y("measured"), shape=shape(legend), tooltip=tooltip),
    )
    caption = (
        "λ above which the entropy step wins over a layer's own contraction, so that an untrained "
        "ReLU GCN of 100 layers keeps its energy. "
        "Points: measured; dashes: predicted from the graph's spectrum alone."
    )
    panels = (Panel("", chart, width=520),)
    return Figure("thresholds", "The threshold of λ", caption, panels, legend, columns=1)
