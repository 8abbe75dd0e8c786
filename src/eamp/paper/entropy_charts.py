"""Figure 1: the push on one node as the sum of vectors from its neighbours, and −p ln p against the energy. Both are computed here."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import torch

import eamp
from eamp.report import number_format as numbers
from eamp.report.colours import INK, PULL, PUSH, Look
from eamp.report.figure import Figure, Panel
from eamp.report.log_axis import OPACITY, model_encodings
from eamp.report.theme import ink

# Node 0 and its neighbours 1 to 4. Node 5, far out, raises the energy of neighbour 4 above T.
POSITIONS = ((0.0, 0.0), (-0.95, -0.28), (-0.12, 1.12), (0.78, 0.72), (1.28, -0.42), (2.3, 0.55))
EDGES = ((0, 1), (0, 2), (0, 3), (0, 4), (4, 5))
LABELS = (
    (-0.3, 0.14),
    (-0.12, 0.2),
    (0.0, 0.2),
    (0.24, 0.18),
    (0.16, -0.2),
    (0.0, 0.2),
)  # where a node's energy is written
TEMPERATURE = 0.75
ARROW_SCALE = 2.5
TEMPERATURES = (1.0, 4.0, 10.0)
WINDOW = ((-1.4, 2.6), (-1.05, 1.45))
PIXELS_PER_UNIT = 125


def example() -> tuple[torch.Tensor, eamp.Graph]:
    """Six nodes in the plane."""
    pairs = torch.tensor(EDGES, dtype=torch.long).T
    return torch.tensor(POSITIONS, dtype=torch.float64), eamp.Graph(
        torch.cat([pairs, pairs.flip(0)], dim=1), len(POSITIONS)
    )


def neighbour_vectors(temperature: float = TEMPERATURE) -> pd.DataFrame:
    """What each neighbour j adds to T∇S at node 0, (q_0 + q_j)(x_0 − x_j): ``node``, ``energy``, ``weight``, ``dx``, ``dy``."""
    x, graph = example()
    energy = eamp.dirichlet_energy(x, graph)
    # q_i = C_i p_i (1 − E_i/T), C_i = 1/sqrt(k_i F)
    q = (
        (graph.degree * x.size(1)).rsqrt()
        * torch.exp(-energy / temperature)
        * (1 - energy / temperature)
    )
    neighbours = [j for i, j in EDGES if i == 0]
    rows = []
    for j in neighbours:
        weight = float(q[0] + q[j])
        dx, dy = (weight * (x[0] - x[j])).tolist()
        rows.append({"node": j, "energy": float(energy[j]), "weight": weight, "dx": dx, "dy": dy})
    return pd.DataFrame(rows)


def total_vector(temperature: float = TEMPERATURE) -> tuple[float, float]:
    """T∇S at node 0, from :func:`eamp.entropy_gradient`."""
    x, graph = example()
    dx, dy = (temperature * eamp.entropy_gradient(x, graph, temperature)[0]).tolist()
    return dx, dy


def gradient_error(temperature: float = TEMPERATURE) -> float:
    """How far the published formula is from the gradient on this example, relative to the gradient's size."""
    x, graph = example()
    exact = eamp.entropy_gradient(x, graph, temperature)
    return float(
        (eamp.entropy_gradient(x, graph, temperature, variant="paper") - exact).norm()
        / exact.norm()
    )


