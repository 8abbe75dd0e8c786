"""Fill the tables of the README and of results pages from raw figures, without any training.

python docs/results/tables.py

A table stands between ``<!-- table: name -->`` and ``<!-- end -->`` in a page.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
from comparisons import (
    by_depth,
    change_of,
    compare,
    markdown,
    not_run,
    pairs_of,
    percent,
    runs_of,
    searched,
    verdicts,
)
from questions import HARDER, QUESTIONS

from eamp.experiments import statistics
from eamp.experiments.statistics import p_text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EVIDENCE, POINTS = HERE / "evidence", HERE / "points"
MAP = HERE / "depth" / "where_it_helps.runs.csv"
REGION = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
GRAPHS = ["homophily", "signal", "degree", "label_rate"]


def main() -> None:
    """Write every page again, with its tables made anew."""
    for path in PAGES:
        page = ROOT / path
        page.write_text(filled(page.read_text("utf-8"), path), "utf-8")


def filled(text: str, path: str) -> str:
    """Return a page with every table made anew."""
    made = PAGES[path]
    return REGION.sub(lambda match: f"{match[1]}\n{made[match[2]]()}\n{match[3]}", text)


def number(value: float) -> str:
    """Return three digits of a number, or all of a large one."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def change_in(data: str) -> str:
    """Return the change in the name of a harder dataset, as ``extra_edges`` in its prefix."""
    return data.split(":")[0].split("=")[0]


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
    """Show, for every kind of network and data, the step beside each of its controls."""
    found = [pairs_of(EVIDENCE / f"{q.recipe}.csv", *q.names, **q.where) for q in QUESTIONS]
    head = ["network and data", "A", "B", "A − B, points (95 % interval)", "pairs", "p (Holm)"]
    rows = [[q.place, q.one, q.other, *v] for q, v in zip(QUESTIONS, verdicts(found), strict=True)]
    return markdown([*head, "A is"], rows)


# Networks of the README: words, the file of their runs, the rows without and with the step, and
# another remedy with the file and the row that it has.
WITH_AND_WITHOUT = (
    (
        "the paper's: Glorot weights, width 256, λ = 1, T = 10",
        ("../paper/cells", "Basic GCN", "Entropic GCN"),
        ("PairNorm", "../paper/cells", "PairNorm"),
    ),
    (
        "plain, initial weights × 1.6, chosen for the step, λ = 2.4 λ\\*, T = 1",
        (
            "thermostat_searched",
            "no step, initial weights of the entropic row",
            "entropic, T = 1",
        ),
        ("scale searched", "thermostat_searched", "no step, initial scale searched"),
    ),
    (
        "plain, mirrored initial weights, λ = .3 λ\\*, T = 1",
        ("mirrored", "no step", "T = 1"),
        ("PairNorm", "mirrored", "PairNorm"),
    ),
    (
        "identity initial weights, T = 100; without the step in its better setting",
        ("controls_cora", "no step, no dropout, decay 5e-4", "step, T = 100"),
        ("skip connection", "controls_cora", "lazy walk"),
    ),
    (
        "initial residual (`entropic-deep-gcn`), T = 100; more residual at most 500 epochs",
        ("../depth/cells", "initial residual", "initial residual, step"),
        ("more residual", "controls_cora", "initial residual .143, no step"),
    ),
    (
        "untrained, plain, a linear readout, λ above λ\\*",
        ("frozen", "no step", "step above λ*"),
        ("mirrored weights", "frozen", "mirrored weights"),
    ),
)


def with_and_without() -> str:
    """Show 64 layers on Cora with and without the step, for several kinds of networks."""

    def figure(raw: str, name: str) -> str:
        runs = runs_of(EVIDENCE / f"{raw}.csv", name, "cora", 64, choose=True)
        return f"{percent(runs['test'])} ({len(runs)})"

    rows = []
    for words, (raw, *names), (remedy, *other) in WITH_AND_WITHOUT:
        figures = [figure(raw, name) for name in names]
        rows.append([words, *figures, f"{remedy}: {figure(*other)}"])
    head = ["network of 64 layers", "without the step", "with it", "instead of it"]
    return markdown(head, rows)


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
    "mirrored_rates": "no step",
    "mirrored_deep": "no step",
    "finite_restart": "no step",
    "strong_steps": "lazy walk",
    "remedies": "plain GCN",
}
CHOSEN = {
    "distant": "lazy walk",
    "heterophilous": "lazy walk",
    "actor": "lazy walk",
    "minesweeper": "no step",
}
# A recipe whose datasets have a table each, named after the recipe and the change of the data.
BY_CHANGE = {"harder": ("lazy walk", HARDER)}
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
BY_DEPTH = ("frozen", "remedies_rates", "deep_models", "wrap_defaults", "advice")
PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"with_and_without": with_and_without},
    "docs/results/evidence/README.md": {
        "regimes": regimes,
        "thermostat_energies": thermostat_energies,
        "map_of_temperatures": map_of_temperatures,
        "measures": measures,
        **{name: partial(compare, EVIDENCE / f"{name}.csv", of) for name, of in COMPARED.items()},
        **{
            name: partial(compare, EVIDENCE / f"{name}.csv", of, choose=True)
            for name, of in CHOSEN.items()
        },
        **{
            f"{name}_{change_in(data)}": partial(
                compare, EVIDENCE / f"{name}.csv", of, choose=True, data=data
            )
            for name, (of, datasets) in BY_CHANGE.items()
            for data in datasets
        },
        **{name: partial(by_depth, EVIDENCE / f"{name}.csv") for name in BY_DEPTH},
        "deep_models_search": partial(searched, EVIDENCE / "deep_models_search.csv"),
    },
    "docs/results/tasks/README.md": {
        name: partial(by_depth, HERE / "tasks" / f"{name}.csv") for name in TASKS
    },
    "docs/results/points/README.md": {
        name: partial(compare, POINTS / f"{name}.csv", of) for name, of in RIVALS.items()
    },
}

if __name__ == "__main__":
    main()
