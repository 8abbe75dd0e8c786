"""Measure where the entropy step helps: a map over kinds of generated graphs.

    python examples/where_it_helps.py --output out/where_it_helps

The script trains pairs of networks that differ only in the step: same graph, split and initial
weights. The graphs are contextual stochastic block models over homophily, depth, strength of the
features, degree and share of labels. It writes

- ``runs.csv``, a row per trained network; networks in it are not trained again;
- the map ``where_it_helps.png``, and ``all_steps.png`` with all steps;
- ``rule.md``, a rule in two numbers that says when to take the step. It is fitted on half of the
  map and tried on the other half.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from step_rule import header, rule_text, step_name
from torch_geometric.data import Data
from tqdm import tqdm

from eamp.diagnostics import relative_energy
from eamp.experiments.cell import Cell, load_graph
from eamp.report import figure
from eamp.report.colours import PULL, PUSH
from eamp.report.figure import Figure, Panel
from eamp.report.theme import ink

NETWORKS: dict[str, dict[str, Any]] = {
    # weights that begin as the identity
    "Identity": {
        "model": "deep-gcn",
        "options": {"weights": "identity", "initial_residual": 0.0},
    },
    "GCN": {"model": "gcn"},
}
STEPS = [(gain, temperature) for gain in (0.5, 0.9) for temperature in (1.0, 1e6)]
MAIN_STEP = (0.9, 1.0)  # on the map; chosen before the map was made
DEGREE, LABEL_RATE = 3.0, 0.1  # defaults
TRAINING = {"epochs": 60, "patience": 15, "learning_rate": 0.02}


# --- The grid -------------------------------------------------------------------------------------


class Point(NamedTuple):
    """A kind of graph, and the depth of the network."""

    homophily: float
    depth: int
    signal: float
    degree: float = DEGREE
    label_rate: float = LABEL_RATE


class Run(NamedTuple):
    """One network of the map. Its partner without the step has gain 0."""

    point: Point
    seed: int
    network: str
    gain: float
    temperature: float

    @property
    def key(self) -> tuple[Any, ...]:
        """The columns of the CSV that identify the run."""
        return (*self.point, self.seed, self.network, self.gain, self.temperature)

    @property
    def cell(self) -> Cell:
        """The network; graph, split and initial weights depend on point and seed alone."""
        graph = {**self.point._asdict(), "seed": self.seed}
        depth = graph.pop("depth")
        options = ",".join(f"{name}={value}" for name, value in graph.items())
        step = {
            "weight": {"schedule": "gain", "of": self.gain},
            "temperature": self.temperature,
            "energy": "propagation",
            "scale_free": True,
        }
        return Cell(
            **NETWORKS[self.network],
            data=f"csbm:nodes=400,classes=4,features=16,{options}",
            depth=depth,
            width=16,
            entropy=step if self.gain else None,
            changes=TRAINING,
            seed=self.seed,
        )


POINT = [*Point._fields]
KEY = [*POINT, "seed", "network", "gain", "temperature"]
FOUND = ["label_homophily", "feature_similarity", "test_accuracy", "val_accuracy", "epochs"]


def full_grid() -> list[Point]:
    """Return homophily × depth × signal; then more neighbours, then more labels, at some."""
    homophilies, depths, middle = (0.1, 0.3, 0.5, 0.7, 0.9), (2, 8, 32), 0.5
    points = [Point(*values) for values in product(homophilies, depths, (0.2, middle, 1.0))]
    some = [(*values, middle) for values in product(homophilies[::2], depths)]
    points += [Point(*values, degree=10.0) for values in some]
    return points + [Point(*values, label_rate=0.3) for values in some]


# --- Running --------------------------------------------------------------------------------------


def trained(run: Run) -> dict[str, Any]:
    """Train a network and return its row of the CSV.

    The test accuracy is that at the epoch of lowest validation loss.
    """
    result = run.cell.train()
    accuracies = result.test_accuracy, result.val_accuracy
    found = (*seen_of(load_graph(run.cell.data)), *accuracies, len(result.history))
    return dict(zip([*KEY, *FOUND], [*run.key, *(round(value, 5) for value in found)], strict=True))


def seen_of(data: Data) -> tuple[float, float]:
    """Return what a practitioner can see of a graph before training.

    The first number is the homophily of the edges between nodes of known label (training and
    validation). The second is the correlation of the features of neighbours, which needs no labels:
    0 for unrelated nodes, 1 for equal ones.
    """
    source, target = data.edge_index
    known = data.train_mask | data.val_mask
    between = known[source] & known[target]
    homophily = (data.y[source] == data.y[target])[between].double().mean()
    return float(homophily), 1 - float(relative_energy(data.x - data.x.mean(0), data.edge_index))


def run_all(runs: list[Run], path: Path) -> pd.DataFrame:
    """Train the networks that ``path`` does not have yet, and write a row after each."""
    done = set()
    if path.exists():
        done = set(pd.read_csv(path)[KEY].itertuples(index=False, name=None))
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*KEY, *FOUND])
        if not done:
            writer.writeheader()
        for run in tqdm([run for run in runs if run.key not in done], disable=None):
            writer.writerow(trained(run))
            file.flush()
    return pd.read_csv(path)


def gains(runs: pd.DataFrame) -> pd.DataFrame:
    """Pair every network with its partner without the step; ``gained`` is in points of accuracy."""
    pair = [*POINT, "seed", "network"]
    bare = runs[runs["gain"] == 0].set_index(pair)["test_accuracy"].rename("bare_accuracy")
    pairs = runs[runs["gain"] > 0].join(bare, on=pair, how="inner")
    return pairs.assign(gained=100 * (pairs["test_accuracy"] - pairs["bare_accuracy"]))


def by_point(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return mean and deviation over the seeds."""
    measured = ("label_homophily", "feature_similarity", "test_accuracy", "bare_accuracy", "gained")
    means = {name: (name, "mean") for name in measured}
    groups = pairs.groupby(["network", "gain", "temperature", *POINT], as_index=False)
    return groups.agg(**means, deviation=("gained", "std"), seeds=("seed", "count"))