def figure_1a() -> Figure:
    """Nodes, edges, the vectors from the neighbours and their sum."""
    vectors = neighbour_vectors()
    x, graph = example()
    energy = eamp.dirichlet_energy(x, graph).tolist()
    nodes = pd.DataFrame({"x": x[:, 0].tolist(), "y": x[:, 1].tolist(), "energy": energy})
    nodes["state"] = ["E < T" if value < TEMPERATURE else "E > T" for value in energy]
    nodes["label"] = [f"E = {numbers.energy(value)}" for value in energy]
    nodes["label_x"], nodes["label_y"] = (
        nodes["x"] + [dx for dx, _ in LABELS],
        nodes["y"] + [dy for _, dy in LABELS],
    )
    edges = pd.DataFrame(
        [
            {
                "x": POSITIONS[i][0],
                "y": POSITIONS[i][1],
                "x2": POSITIONS[j][0],
                "y2": POSITIONS[j][1],
            }
            for i, j in EDGES
        ]
    )
    (left, right), (bottom, top) = WINDOW

    def place(fields: tuple[str, str] = ("x", "y")) -> dict[str, alt.X | alt.Y]:
        horizontal = alt.X(
            f"{fields[0]}:Q", scale=alt.Scale(domain=[left, right], nice=False), axis=None
        )
        return {
            "x": horizontal,
            "y": alt.Y(
                f"{fields[1]}:Q", scale=alt.Scale(domain=[bottom, top], nice=False), axis=None
            ),
        }

    arrows = arrow_rows(vectors)
    kinds = ["pushes away", "pulls closer"]
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=kinds, range=[PUSH, PULL]))
    tooltip = [
        alt.Tooltip("words:N", title="vector"),
        alt.Tooltip("of:N", title="neighbour's energy"),
        alt.Tooltip("weight:N", title="weight q_i + q_j"),
    ]
    single = alt.Chart(arrows[arrows["kind"] != "sum"])
    total = alt.Chart(arrows[arrows["kind"] == "sum"])
    head: dict[str, Any] = {"shape": "triangle", "filled": True, "size": 70, "opacity": 1}
    angle = alt.Angle("angle:Q", scale=None)
    fill = alt.condition("datum.state === 'E < T'", alt.value(ink("paper")), alt.value(ink("soft")))
    chart = alt.layer(
        alt.Chart(edges)
        .mark_rule(color=ink("axis"), strokeWidth=1.4)
        .encode(**place(), x2="x2:Q", y2="y2:Q"),
        total.mark_rule(color=ink("ink"), strokeWidth=3.4).encode(
            **place(), x2="x2:Q", y2="y2:Q", tooltip=["words:N"]
        ),
        total.mark_point(**{**head, "size": 150}, color=ink("ink")).encode(
            **place(("x2", "y2")), angle=angle, tooltip=["words:N"]
        ),
        single.mark_rule(strokeWidth=2.2).encode(
            **place(), x2="x2:Q", y2="y2:Q", color=colour, tooltip=tooltip
        ),
        single.mark_point(**head).encode(
            **place(("x2", "y2")), angle=angle, color=colour, tooltip=tooltip
        ),
        alt.Chart(nodes)
        .mark_circle(stroke=ink("soft"), strokeWidth=1.8, size=190, opacity=1)
        .encode(
            **place(),
            fill=fill,
            tooltip=[
                alt.Tooltip("energy:Q", title="energy", format=".2f"),
                alt.Tooltip("state:N", title="state"),
            ],
        ),
        alt.Chart(nodes)
        .mark_text(color=ink("soft"), fontSize=15)
        .encode(**place(("label_x", "label_y")), text="label:N"),
    )
    width, height = round((right - left) * PIXELS_PER_UNIT), round((top - bottom) * PIXELS_PER_UNIT)
    caption = (
        f"T∇S at the middle node, computed for six nodes in the plane at T = {TEMPERATURE:g}: each neighbour adds (q_i + q_j)(x_i − x_j), "
        "which points away from it while the two energies are low, and towards it where its energy is far above T. "
        f"Arrows are drawn {ARROW_SCALE:g} times as long; filled nodes have E > T."
    )
    legend = {
        "pushes away": Look(PUSH, "stroke", (1, 0), True),
        "pulls closer": Look(PULL, "stroke", (1, 0), True),
    }
    legend["their sum, T∇S"] = Look(INK, "stroke", (1, 0), True)
    return Figure(
        "figure_1a",
        "The push on one node",
        caption,
        (Panel("", chart, width, height, stretches=False),),
        legend,
        columns=1,
    )


