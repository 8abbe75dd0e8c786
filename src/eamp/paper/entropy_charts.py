"""Figure 1: the entropy gradient at one node as a sum of vectors, and −p ln p by energy."""

import math

import numpy as np
import pandas as pd
import torch

import eamp
from eamp.optional import extra
from eamp.report.axes import linear_axis
from eamp.report.colours import INK, PULL, PUSH, SHADES, Look
from eamp.report.encodings import model_chart, tooltips
from eamp.report.figure import Chart, Figure, Panel
from eamp.report.number_format import format_energy
from eamp.report.theme import ink

with extra("report"):
    import altair as alt

# Node 0 and its neighbours 1 to 4. Node 5, further away, raises the energy of node 4 above T.
POSITIONS = ((0.0, 0.0), (-0.95, -0.28), (-0.12, 1.12), (0.78, 0.72), (1.28, -0.42), (2.3, 0.55))
EDGES = ((0, 1), (0, 2), (0, 3), (0, 4), (4, 5))
# Positions of the labels with the energies, relative to their nodes.
LABELS = ((-0.3, 0.14), (-0.12, 0.2), (0.0, 0.2), (0.24, 0.18), (0.16, -0.2), (0.0, 0.2))
TEMPERATURE = 0.75
ARROW_SCALE = 2.5
TEMPERATURES = (1.0, 4.0, 10.0)
WINDOW = ((-1.4, 2.6), (-1.05, 1.45))
PIXELS_PER_UNIT = 125
PUSHES, PULLS, SUM = "pushes away", "pulls closer", "their sum, T∇S"


def example() -> tuple[torch.Tensor, eamp.Graph]:
    """Return the positions of six nodes in the plane, and their graph."""
    pairs = torch.tensor(EDGES).T
    graph = eamp.Graph(torch.cat([pairs, pairs.flip(0)], dim=1), len(POSITIONS))
    return torch.tensor(POSITIONS, dtype=torch.float64), graph


def neighbour_vectors() -> pd.DataFrame:
    """Return what each neighbour j adds to T∇S at node 0, which is (q_0 + q_j)(x_0 − x_j).

    Returns:
        The columns ``node``, its ``energy``, the ``weight`` q_0 + q_j, ``dx`` and ``dy``.
    """
    x, graph = example()
    energy = eamp.dirichlet_energy(x, graph)
    ratio = energy / TEMPERATURE
    # q_i = C_i p_i (1 − E_i/T), C_i = 1/sqrt(k_i F)
    q = (graph.degree * x.size(1)).rsqrt() * torch.exp(-ratio) * (1 - ratio)
    rows = []
    for j in (j for i, j in EDGES if i == 0):
        weight = float(q[0] + q[j])
        dx, dy = (weight * (x[0] - x[j])).tolist()
        rows.append({"node": j, "energy": float(energy[j]), "weight": weight, "dx": dx, "dy": dy})
    return pd.DataFrame(rows)


def total_vector() -> tuple[float, float]:
    """Return T∇S at node 0, from :func:`eamp.entropy_gradient`."""
    x, graph = example()
    dx, dy = (TEMPERATURE * eamp.entropy_gradient(x, graph, TEMPERATURE)[0]).tolist()
    return dx, dy


def gradient_error() -> float:
    """Return the relative error of the paper's formula for the gradient on this example."""
    x, graph = example()
    exact = eamp.entropy_gradient(x, graph, TEMPERATURE)
    printed = eamp.entropy_gradient(x, graph, TEMPERATURE, variant="paper")
    return float((printed - exact).norm() / exact.norm())


def figure_1a() -> Figure:
    """Draw nodes, edges, the vectors from the neighbours and their sum."""
    ends = [(*POSITIONS[i], *POSITIONS[j]) for i, j in EDGES]
    edges = alt.Chart(pd.DataFrame(ends, columns=["x", "y", "x2", "y2"]))
    edges = edges.mark_rule(color=ink("axis"), strokeWidth=1.4)
    edges = edges.encode(**place(), x2="x2:Q", y2="y2:Q")
    chart = alt.layer(edges, *arrow_layers(), *node_layers())
    (left, right), (bottom, top) = WINDOW
    width, height = round((right - left) * PIXELS_PER_UNIT), round((top - bottom) * PIXELS_PER_UNIT)
    caption = (
        f"T∇S at the middle node, computed for six nodes in the plane at T = {TEMPERATURE:g}: each "
        "neighbour adds (q_i + q_j)(x_i − x_j), which points away from it while the two energies "
        "are low, and towards it where its energy is far above T. "
        f"Arrows are drawn {ARROW_SCALE:g} times as long; filled nodes have E > T."
    )
    legend = {name: Look(colour) for name, colour in ((PUSHES, PUSH), (PULLS, PULL), (SUM, INK))}
    panels = (Panel("", chart, width, height, stretches=False),)
    return Figure("figure_1a", "The push on one node", caption, panels, legend, columns=1)


def place(x: str = "x", y: str = "y") -> dict[str, alt.X | alt.Y]:
    """Encode two fields as coordinates in the window of Figure 1a, without axes."""
    horizontal, vertical = (alt.Scale(domain=list(ends), nice=False) for ends in WINDOW)
    return {
        "x": alt.X(f"{x}:Q", scale=horizontal, axis=None),
        "y": alt.Y(f"{y}:Q", scale=vertical, axis=None),
    }


