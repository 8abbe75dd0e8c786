"""Where it helps: accuracy gained or lost by the entropy step, over the same network without it, on generated graphs of every kind.

    python examples/where_it_helps.py --output out/where_it_helps

trains pairs of networks that differ in the step alone (same graph, split and initial weights) on contextual stochastic block models, over
homophily, depth, strength of the features, degree and share of labels. It writes ``runs.csv`` (a row per network trained; what is there is
not trained again), the map ``where_it_helps.png`` with all steps in ``all_steps.png``, and ``rule.md``: when to use the step, as a rule in
two numbers that was fitted on half of the map and tried on the other.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from torch_geometric.data import Data
from tqdm import tqdm

from eamp.diagnostics import relative_energy
from eamp.experiments.cell import Cell, load_graph
from eamp.report import figure
from eamp.report.colours import PULL, PUSH
from eamp.report.figure import Figure, Panel
from eamp.report.theme import ink

NETWORKS: dict[str, dict[str, Any]] = {
    "Identity": {
        "model": "deep-gcn",
        "options": {"weights": "identity", "initial_residual": 0.0},
    },  # layers that begin as the identity
    "GCN": {"model": "gcn"},
}
STEPS = [(gain, temperature) for gain in (0.5, 0.9) for temperature in (1.0, 1e6)]
MAIN_STEP = (0.9, 1.0)  # the one on the map, chosen beforehand
DEGREE, LABEL_RATE = 3.0, 0.1  # where nothing else is said
TRAINING = {"epochs": 60, "patience": 15, "learning_rate": 0.02}


# --- The grid ---------------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """A kind of graph, and how deep the network is."""

    homophily: float
    depth: int
    signal: float
    degree: float = DEGREE
    label_rate: float = LABEL_RATE


class Run(NamedTuple):
    """One network of the map; its partner without the step has gain 0."""

    point: Point
    seed: int
    network: str
    gain: float
    temperature: float

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from the others, as in the CSV."""
        return (*self.point, self.seed, self.network, self.gain, self.temperature)

    @property
    def cell(self) -> Cell:
        """Graph, split and initial weights depend on point and seed alone."""
        graph = self.point._asdict()
        depth = graph.pop("depth")
        data = (
            "csbm:nodes=400,classes=4,features=16,"
            + ",".join(f"{name}={value}" for name, value in graph.items())
            + f",seed={self.seed}"
        )
        step = {
            "weight": {"schedule": "gain", "of": self.gain},
            "temperature": self.temperature,
            "normalization": "sym",
            "scale_free": True,
        }
        entropy = step if self.gain else None
        return Cell(
            **NETWORKS[self.network],
            data=data,
            depth=depth,
            width=16,
            entropy=entropy,
            changes=TRAINING,
            seed=self.seed,
        )


POINT = [*Point._fields]
KEY = [*POINT, "seed", "network", "gain", "temperature"]
FOUND = ["label_homophily", "feature_similarity", "test_accuracy", "val_accuracy", "epochs"]


def full_grid() -> list[Point]:
    """All of homophily × depth × signal; then more neighbours, then more labels, at three homophilies."""
    homophilies, depths, middle = (0.1, 0.3, 0.5, 0.7, 0.9), (2, 8, 32), 0.5
    points = [Point(*values) for values in product(homophilies, depths, (0.2, middle, 1.0))]
    points += [
        Point(homophily, depth, middle, degree=10.0)
        for homophily, depth in product(homophilies[::2], depths)
    ]
    points += [
        Point(homophily, depth, middle, label_rate=0.3)
        for homophily, depth in product(homophilies[::2], depths)
    ]
    return points


def quick_grid() -> list[Point]:
    """Two points."""
    return [Point(0.1, 2, 0.5), Point(0.9, 2, 0.5)]


# --- Running ----------------------------------------------------------------------------------------------------------


def trained(run: Run) -> dict[str, Any]:
    """Train a network: test accuracy at the epoch of lowest validation loss, and what can be seen of the graph beforehand."""
    result = run.cell.train()
    found = (
        *seen_of(load_graph(run.cell.data)),
        result.test_accuracy,
        result.val_accuracy,
        len(result.history),
    )
    return dict(zip([*KEY, *FOUND], [*run.key, *(round(value, 5) for value in found)], strict=True))


def seen_of(data: Data) -> tuple[float, float]:
    """What a practitioner can see: homophily of the edges between nodes with known (training and validation) labels, and how much the
    features of neighbours correlate, which needs no labels: 0 for unrelated nodes, 1 for equal ones."""
    source, target = data.edge_index
    known = data.train_mask | data.val_mask
    between = known[source] & known[target]
    homophily = (data.y[source] == data.y[target])[between].double().mean()
    return float(homophily), 1 - float(relative_energy(data.x - data.x.mean(0), data.edge_index))


def run_all(runs: list[Run], path: Path) -> pd.DataFrame:
    """Train what ``path`` does not have yet, a row at a time."""
    done = (
        set(pd.read_csv(path)[KEY].itertuples(index=False, name=None)) if path.exists() else set()
    )
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*KEY, *FOUND])
        if not done:
            writer.writeheader()
        for run in tqdm([run for run in runs if run.key not in done], disable=None):
            writer.writerow(trained(run))
            file.flush()
    return pd.read_csv(path)


