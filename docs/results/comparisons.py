"""Tables of trained networks, from the files that ``eamp sweep`` writes."""

import math
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from eamp.experiments import statistics
from eamp.experiments.statistics import Comparison, p_text
from eamp.training import METRICS


def cells(raw: Path) -> pd.DataFrame | None:
    """Return the trained networks in a file, or ``None`` if there are none yet."""
    return with_metric(pd.read_csv(raw)) if raw.exists() else None


def with_metric(table: pd.DataFrame) -> pd.DataFrame:
    """Add ``test`` and ``best_val``, and name metrics other than accuracy behind the data.

    Of ``best_val``, higher values are better.
    """
    accuracies = {"test": "test_accuracy", "best_val": "best_val_accuracy"}  # of classes only
    table = table.assign(**{new: table.get(old, math.nan) for new, old in accuracies.items()})
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
    return mean_and_deviation(values, 100, 1)


def mean_and_deviation(values: pd.Series, unit: float, digits: int) -> str:
    """Return mean ± sample standard deviation, times ``unit``."""
    mean = f"{unit * values.mean():.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {unit * values.std():.{digits}f}"


def reached(part: pd.DataFrame) -> str:
    """Return the mean test value of networks with one metric: shares in percent, others as is."""
    shares = METRICS[part["metric"].iloc[0]].percent
    return percent(part["test"]) if shares else mean_and_deviation(part["test"], 1, 3)


def change_of(found: Comparison, holm: float) -> tuple[str, str, str]:
    """Return mean, 95 % interval and Wilcoxon's p-values of paired differences, in percent."""
    if math.isnan(found.p_wilcoxon):
        return "" if math.isnan(found.change) else f"{100 * found.change:+.1f}", "", ""
    known = not math.isnan(found.low)
    interval = f"{100 * found.low:+.1f} to {100 * found.high:+.1f}" if known else ""
    p_values = f"{p_text(found.p_wilcoxon)} ({p_text(holm)})"
    return f"{100 * found.change:+.1f}", interval, p_values


def not_run(raw: Path) -> str:
    """Return the command that makes the raw figures of a table."""
    recipe, page = raw.stem, raw.parent.name
    return (
        f"Not trained yet: `eamp sweep docs/results/{page}/{recipe}.yaml --output out/{recipe}`, "
        f"then copy `out/{recipe}/cells.csv` to `{raw.name}` here.\n"
    )


def sources(raw: Path) -> str:
    """Return a line of links to the raw figures of a table, and to their recipe if there is one."""
    recipe = raw.with_suffix(".yaml")
    links = [f"[raw figures]({raw.name})"]
    return f"\n{' · '.join([f'[recipe]({recipe.name})'] * recipe.exists() + links)}\n"


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


def compare(raw: Path, reference: str, choose: bool = False, data: str | None = None) -> str:
    """Compare every network with the one named ``reference``, on the same data, seed and split.

    With ``choose``, every method has one row per dataset: the setting that validates best. With
    ``data``, the table is about one of the datasets.
    """
    table = cells(raw)
    if table is None:
        return not_run(raw)
    table = table if data is None else table[table["data"] == data]
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
    head += [f"from *{reference}*", "95 % interval", "p (Holm)"]
    return markdown(head, rows) + sources(raw)


def by_depth(raw: Path) -> str:
    """Show each method at every depth, in the setting that validates best there."""
    table = cells(raw)
    if table is None:
        return not_run(raw)
    table["method"] = table["name"].str.split(" [", regex=False).str[0]
    names = list(table["data"].unique())
    places = sorted(
        table.groupby(["data", "depth"]).groups, key=lambda at: (names.index(at[0]), at[1])
    )
    rows = []
    for method, part in table.groupby("method", sort=False):
        row = [str(method).replace("*", "\\*")]
        for data, depth in places:
            at = part[(part["data"] == data) & (part["depth"] == depth)]
            if at.empty:
                row.append("")
                continue
            best = at.groupby("name")["best_val"].mean().idxmax()
            chosen = at[at["name"] == best]
            row.append(f"{reached(chosen)} ({len(chosen)})")
        rows.append(row)
    head = ["method", *(f"{data}, {depth} layers" for data, depth in places)]
    return markdown(head, rows) + sources(raw)


def searched(raw: Path) -> str:
    """Show the highest validation accuracy of every setting, the best of each method in bold."""
    table = cells(raw)
    if table is None:
        return not_run(raw)
    table["method"] = table["name"].str.split(" [", regex=False).str[0]
    means = table.groupby(["data", "depth", "method", "name"], sort=False)["best_val"].mean()
    best = set(means.groupby(["data", "depth", "method"]).idxmax())
    names = list(dict.fromkeys(table["data"]))
    places = sorted({key[:2] for key in means.index}, key=lambda at: (names.index(at[0]), at[1]))
    rows = []
    for method, name in dict.fromkeys((method, name) for *_, method, name in means.index):
        row = [str(name)]
        for place in places:
            key = (*place, method, name)
            figure = f"{100 * means[key]:.1f}" if key in means.index else ""
            row.append(f"**{figure}**" if key in best else figure)
        rows.append(row)
    head = ["setting", *(f"{data}, {depth} layers" for data, depth in places)]
    return markdown(head, rows) + sources(raw)


def runs_of(
    raw: Path, name: str, data: str, depth: int | None = None, *, choose: bool = False
) -> pd.DataFrame:
    """Return the networks of one row of a table; without a depth that is given, the deepest.

    With ``choose``, these have the setting, and without ``depth`` also the depth, that validates
    best.
    """
    table = cells(raw)
    assert table is not None
    table = table if depth is None else table[table["depth"] == depth]
    table = chosen(table) if choose else table
    part = table[(table["name"] == name) & (table["data"] == data)]
    return part[part["depth"] == part["depth"].max()]


def pairs_of(
    raw: Path,
    one: str,
    other: str,
    *,
    data: str = "cora",
    depth: int | None = None,
    choose: bool = False,
) -> Comparison:
    """Return the paired comparison of two networks; without any pair if they are not trained."""
    if not raw.exists():
        return statistics.paired([])
    parts = [runs_of(raw, name, data, depth, choose=choose) for name in (one, other)]
    keys = [column for column in ("seed", "split") if column in parts[0]]
    return statistics.paired(statistics.differences(*parts, keys, "test"))


def verdicts(found: list[Comparison]) -> list[tuple[str, str, str, str]]:
    """Return difference, pairs, p-value and conclusion of each of a family of comparisons.

    The p-values are those of the paired t-test with Holm's correction over the family.
    """
    rows = []
    for one, p in zip(found, statistics.holm([each.p_t for each in found]), strict=True):
        if not one.pairs:
            rows.append(("not trained yet", "", "", ""))
            continue
        change, interval, _ = change_of(one, math.nan)
        better = "**better**" if one.change > 0 else "worse"
        words = better if p < 0.05 else "not separated"
        rows.append((f"{change} ({interval})", str(one.pairs), p_text(p), words))
    return rows
