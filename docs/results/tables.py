"""Fill the tables of results pages from the raw figures beside them, without any training.

python docs/results/tables.py

A table stands between ``<!-- table: name -->`` and ``<!-- end -->`` in the README of a folder.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from comparisons import by_depth, cells, change_of, compare, markdown, not_run, verdict

from eamp.experiments import statistics
from eamp.experiments.statistics import p_text

HERE = Path(__file__).parent
EVIDENCE, POINTS = HERE / "evidence", HERE / "points"
MAP = HERE / "depth" / "where_it_helps.runs.csv"
REGION = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
GRAPHS = ["homophily", "signal", "degree", "label_rate"]


def main() -> None:
    """Write every page again, with its tables made anew."""
    for folder in PAGES:
        page = HERE / folder / "README.md"
        page.write_text(filled(page.read_text("utf-8"), folder), "utf-8")


def filled(text: str, folder: str) -> str:
    """Return the page of a folder with every table made anew."""
    made = PAGES[folder]
    return REGION.sub(lambda match: f"{match[1]}\n{made[match[2]]()}\n{match[3]}", text)


def number(value: float) -> str:
    """Return three digits of a number, or all of a large one."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def chosen_on_map(temperature: float, network: str = "Identity") -> pd.Series:
    """Return the test accuracy per kind of graph, with gain and depth chosen by validation."""
    runs = pd.read_csv(MAP)
    runs = runs[(runs["network"] == network) & (runs["degree"] > 0)]
    runs = runs[(runs["gain"] == 0) | (runs["temperature"] == temperature)]
    means = runs.groupby([*GRAPHS, "gain", "depth"])[["val_accuracy", "test_accuracy"]].mean()
    return means.loc[means.groupby(GRAPHS)["val_accuracy"].idxmax()].droplevel(["gain", "depth"])[
        "test_accuracy"
    ]


def map_of_temperatures() -> str:
    """Compare T = ∞ with T = 1 over the kinds of graph of the map."""
    linear, finite = chosen_on_map(1e6), chosen_on_map(1.0)
    rows = []
    for homophily, part in linear.groupby("homophily"):
        beside = finite[part.index]
        change = 100 * (part - beside)
        accuracies = [f"{100 * values.mean():.1f}" for values in (beside, part)]
        rows.append(
            [f"{homophily:g}", str(len(part)), *accuracies, f"{change.mean():+.1f}", "", ""]
        )
    accuracies = [f"{100 * values.mean():.1f}" for values in (finite, linear)]
    found = statistics.paired((linear - finite).dropna())
    difference, interval, _ = change_of(found, math.nan)
    p_values = f"{p_text(found.p_t)}, {p_text(found.p_wilcoxon)}"
    rows.append(["all", str(len(linear)), *accuracies, difference, interval, p_values])
    head = ["homophily", "kinds of graph", "T = 1", "T = ∞", "difference", "95 % interval"]
    return markdown([*head, "p (t, Wilcoxon)"], rows)


def measures() -> str:
    """Show the measured facts about operators on Cora."""
    table = pd.read_csv(EVIDENCE / "measures.csv")
    rows = zip(table["quantity"], table["setting"], table["value"].map(number), strict=True)
    return markdown(["quantity", "setting", "value"], rows)


def thermostat_energies() -> str:
    """Show the energies that trained plain stacks have in their inner layers."""
    path = EVIDENCE / "thermostat_searched.layers.csv"
    if not path.exists():
        return not_run(EVIDENCE / "thermostat_searched.csv")
    table = pd.read_csv(path)
    inner = table[table["layer"].between(9, 56)]
    rows = []
    for name, part in inner.groupby("name", sort=False):
        spread = part["selected_energy"].quantile([0.1, 0.5, 0.9])
        rows.append([str(name), *(f"{value:.2g}" for value in spread)])
    return markdown(["network", "lowest tenth below", "median", "highest tenth above"], rows)