def arrow_rows(vectors: pd.DataFrame) -> pd.DataFrame:
    """Arrows from node 0: start, end, direction in degrees clockwise from upwards, and words."""
    x0, y0 = POSITIONS[0]
    rows = []
    for row in vectors.to_dict("records"):
        kind = "pushes away" if row["weight"] > 0 else "pulls closer"
        rows.append(
            {
                "dx": row["dx"],
                "dy": row["dy"],
                "kind": kind,
                "words": f"neighbour {row['node']:.0f} {kind}",
            }
        )
        rows[-1] |= {"of": numbers.energy(row["energy"]), "weight": f"{row['weight']:.3f}"}
    dx, dy = total_vector()
    rows.append(
        {
            "dx": dx,
            "dy": dy,
            "kind": "sum",
            "words": f"the sum, T∇S = ({dx:.2f}, {dy:.2f})",
            "of": "",
            "weight": "",
        }
    )
    arrows = pd.DataFrame(rows)
    return arrows.assign(
        x=x0,
        y=y0,
        x2=x0 + ARROW_SCALE * arrows["dx"],
        y2=y0 + ARROW_SCALE * arrows["dy"],
        angle=[
            math.degrees(math.atan2(dx, dy))
            for dx, dy in zip(arrows["dx"], arrows["dy"], strict=True)
        ],
    )


def entropy_curves(
    temperatures: tuple[float, ...] = TEMPERATURES, highest: float = 24.0
) -> pd.DataFrame:
    """−p ln p with p = exp(−E/T), that is (E/T) exp(−E/T): ``temperature``, ``energy``, ``entropy``."""
    energy = np.linspace(0, highest, 241)
    parts = [
        pd.DataFrame(
            {"temperature": t, "energy": energy, "entropy": energy / t * np.exp(-energy / t)}
        )
        for t in temperatures
    ]
    return pd.concat(parts, ignore_index=True)


def figure_1b() -> Figure:
    """A node's share of the entropy against its energy, with the peaks marked."""
    curves = entropy_curves()
    shades = (PUSH, "#6c9fd0", "#41698c")
    legend = {
        f"T = {t:g}": Look(shade, "stroke", (1, 0), True)
        for t, shade in zip(TEMPERATURES, shades, strict=True)
    }
    curves["name"] = [f"T = {t:g}" for t in curves["temperature"]]
    peaks = pd.DataFrame(
        {
            "energy": TEMPERATURES,
            "entropy": [math.exp(-1)] * len(TEMPERATURES),
            "name": list(legend),
        }
    )
    ticks = alt.Axis(values=[0, *TEMPERATURES, 16, 22], format="d")
    x = alt.X(
        "energy:Q",
        title="energy of the node, E",
        scale=alt.Scale(domain=[0, 24], nice=False),
        axis=ticks,
    )
    y = alt.Y(
        "entropy:Q",
        title="−p ln p",
        scale=alt.Scale(domain=[0, 0.4], nice=False),
        axis=alt.Axis(tickCount=4, format=".1f"),
    )
    tooltip = [alt.Tooltip("name:N", title="temperature")] + [
        alt.Tooltip(f"{c}:Q", title=t, format=".3g")
        for c, t in (("energy", "E"), ("entropy", "−p ln p"))
    ]
    line = (
        alt.Chart(curves)
        .mark_line(strokeWidth=2.4)
        .encode(x=x, y=y, opacity=OPACITY, **model_encodings(legend, dashes=False))
    )
    top = alt.Chart(peaks).encode(x=x, y=y, **model_encodings(legend, dashes=False))
    chart = alt.layer(
        top.mark_rule(strokeDash=[2, 3], strokeWidth=1.2).encode(y2=alt.value(260)),
        line,
        top.mark_point(filled=True, size=80, opacity=1).encode(tooltip=tooltip),
    )
    caption = (
        "A node's share of the entropy is largest, 1/e, where its energy equals the temperature: "
        "below T the step raises its energy, above it lowers it."
    )
    return Figure(
        "figure_1b",
        "The entropy's peak",
        caption,
        (Panel("", chart, width=460, height=260),),
        legend,
        columns=1,
    )
