"""``eamp energy``: the tables and charts of :mod:`eamp.experiments.energy_by_depth`."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import pandas as pd
from rich.console import Console

from eamp.experiments.energy_by_depth import DEPTHS, NETWORKS, WIDTH, energy_by_depth, thresholds

# The networks of the paper in strong colours, the others in lighter ones.
COLOURS = ("#7d8590", "#e08a1e", "#1f6fb2", "#c2405b", "#2e9e6b", "#b9a3d9", "#c9b98f", "#9ccbd6", "#dba6c0", "#b7c27a", "#8fb0e0")

GRAPH_COLOURS = ("#1f6fb2", "#2e9e6b", "#e08a1e", "#c2405b")


def run(folder: Path, seeds: int = 3, quick: bool = False) -> None:
    """Measure, print, and save CSV, Markdown, and charts as SVG, PNG and an interactive page."""
    console = Console()
    folder.mkdir(parents=True, exist_ok=True)
    with console.status("untrained networks, depth by depth"):
        energies = energy_by_depth(depths=[d for d in DEPTHS if d <= 200] if quick else DEPTHS, seeds=1 if quick else seeds)
    with console.status("the threshold of λ"):
        found = thresholds((64, 256) if quick else (64, 128, 256, 512))
    table = energy_table(energies)
    energies.to_csv(folder / "energy_by_depth.csv", index=False)
    found.to_csv(folder / "thresholds.csv", index=False)
    text = (
        f"Mean Dirichlet energy before the output layer of untrained networks, 10 × 10 grid, width {WIDTH}, "
        f"mean over {energies['seed'].nunique()} seed(s)\n\n{markdown(table)}\n\n"
        "Threshold of λ above which an untrained ReLU GCN of 100 layers keeps its energy (T = 1): measured, and predicted from the "
        f"spectrum of the graph\n\n{markdown(found.round({'degree': 1, 'predicted': 2, 'measured': 2}))}\n"
    )
    (folder / "energy.md").write_text(text, encoding="utf-8")
    console.print(text, markup=False, soft_wrap=True)
    for name, chart in {"energy_by_depth": energy_chart(energies), "thresholds": threshold_chart(found)}.items():
        chart.save(folder / f"{name}.svg")
        chart.save(folder / f"{name}.png", scale_factor=2)
        chart.save(folder / f"{name}.html", inline=True)
    console.print(f"Written to {folder}", markup=False)


def energy_table(energies: pd.DataFrame) -> pd.DataFrame:
    """A row per network, a column per depth, means over seeds."""
    order = list(dict.fromkeys(energies["network"]))
    wide = energies.pivot_table(index="network", columns="depth", values="energy", aggfunc="mean").loc[order]
    return wide.map(lambda value: f"{value:.2g}").reset_index()


def markdown(table: pd.DataFrame) -> str:
    """A table as Markdown."""
    rows = [list(map(str, table.columns)), ["---"] * table.shape[1], *(list(map(str, row)) for row in table.itertuples(index=False))]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def energy_chart(energies: pd.DataFrame) -> alt.Chart:
    """Energy against depth, both on logarithmic axes; a line ends where the energy is exactly zero."""
    mean = energies.groupby(["network", "depth"], as_index=False, sort=False)["energy"].mean()
    names = [network.label for network in NETWORKS]
    return (
        alt.Chart(
            mean[mean["energy"] > 1e-40], width=560, height=360, title="Energy before the output layer, untrained, 10 × 10 grid, width 256"
        )
        .mark_line(strokeWidth=2.2, point=alt.OverlayMarkDef(size=28))
        .encode(
            x=alt.X(
                "depth:Q", title="layers", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=[1, 10, 50, 100, 200, 500, 1000])
            ),
            y=alt.Y("energy:Q", title="mean Dirichlet energy", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e", tickCount=8)),
            color=alt.Color(
                "network:N", title=None, sort=names, scale=alt.Scale(domain=names, range=list(COLOURS)), legend=alt.Legend(labelLimit=260)
            ),
            tooltip=["network", "depth", alt.Tooltip("energy:Q", format=".3g")],
        )
    )


def threshold_chart(found: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Measured thresholds as points on the predicted lines."""
    base = alt.Chart(found, width=420, height=300, title="λ above which the step wins over the layer's contraction").encode(
        x=alt.X("width:Q", scale=alt.Scale(type="log", base=2, nice=False), axis=alt.Axis(values=sorted(found["width"].unique()))),
        color=alt.Color("graph:N", title=None, sort=list(dict.fromkeys(found["graph"])), scale=alt.Scale(range=list(GRAPH_COLOURS))),
        tooltip=["graph", "width", alt.Tooltip("predicted:Q", format=".2f"), alt.Tooltip("measured:Q", format=".2f")],
    )
    y_scale = alt.Scale(type="log", base=2, nice=False)
    ticks = alt.Axis(values=[2, 2.5, 3, 4, 5, 6, 7, 8, 9])
    line = base.mark_line(strokeDash=[5, 3]).encode(
        y=alt.Y("predicted:Q", title="λ (points: measured, dashed: predicted)", scale=y_scale, axis=ticks)
    )
    return alt.layer(line, base.mark_point(filled=True, size=60).encode(y=alt.Y("measured:Q", scale=y_scale)))
