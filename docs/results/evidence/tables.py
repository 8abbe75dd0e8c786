"""Fill the tables of ``README.md`` from the raw figures beside it, without any training.

python docs/results/evidence/tables.py

A table stands between ``<!-- table: name -->`` and ``<!-- end -->``.
"""

import math
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from eamp.experiments import statistics
from eamp.experiments.statistics import Comparison, p_text
from eamp.training import METRICS

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
MAP = HERE.parent / "depth" / "where_it_helps.runs.csv"
REGION = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
GRAPHS = ["homophily", "signal", "degree", "label_rate"]


def main() -> None:
    """Write the page again, with its tables made anew."""
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")


def filled(text: str) -> str:
    """Return a page with every table made anew."""
    return REGION.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}", text)


def cells(recipe: str) -> pd.DataFrame | None:
    """Return the trained networks of a recipe, or ``None`` if there are none yet."""
    path = HERE / f"{recipe}.csv"
    return with_metric(pd.read_csv(path)) if path.exists() else None


def with_metric(table: pd.DataFrame) -> pd.DataFrame:
    """Add ``test`` and ``best_val``, and name metrics other than accuracy behind the data.

    Of ``best_val``, higher values are better.
    """
    table = table.assign(test=table["test_accuracy"], best_val=table["best_val_accuracy"])
    if "metric" not in table:
        return table.assign(metric="accuracy")
    own, table["metric"] = table["metric"].notna(), table["metric"].fillna("accuracy")
    metrics = table["metric"].map(METRICS)
    merits = [m.merit(v) for m, v in zip(metrics, table["best_val_metric"], strict=True)]
    table["test"] = table["test_metric"].where(own, table["test"])
    table["best_val"] = pd.Series(merits, table.index).where(own, table["best_val"])
    named = table["data"] + " (" + metrics.map(lambda metric: metric.words) + ")"
    return table.assign(data=table["data"].where(table["metric"] == "accuracy", named))


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(head)]
    lines = [lines[0], ["---"] * len(lines[0]), *map(list, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def percent(values: pd.Series) -> str:
    """Return mean ± sample standard deviation, in percent."""
    mean = f"{100 * values.mean():.1f}"
    return mean if len(values) < 2 else f"{mean} ± {100 * values.std():.1f}"


def change_of(found: Comparison, holm: float) -> tuple[str, str, str]:
    """Return mean, 95 % interval and Wilcoxon's p-values of paired differences, in percent."""
    if math.isnan(found.p_wilcoxon):
        return "" if math.isnan(found.change) else f"{100 * found.change:+.1f}", "", ""
    known = not math.isnan(found.low)
    interval = f"{100 * found.low:+.1f} to {100 * found.high:+.1f}" if known else ""
    p_values = f"{p_text(found.p_wilcoxon)} ({p_text(holm)})"
    return f"{100 * found.change:+.1f}", interval, p_values


def number(value: float) -> str:
    """Return three digits of a number, or all of a large one."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def not_run(recipe: str) -> str:
    """Return the command that makes the raw figures of a table."""
    return (
        f"Not trained yet: `eamp sweep docs/results/evidence/{recipe}.yaml --output out/{recipe}`, "
        f"then copy `out/{recipe}/cells.csv` to `{recipe}.csv` here.\n"
    )


def chosen(table: pd.DataFrame) -> pd.DataFrame:
    """Keep the setting and depth of every method that validates best, on each dataset.

    A setting stands in brackets behind the name of its method.
    """
    parts = table["name"].str.removesuffix("]").str.partition(" [")
    table = table.assign(name=parts[0], setting=parts[2])
    means = table.groupby(["data", "name", "setting", "depth"], sort=False)["best_val"].mean()
    best = means.groupby(["data", "name"]).idxmax()
    keys = pd.MultiIndex.from_frame(table[["data", "name", "setting", "depth"]])
    return table[keys.isin(list(best))]


def compare(recipe: str, reference: str, choose: bool = False) -> str:
    """Compare every network with the one named ``reference``, on the same data, seed and split.

    With ``choose``, every method has one row per dataset: the setting that validates best.
    """
    table = cells(recipe)
    if table is None:
        return not_run(recipe)
    table = chosen(table) if choose else table.assign(setting="")
    by, rows = ["data", "name", "depth"], []
    compared = statistics.compare(table, reference, reading="test").to_dict("records")
    for (place, part), row in zip(table.groupby(by, sort=False), compared, strict=True):
        found = Comparison(**{field: row[field] for field in Comparison.__annotations__})
        setting = [part["setting"].iloc[0]] if choose else []
        figures = [percent(part["test"]), str(len(part)), f"{part['epochs'].mean():.0f}"]
        change = change_of(found, row["p_wilcoxon_holm"])
        rows.append([place[0], place[1], *setting, str(place[2]), *figures, *change])
    figure = "test accuracy" if (table["metric"] == "accuracy").all() else "test metric"
    runs = "splits" if "split" in table and table["split"].nunique() > 1 else "seeds"
    head = ["data", "network", *["setting"][: int(choose)], "layers", figure, runs, "epochs"]
    return markdown([*head, f"from *{reference}*", "95 % interval", "p (Holm)"], rows)


def by_depth(recipe: str) -> str:
    """Show each method at every depth, in the setting that validates best there."""
    table = cells(recipe)
    if table is None:
        return not_run(recipe)
    table["method"] = table["name"].str.split(" [", regex=False).str[0]
    places = list(table.groupby(["data", "depth"], sort=False).groups)
    rows = []
    for method, part in table.groupby("method", sort=False):
        row = [str(method)]
        for data, depth in places:
            at = part[(part["data"] == data) & (part["depth"] == depth)]
            if at.empty:
                row.append("")
                continue
            best = at.groupby("name")["best_val"].mean().idxmax()
            chosen = at[at["name"] == best]["test"]
            row.append(f"{percent(chosen)} ({len(chosen)})")
        rows.append(row)
    return markdown(["method", *(f"{data}, {depth} layers" for data, depth in places)], rows)


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
    table = pd.read_csv(HERE / "measures.csv")
    rows = zip(table["quantity"], table["setting"], table["value"].map(number), strict=True)
    return markdown(["quantity", "setting", "value"], rows)


def thermostat_energies() -> str:
    """Show the energies that trained plain stacks have in their inner layers."""
    path = HERE / "thermostat_searched.layers.csv"
    if not path.exists():
        return not_run("thermostat_searched")
    table = pd.read_csv(path)
    inner = table[table["layer"].between(9, 56)]
    rows = []
    for name, part in inner.groupby("name", sort=False):
        spread = part["selected_energy"].quantile([0.1, 0.5, 0.9])
        rows.append([str(name), *(f"{value:.2g}" for value in spread)])
    return markdown(["network", "lowest tenth below", "median", "highest tenth above"], rows)


def runs_of(recipe: str, name: str, data: str, choose: bool) -> pd.DataFrame:
    """Return the networks of one row of a table; without a depth that is chosen, the deepest."""
    table = cells(recipe)
    assert table is not None
    table = chosen(table) if choose else table
    part = table[(table["name"] == name) & (table["data"] == data)]
    return part[part["depth"] == part["depth"].max()]


def verdict(recipe: str, one: str, other: str, data: str = "cora", choose: bool = False) -> str:
    """Return whether ``one`` is better than ``other``, with its paired difference in points."""
    parts = [runs_of(recipe, name, data, choose) for name in (one, other)]
    keys = [column for column in ("seed", "split") if column in parts[0]]
    found = statistics.paired(statistics.differences(*parts, keys, "test"))
    words = "yes" if found.low > 0 else "no, it costs" if found.high < 0 else "no difference shown"
    change, interval, _ = change_of(found, math.nan)
    return f"{words}: {change} ({interval}), {found.pairs} pairs"


def regimes() -> str:
    """Show where the entropic step does what its controls do not."""
    none = "no step, initial scale searched"
    rows = []

    def add(regime: str, question: str, recipe: str, *names: str, **place: Any) -> None:
        known = cells(recipe) is not None
        found = verdict(recipe, *names, **place) if known else f"not trained yet ({recipe})"
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
    tasks = {
        "missing_features": ["missing_features:cora"],
        "corrupted": ["corrupted_features=0.3:cora"],
        "heterophilous": ["chameleon-filtered"],
        "distant": ["chains", "distance"],
    }
    for recipe, names in tasks.items():
        for data in names:
            place = {"data": data, "choose": True}
            add(data, "finite T, or lazy walk?", recipe, "entropic", "lazy walk", **place)
            add(data, "each node its own drive?", recipe, "entropic", "permuted", **place)
    return markdown(["network and data", "question", "answer, points (95 % interval)"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "regimes": regimes,
    "controls_cora": partial(compare, "controls_cora", "step, T = 100"),
    "learned_weights_deep": partial(compare, "learned_weights_deep", "GCNII"),
    "gcnii_authors": partial(compare, "gcnii_authors", "GCNII"),
    "gcnii_pubmed": partial(compare, "gcnii_pubmed", "GCNII"),
    "paper_equation": partial(compare, "paper_equation", "no step"),
    "deep_models": partial(by_depth, "deep_models"),
    "thermostat_search": partial(compare, "thermostat_search", "PairNorm, individually, scale 3"),
    "thermostat": partial(compare, "thermostat", "gain 6, T = 1"),
    "thermostat_searched": partial(compare, "thermostat_searched", "entropic, T = 1"),
    "thermostat_wide": partial(compare, "thermostat_wide", "entropic, T = 1"),
    "thermostat_energies": thermostat_energies,
    "wrap_defaults": partial(by_depth, "wrap_defaults"),
    "missing_features": partial(compare, "missing_features", "lazy walk", choose=True),
    "corrupted": partial(compare, "corrupted", "lazy walk", choose=True),
    "distant": partial(compare, "distant", "lazy walk", choose=True),
    "heterophilous": partial(compare, "heterophilous", "lazy walk", choose=True),
    "minesweeper": partial(compare, "minesweeper", "no step", choose=True),
    "remedies": partial(compare, "remedies", "plain GCN"),
    "advice": partial(by_depth, "advice"),
    "map_of_temperatures": map_of_temperatures,
    "measures": measures,
}

if __name__ == "__main__":
    main()