def gains(runs: pd.DataFrame) -> pd.DataFrame:
    """Every network with a step beside its partner without one: ``gained``, in points of accuracy."""
    pair = [*POINT, "seed", "network"]
    bare = runs[runs["gain"] == 0].set_index(pair)["test_accuracy"].rename("bare_accuracy")
    pairs = runs[runs["gain"] > 0].join(bare, on=pair, how="inner")
    return pairs.assign(gained=100 * (pairs["test_accuracy"] - pairs["bare_accuracy"]))


def by_point(pairs: pd.DataFrame) -> pd.DataFrame:
    """Mean and deviation over the seeds."""
    means = {
        name: (name, "mean")
        for name in ("label_homophily", "feature_similarity", "test_accuracy", "bare_accuracy")
    }
    seeds = {
        "gained": ("gained", "mean"),
        "deviation": ("gained", "std"),
        "seeds": ("seed", "count"),
    }
    return pairs.groupby(["network", "gain", "temperature", *POINT], as_index=False).agg(
        **means, **seeds
    )


# --- The map ----------------------------------------------------------------------------------------------------------


def panel(part: pd.DataFrame, heading: str, limit: float) -> Panel:
    """Homophily × depth: colour and number say what was gained."""
    words = [
        f"{mean:+.0f} ± {deviation:.0f}".replace("-", "−")
        for mean, deviation in zip(part["gained"], part["deviation"], strict=True)
    ]
    rows = part[["homophily", "depth", "gained"]].assign(words=words)
    scale = alt.Scale(
        domain=[-limit, 0, limit], range=[PULL, "#ffffff", PUSH], clamp=True, interpolate="rgb"
    )
    base = alt.Chart(rows).encode(
        x=alt.X("homophily:O", title="homophily of the edges", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("depth:O", title="layers", sort="descending"),
    )
    cells, text = (
        base.mark_rect().encode(color=alt.Color("gained:Q", scale=scale)),
        base.mark_text(color=ink("ink")).encode(text="words:N"),
    )
    return Panel(
        heading,
        alt.layer(cells, text),
        width=58 * rows["homophily"].nunique(),
        height=34 * rows["depth"].nunique(),
    )


def heat_map(
    points: pd.DataFrame, key: str, title: str, steps: Iterable[tuple[float, float]]
) -> Figure:
    """A column per signal, a row per network and step."""
    base = points[(points["degree"] == DEGREE) & (points["label_rate"] == LABEL_RATE)]
    signals, limit, panels = sorted(base["signal"].unique()), 30.0, []
    for network, (gain, temperature), signal in product(NETWORKS, steps, signals):
        chosen = (
            (base["network"] == network)
            & (base["gain"] == gain)
            & (base["temperature"] == temperature)
        )
        heading = f"{network}, {step_name(gain, temperature)}: signal {signal:g}"
        panels.append(panel(base[chosen & (base["signal"] == signal)], heading, limit))
    return Figure(key, title, "", tuple(panels), columns=len(signals))


def step_name(gain: float, temperature: float) -> str:
    """In words; a temperature above every energy pushes always."""
    return f"g = {gain:g}, T = {'∞' if temperature > 1e5 else f'{temperature:g}'}"


# --- The rule ---------------------------------------------------------------------------------------------------------

SEEN = ("label_homophily", "feature_similarity", "depth", "degree")
ENOUGH = {
    "gain": 0.2,
    "hits": 0.05,
}  # what a further condition must bring: points of accuracy, share of the points


@dataclass(frozen=True)
class Rule:
    """Take the step where all of the conditions hold (of none: always), or any of them (of none: never)."""

    conditions: tuple[tuple[str, str, float], ...]
    join: str = "and"

    def __call__(self, points: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Where the step is to be taken."""
        held = [
            (points[name] > at if sign == ">" else points[name] <= at).to_numpy()
            for name, sign, at in self.conditions
        ]
        held = held or [np.full(len(points), self.join == "and")]
        return np.all(held, axis=0) if self.join == "and" else np.any(held, axis=0)

    def __str__(self) -> str:
        words = [
            f"{name.replace('_', ' ')} {'≤' if sign == '<=' else sign} {at:.2g}"
            for name, sign, at in self.conditions
        ]
        return f" {self.join} ".join(words) or {"and": "always", "or": "never"}[self.join]

    def merits(self, points: pd.DataFrame) -> dict[str, float]:
        """Mean accuracy gained by whoever follows it, and the share of the points where the gain has the sign that it says."""
        take, gained = self(points), points["gained"].to_numpy()
        return {
            "gain": float(np.where(take, gained, 0).mean()),
            "hits": float((take == (gained > 0)).mean()),
        }


def rules(points: pd.DataFrame) -> Iterator[list[Rule]]:
    """Always, then those of one condition, then of two on different numbers."""
    conditions = {
        name: [(name, sign, at) for at in thresholds(points[name]) for sign in (">", "<=")]
        for name in SEEN
    }
    yield [Rule(())]
    yield [Rule((condition,)) for some in conditions.values() for condition in some]
    yield [
        Rule(pair, join)
        for a, b in combinations(SEEN, 2)
        for pair in product(conditions[a], conditions[b])
        for join in ("and", "or")
    ]


def thresholds(values: pd.Series) -> list[float]:
    """Between neighbouring values; of many values, ten of those."""
    known = np.unique(values.round(3))
    between = (known[1:] + known[:-1]) / 2
    return [
        float(at)
        for at in (
            between
            if len(between) <= 10
            else between[np.linspace(0, len(between) - 1, 10).round().astype(int)]
        )
    ]


def fit(points: pd.DataFrame, merit: str) -> Rule:
    """The rule of most merit here; one with more conditions only if they bring enough."""
    best = Rule((), "or")
    for family in rules(points):
        candidate = max(family, key=lambda rule: rule.merits(points)[merit], default=best)
        if candidate.merits(points)[merit] > best.merits(points)[merit] + ENOUGH[merit]:
            best = candidate
    return best


def rule_text(points: pd.DataFrame) -> str:
    """Rules for every network and step, fitted on half of the points and tried on the others, as a Markdown table."""
    places = points[POINT].drop_duplicates()
    fitted_on = places.sample(frac=0.5, random_state=0).assign(half="fit")
    lines = [
        f"Fitted on {len(fitted_on)} of {len(places)} points, for the accuracy gained or for hits, and tried on the others. A hit: the",
        "mean gain at the point has the sign that the rule says. Gains are means over the held-out points, in points of test accuracy.",
        "",
        "| network | step | fitted for | take it if | hits, fitted | hits, held out | gain by the rule | if always | if always right |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (network, gain, temperature), part in points.groupby(["network", "gain", "temperature"]):
        part = part.merge(fitted_on, on=POINT, how="left")
        seen, held_out = part[part["half"] == "fit"], part[part["half"].isna()]
        always, right = held_out["gained"].mean(), held_out["gained"].clip(lower=0).mean()
        for merit in ENOUGH:
            rule = fit(seen, merit)
            before, then = rule.merits(seen), rule.merits(held_out)
            found = f"{before['hits']:.0%} | {then['hits']:.0%} | {then['gain']:+.1f} | {always:+.1f} | {right:+.1f}"
            lines.append(
                f"| {network} | {step_name(gain, temperature)} | {merit} | {rule} | {found} |"
            )
    return "\n".join(lines) + "\n"


def depth_text(runs: pd.DataFrame) -> str:
    """Every step at its best depth beside the bare network at its own: what is gained over a network that is simply less deep."""
    place, step = (
        ["network", "signal", "degree", "label_rate", "homophily"],
        ["gain", "temperature"],
    )
    means = runs.groupby([*place, *step, "depth"], as_index=False)[
        ["val_accuracy", "test_accuracy"]
    ].mean()
    best = means.loc[means.groupby([*place, *step])["val_accuracy"].idxmax()]
    words = best.assign(
        words=[
            f"{100 * accuracy:.1f} ({depth})"
            for accuracy, depth in zip(best["test_accuracy"], best["depth"], strict=True)
        ]
    )
    table = words.pivot(index=place, columns=step, values="words").fillna("–")
    lines = [
        "Mean test accuracy at the depth (in brackets) of highest mean validation accuracy; degree 0 is the features alone:",
        "",
        f"| {' | '.join(place).replace('_', ' ')} | without | {' | '.join(step_name(*one) for one in table.columns[1:])} |",
        "|---" * (len(place) + table.shape[1]) + "|",
    ]
    lines += [
        f"| {' | '.join(map(str, where))} | {' | '.join(row)} |"
        for where, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train the pairs, draw the map, fit the rule."""
    parser = argparse.ArgumentParser(
        description="Accuracy gained or lost by the entropy step on generated graphs of every kind."
    )
    parser.add_argument("--output", type=Path, default=Path("out/where_it_helps"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two points, two seeds")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    grid, seeds = (quick_grid(), 2) if given.quick else (full_grid(), given.seeds)

    bare, each_seed = (0.0, 1.0), range(seeds)
    # Seeds outermost, so that a map that was stopped has all of its points.
    runs = [
        Run(point, seed, network, *step)
        for seed in each_seed
        for point in grid
        for network in NETWORKS
        for step in [bare, *STEPS]
    ]
    # Without edges it is a network on the features alone, which every other has to beat.
    edgeless = dict.fromkeys(Point(0.0, 2, point.signal, 0.0, point.label_rate) for point in grid)
    runs += [Run(point, seed, "Identity", *bare) for seed in each_seed for point in edgeless]
    table = run_all(runs, given.output / "runs.csv")
    points = by_point(gains(table))
    title = "Test accuracy gained by the entropy step, in points"
    figure.save(heat_map(points, "where_it_helps", title, [MAIN_STEP]), given.output)
    figure.save(heat_map(points, "all_steps", title, STEPS), given.output)
    text = f"# When to take the step\n\n{rule_text(points)}\n## And a shallower network?\n\n{depth_text(table)}"
    (given.output / "rule.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