def node_layers() -> list[Chart]:
    """Draw the nodes of the example with their energies; nodes above the temperature are filled."""
    x, graph = example()
    energy = eamp.dirichlet_energy(x, graph).tolist()
    nodes = pd.DataFrame(POSITIONS, columns=["x", "y"]).assign(
        energy=energy,
        state=["E < T" if value < TEMPERATURE else "E > T" for value in energy],
        label=[f"E = {format_energy(value)}" for value in energy],
    )
    nodes[["label_x", "label_y"]] = nodes[["x", "y"]] + np.array(LABELS)
    fill = alt.condition("datum.state === 'E < T'", alt.value(ink("paper")), alt.value(ink("soft")))
    base = alt.Chart(nodes)
    circles = base.mark_circle(stroke=ink("soft"), strokeWidth=1.8, size=190, opacity=1)
    words = base.mark_text(color=ink("soft"), fontSize=15)
    tooltip = [*tooltips({"energy:Q": "energy"}, format=".2f"), *tooltips({"state:N": "state"})]
    return [
        circles.encode(**place(), fill=fill, tooltip=tooltip),
        words.encode(**place("label_x", "label_y"), text="label:N"),
    ]


def arrow_layers() -> list[Chart]:
    """Draw the sum of the vectors in the colour of the text, and above it the vectors in theirs."""
    arrows = arrow_rows(neighbour_vectors())
    colours = alt.Scale(domain=[PUSHES, PULLS], range=[PUSH, PULL])
    titles = {"words:N": "vector", "of:N": "neighbour's energy", "weight:N": "weight q_i + q_j"}
    single = {"color": alt.Color("kind:N", scale=colours), "tooltip": tooltips(titles)}
    total = {"color": alt.value(ink("ink")), "tooltip": ["words:N"]}
    angle = alt.Angle("angle:Q", scale=None)
    layers: list[Chart] = []
    for rows, width, size, encodings in (
        (arrows[arrows["kind"] == SUM], 3.4, 150, total),
        (arrows[arrows["kind"] != SUM], 2.2, 70, single),
    ):
        base = alt.Chart(rows)
        head = base.mark_point(shape="triangle", filled=True, size=size, opacity=1)
        shaft = base.mark_rule(strokeWidth=width)
        layers += [
            shaft.encode(**place(), x2="x2:Q", y2="y2:Q", **encodings),
            head.encode(**place("x2", "y2"), angle=angle, **encodings),
        ]
    return layers


def arrow_rows(vectors: pd.DataFrame) -> pd.DataFrame:
    """Return starts, ends and texts of the arrows; angles are in degrees clockwise from upwards."""
    rows = []
    for row in vectors.to_dict("records"):
        kind = PUSHES if row["weight"] > 0 else PULLS
        texts = {"kind": kind, "words": f"neighbour {row['node']} {kind}"}
        texts |= {"of": format_energy(row["energy"]), "weight": f"{row['weight']:.3f}"}
        rows.append({"dx": row["dx"], "dy": row["dy"], **texts})
    dx, dy = total_vector()
    words = f"the sum, T∇S = ({dx:.2f}, {dy:.2f})"
    rows.append({"dx": dx, "dy": dy, "kind": SUM, "words": words, "of": "", "weight": ""})
    arrows = pd.DataFrame(rows)
    x, y = POSITIONS[0]
    return arrows.assign(
        x=x,
        y=y,
        x2=x + ARROW_SCALE * arrows["dx"],
        y2=y + ARROW_SCALE * arrows["dy"],
        angle=np.degrees(np.arctan2(arrows["dx"], arrows["dy"])),
    )


def entropy_curves() -> pd.DataFrame:
    """Return −p ln p with p = exp(−E/T), that is (E/T) exp(−E/T), for several temperatures."""
    axes = {"temperature": TEMPERATURES, "energy": np.linspace(0, 24, 241)}
    points = pd.MultiIndex.from_product(axes.values(), names=list(axes)).to_frame(index=False)
    ratio = points["energy"] / points["temperature"]
    return points.assign(entropy=ratio * np.exp(-ratio))


def figure_1b() -> Figure:
    """Draw a node's share of the entropy by its energy, and mark the peaks."""
    legend = {f"T = {t:g}": Look(shade) for t, shade in zip(TEMPERATURES, SHADES, strict=False)}
    curves = entropy_curves()
    curves["name"] = [f"T = {t:g}" for t in curves["temperature"]]
    peaks = pd.DataFrame({"energy": TEMPERATURES, "entropy": math.exp(-1), "name": list(legend)})
    values = [0, *TEMPERATURES, 16, 22]
    x = linear_axis(alt.X, "energy", "energy of the node, E", (0, 24), values=values, format="d")
    y = linear_axis(alt.Y, "entropy", "−p ln p", (0, 0.4), tickCount=4, format=".1f")
    tooltip = tooltips({"name:N": "temperature"})
    tooltip += tooltips({"energy:Q": "E", "entropy:Q": "−p ln p"}, format=".3g")
    lines = model_chart(curves, legend, dashes=False, x=x, y=y)
    tops = model_chart(peaks, legend, dashes=False, x=x, y=y)
    chart = alt.layer(
        tops.mark_rule(strokeDash=[2, 3], strokeWidth=1.2).encode(y2=alt.value(260)),
        lines.mark_line(strokeWidth=2.4),
        tops.mark_point(filled=True, size=80, opacity=1).encode(tooltip=tooltip),
    )
    caption = (
        "A node's share of the entropy is largest, 1/e, where its energy equals the temperature: "
        "below T the step raises its energy, above it lowers it."
    )
    panels = (Panel("", chart, height=260),)
    return Figure("figure_1b", "The entropy's peak", caption, panels, legend, columns=1)