def regimes() -> str:
    """Show where the entropic step does what its controls do not."""
    none = "no step, initial scale searched"
    rows = []

    def add(regime: str, question: str, recipe: str, *names: str, **place: Any) -> None:
        raw = EVIDENCE / f"{recipe}.csv"
        known = cells(raw) is not None
        found = verdict(raw, *names, **place) if known else f"not trained yet ({recipe})"
        rows.append([regime, question, found])

    identity = "identity weights, Cora, 64 layers"
    add(identity, "step at T = 100, or lazy walk?", "controls_cora", "step, T = 100", "lazy walk")
    add(identity, "step at T = 1, or lazy walk?", "controls_cora", "step, T = 1", "lazy walk")
    permuted = "step, T = 1", "step, T = 1, permuted"
    add(identity, "each node its own drive?", "controls_cora", *permuted)
    plain, step = "plain stack, Cora, 64 layers", "entropic, T = 1"
    recipe = "thermostat_searched"
    add(plain, "T = 1, or T = ∞?", recipe, step, "T = ∞")
    add(plain, "each node its own drive?", recipe, step, "T = 1, permuted")
    same = "no step, initial weights of the entropic row"
    add(plain, "step, or none with the same weights?", recipe, step, same)
    add(plain, "step, or larger initial weights?", recipe, step, none)
    add(plain, "step, or PairNorm, searched?", recipe, step, "PairNorm, scale searched")
    add(plain, "step, or PairNorm, scale 3?", recipe, step, "PairNorm, scale 3 per node")
    wide = "plain stack of width 128, Cora, 64 layers"
    add(wide, "step, or larger initial weights?", "thermostat_wide", step, none)
    deep = "plain stack, Cora, 128 layers"
    add(deep, "step, or larger initial weights?", "thermostat_depth", step, none)
    add(deep, "step, or PairNorm, scale 3?", "thermostat_depth", step, "PairNorm, scale 3 per node")
    mirrored, recipe = "plain stack, mirrored weights, Cora, 64 layers", "mirrored"
    add(mirrored, "step at T = 1, or none?", recipe, "T = 1", "no step")
    add(mirrored, "step at T = 1, or PairNorm?", recipe, "T = 1", "PairNorm")
    add(mirrored, "no step, or PairNorm?", recipe, "no step", "PairNorm")
    add(mirrored, "T = 1, or T = ∞?", recipe, "T = 1", "T = ∞")
    add(mirrored, "each node its own drive?", recipe, "T = 1", "T = 1, permuted")
    tasks = {
        "missing_features": ["missing_features:cora"],
        "corrupted": ["corrupted_features=0.3:cora"],
        "heterophilous": ["chameleon-filtered"],
        "actor": ["actor"],
        "distant": ["chains", "distance"],
    }
    for recipe, names in tasks.items():
        for data in names:
            place = {"data": data, "choose": True}
            add(data, "finite T, or lazy walk?", recipe, "entropic", "lazy walk", **place)
            add(data, "each node its own drive?", recipe, "entropic", "permuted", **place)
    mines = {"data": "minesweeper (ROC AUC)", "choose": True}
    add("minesweeper", "finite T, or T = ∞?", "minesweeper", "entropic", "linear step", **mines)
    add("minesweeper", "each node its own drive?", "minesweeper", "entropic", "permuted", **mines)
    return markdown(["network and data", "question", "answer, points (95 % interval)"], rows)


# The run that each table compares the others with; in "chosen", validation chooses their settings.
COMPARED = {
    "controls_cora": "step, T = 100",
    "learned_weights_deep": "GCNII",
    "paper_equation": "no step",
    "thermostat_search": "PairNorm, individually, scale 3",
    "thermostat": "gain 6, T = 1",
    "thermostat_searched": "entropic, T = 1",
    "thermostat_wide": "entropic, T = 1",
    "thermostat_depth": "entropic, T = 1",
    "mirrored_search": "no step [3e-4]",
    "mirrored": "no step",
    "mirrored_deep": "no step",
    "remedies": "plain GCN",
}
CHOSEN = {
    "missing_features": "lazy walk",
    "corrupted": "lazy walk",
    "distant": "lazy walk",
    "heterophilous": "lazy walk",
    "actor": "lazy walk",
    "minesweeper": "no step",
}
RIVALS = {
    "cora": "APPNP, consistency",
    "citeseer": "APPNP, consistency",
    "pubmed": "16 hops, restart",
    "start": "APPNP, consistency",
    "ablation": "ours, consistency",
    "random_splits": "APPNP, consistency",
    "harness_check": "GCN",
    "harness_check_pubmed": "ours, consistency",
}
TASKS = ("links", "links_pubmed", "mutag", "solubility")
BY_DEPTH = ("deep_models", "wrap_defaults", "advice")
PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "evidence": {
        "regimes": regimes,
        "thermostat_energies": thermostat_energies,
        "map_of_temperatures": map_of_temperatures,
        "measures": measures,
        **{name: partial(compare, EVIDENCE / f"{name}.csv", of) for name, of in COMPARED.items()},
        **{
            name: partial(compare, EVIDENCE / f"{name}.csv", of, choose=True)
            for name, of in CHOSEN.items()
        },
        **{name: partial(by_depth, EVIDENCE / f"{name}.csv") for name in BY_DEPTH},
    },
    "tasks": {name: partial(by_depth, HERE / "tasks" / f"{name}.csv") for name in TASKS},
    "points": {name: partial(compare, POINTS / f"{name}.csv", of) for name, of in RIVALS.items()},
}

if __name__ == "__main__":
    main()