# --- The map --------------------------------------------------------------------------------------


def panel(part: pd.DataFrame, heading: str, limit: float) -> Panel:
    """Draw the gain over homophily × depth, as colour and as number."""
    words = [
        f"{mean:+.0f} ± {deviation:.0f}".replace("-", "−")
        for mean, deviation in zip(part["gained"], part["deviation"], strict=True)
    ]
    rows = part[["homophily", "depth", "gained"]].assign(words=words)
    domain, colours = [-limit, 0, limit], [PULL, "#ffffff", PUSH]
    scale = alt.Scale(domain=domain, range=colours, clamp=True, interpolate="rgb")
    base = alt.Chart(rows).encode(
        x=alt.X("homophily:O", title="homophily of the edges", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("depth:O", title="layers", sort="descending"),
    )
    cells = base.mark_rect().encode(color=alt.Color("gained:Q", scale=scale))
    text = base.mark_text(color=ink("ink")).encode(text="words:N")
    width, height = 58 * rows["homophily"].nunique(), 34 * rows["depth"].nunique()
    return Panel(heading, alt.layer(cells, text), width=width, height=height)


def heat_map(
    points: pd.DataFrame, key: str, title: str, steps: Iterable[tuple[float, float]]
) -> Figure:
    """Draw a column of panels per signal, and a row per network and step."""
    base = points[(points["degree"] == DEGREE) & (points["label_rate"] == LABEL_RATE)]
    signals, limit, panels = sorted(base["signal"].unique()), 30.0, []
    for network, (gain, temperature), signal in product(NETWORKS, steps, signals):
        wanted = {"network": network, "gain": gain, "temperature": temperature, "signal": signal}
        chosen = np.all([base[name] == value for name, value in wanted.items()], axis=0)
        heading = f"{network}, {step_name(gain, temperature)}: signal {signal:g}"
        panels.append(panel(base[chosen], heading, limit))
    return Figure(key, title, "", tuple(panels), columns=len(signals))


# --- Depth ----------------------------------------------------------------------------------------


def depth_text(runs: pd.DataFrame) -> str:
    """Return a Markdown table of every step, and of the bare network, each at its best depth."""
    place = ["network", "signal", "degree", "label_rate", "homophily"]
    setting, accuracies = [*place, "gain", "temperature"], ["val_accuracy", "test_accuracy"]
    means = runs.groupby([*setting, "depth"], as_index=False)[accuracies].mean()
    best = means.loc[means.groupby(setting)["val_accuracy"].idxmax()]
    pairs = zip(best["test_accuracy"], best["depth"], strict=True)
    words = best.assign(words=[f"{100 * accuracy:.1f} ({depth})" for accuracy, depth in pairs])
    table = words.pivot(index=place, columns=["gain", "temperature"], values="words").fillna("–")
    heads = [name.replace("_", " ") for name in place]
    lines = [
        "Mean test accuracy at the depth (in brackets) of highest mean validation accuracy.",
        "Degree 0 means the features alone.",
        "",
        *header([*heads, "without", *(step_name(*step) for step in table.columns[1:])]),
    ]
    lines += [
        f"| {' | '.join(map(str, where))} | {' | '.join(row)} |"
        for where, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train the pairs, draw the map, fit the rule."""
    description = "Accuracy gained or lost by the entropy step on generated graphs of many kinds."
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, default=Path("out/where_it_helps"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two points, two seeds")
    given = parser.parse_args()
    folder = given.output
    folder.mkdir(parents=True, exist_ok=True)
    grid, seeds = full_grid(), range(given.seeds)
    if given.quick:
        grid, seeds = [Point(0.1, 2, 0.5), Point(0.9, 2, 0.5)], range(2)

    bare = (0.0, 1.0)
    # Seeds come first in the order, so that an interrupted map has all of its points.
    order = product(seeds, grid, NETWORKS, [bare, *STEPS])
    runs = [Run(point, seed, network, *step) for seed, point, network, step in order]
    # Without edges this is a network on the features alone, a reference for all others.
    edgeless = dict.fromkeys(Point(0.0, 2, point.signal, 0.0, point.label_rate) for point in grid)
    runs += [Run(point, seed, "Identity", *bare) for seed in seeds for point in edgeless]
    table = run_all(runs, folder / "runs.csv")
    points = by_point(gains(table))
    title = "Test accuracy gained by the entropy step, in points"
    figure.save(heat_map(points, "where_it_helps", title, [MAIN_STEP]), folder)
    figure.save(heat_map(points, "all_steps", title, STEPS), folder)
    text = f"# When to take the step\n\n{rule_text(points, POINT)}\n"
    text += f"## Each network at its best depth\n\n{depth_text(table)}"
    (folder / "rule.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
