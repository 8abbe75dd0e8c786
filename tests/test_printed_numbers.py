"""Every table of the README and of docs/results is made again from its raw figures."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from eamp.experiments.recipe import load_recipe
from eamp.experiments.schema import JSON_COLUMNS
from eamp.paper import tables as paper_tables
from eamp.paper.frames import load_frames
from eamp.report import table as report_table
from printed import (
    CELLS,
    COMPARISONS,
    MAP,
    PLAIN,
    RESIDUAL,
    RESULTS,
    ROOT,
    STEP,
    TABLES,
    THROUGH,
    leading_zero,
    mean,
    script,
    text_of,
    trained,
)


def rows_of(text: str) -> Iterator[list[str]]:
    """Return the cells of every row of every Markdown table."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


CELL = ("data", "name", "depth", "seed", "split")  # what tells the networks of a recipe apart


@pytest.mark.parametrize("path", TABLES.PAGES)
def test_tables_of_trained_networks(path: str) -> None:
    page = text_of(path)
    assert TABLES.filled(page, path) == page, "run python docs/results/tables.py"
    assert set(re.findall(r"<!-- table: (\w+) -->", page)) == set(TABLES.PAGES[path])


def test_tables_name_other_metrics(tmp_path: Path) -> None:
    rows = [
        ("cora", "step [a]", 0.8, 0.5, None, None, None),
        ("cora", "step [b]", 0.9, 0.6, None, None, None),
        ("mines", "step [a]", 0.8, 0.8, "roc_auc", 0.91, 0.7),
        ("mines", "step [b]", 0.8, 0.8, "roc_auc", 0.97, 0.75),
    ]
    names = ["data", "name", "best_val_accuracy", "test_accuracy"]
    names += ["metric", "best_val_metric", "test_metric"]
    table = pd.DataFrame(rows, columns=names).assign(depth=2, seed=0, epochs=5)
    table.to_csv(tmp_path / "study.csv")
    compared, chosen = (
        COMPARISONS.compare(tmp_path / "study.csv", "step [a]"),
        COMPARISONS.by_depth(tmp_path / "study.csv"),
    )
    assert "| test metric |" in compared
    assert "| cora | step [b] | 2 | 60.0 | 1 | 5 | +10.0 |" in compared
    assert "| mines (ROC AUC) | step [b] | 2 | 75.0 | 1 | 5 | +5.0 |" in compared
    assert "| method | cora, 2 layers | mines (ROC AUC), 2 layers |" in chosen
    assert "| step | 60.0 (1) | 75.0 (1) |" in chosen
    errors = table.assign(
        metric="mae", test_metric=[1.25, 0.75] * 2, best_val_metric=[1.2, 0.7] * 2
    )
    errors.to_csv(tmp_path / "errors.csv")  # no share, and lower is better
    assert "| step | 0.750 (1) | 0.750 (1) |" in COMPARISONS.by_depth(tmp_path / "errors.csv")
    table[table["metric"].isna()].drop(columns=names[4:]).to_csv(tmp_path / "study.csv")
    assert "| test accuracy |" in COMPARISONS.compare(tmp_path / "study.csv", "step [a]")


def test_tables_choose_settings_by_validation(tmp_path: Path) -> None:
    rows = [
        ("none", 2, 0.5, 0.5),
        ("step [g = 1]", 2, 0.6, 0.9),
        ("step [g = 2]", 2, 0.8, 0.6),
        ("step [g = 2]", 4, 0.7, 0.7),
    ]
    table = pd.DataFrame(rows, columns=["name", "depth", "best_val_accuracy", "test_accuracy"])
    seeds = [table.assign(seed=seed, data="cora", epochs=5) for seed in (0, 1)]
    pd.concat(seeds).to_csv(tmp_path / "study.csv")
    made = list(rows_of(COMPARISONS.compare(tmp_path / "study.csv", "none", choose=True)))
    assert [row[:7] for row in made[2:]] == [
        ["cora", "none", "", "2", "50.0 ± 0.0", "2", "5"],
        ["cora", "step", "g = 2", "2", "60.0 ± 0.0", "2", "5"],
    ]
    assert made[3][7] == "+10.0"


@pytest.mark.parametrize("page", [page for page in TABLES.PAGES if page != "README.md"])
def test_every_recipe_has_a_table(page: str) -> None:
    folder = (ROOT / page).parent
    for path in folder.glob("*.yaml"):
        assert path.stem in {*TABLES.PAGES[page], *TABLES.BY_CHANGE}
        assert f"eamp sweep {path.relative_to(ROOT).as_posix()}" in path.read_text("utf-8")
        assert load_recipe(path)[1]


@pytest.mark.parametrize("page", [page for page in TABLES.PAGES if page != "README.md"])
def test_raw_figures_are_those_of_their_recipe(page: str) -> None:
    """A recipe may hold networks that are not trained yet, but no figure comes from elsewhere."""
    for path in (ROOT / page).parent.glob("*.yaml"):
        planned = {(c.data, c.name, c.depth, c.seed, c.split) for c in load_recipe(path)[1]}
        table = pd.read_csv(path.with_suffix(".csv"))
        table["split"] = table["split"].fillna(0).astype(int) if "split" in table else 0
        trained = set(zip(*(table[key] for key in CELL), strict=True))
        assert trained, path
        assert not trained - planned, path


def test_comparisons_are_paired_by_seed_and_split(tmp_path: Path) -> None:
    """At the depth of the row, or at the only depth of the reference."""
    accuracies = {("lazy walk", 8): 0.5, ("lazy walk", 16): 0.6, ("step", 8): 0.7, ("MLP", 1): 0.4}
    rows = [
        {"data": "d", "name": name, "depth": depth, "seed": 0, "split": split, "epochs": 9}
        | {"test_accuracy": accuracy + 0.1 * split, "best_val_accuracy": 0.5}
        for split in range(3)
        for (name, depth), accuracy in accuracies.items()
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "r.csv", index=False)
    head, _, *lines = rows_of(COMPARISONS.compare(tmp_path / "r.csv", "lazy walk"))
    assert head[4:7] == ["splits", "epochs", "from *lazy walk*"]
    assert [line[6] for line in lines] == ["", "", "+20.0", ""]
    head, _, *lines = rows_of(COMPARISONS.compare(tmp_path / "r.csv", "step"))
    assert [line[6] for line in lines] == ["-20.0", "-10.0", "", "-30.0"]


# `deep_networks` has a folder of its own: tests/paper/test_deep_networks.py.
@pytest.mark.parametrize("key", [key for key in paper_tables.KEYS if key != "deep_networks"])
def test_paper(key: str, tmp_path: Path) -> None:
    frames = load_frames(RESULTS / "paper")
    report_table.save(paper_tables.all_tables(frames)[key], tmp_path)
    for made in (tmp_path / f"{key}.md", tmp_path / f"{key}.tex"):
        assert made.read_text("utf-8") == (RESULTS / "paper" / made.name).read_text("utf-8")


def test_depth() -> None:
    page = text_of("docs/results/depth/README.md")
    found = 0
    for title, data in (("Cora", "cora"), ("CiteSeer", "citeseer"), ("PubMed", "pubmed")):
        section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
        for name, layers, accuracy, seeds, ratio in list(rows_of(section))[2:]:
            part = trained(name, int(layers), data)
            assert (accuracy, seeds) == (mean(part), str(len(part))), name
            middle = (part["lowest_energy"] / part["highest_energy"]).median()
            assert float(ratio) == pytest.approx(middle, rel=0.06), name
            found += len(part)
    assert found == len(CELLS)


def test_settings_of_depth_are_those_of_its_recipes() -> None:
    recipes = (RESULTS / "depth").glob("*.yaml")
    cells = [cell for recipe in recipes for cell in load_recipe(recipe)[1]]
    by_place = {(cell.data, cell.depth, cell.name, cell.seed): cell for cell in cells}
    for row in CELLS.to_dict("records"):
        cell: Any = by_place[row["data"], row["depth"], row["name"], row["seed"]]
        for column in ("model", "width", "dropout", "protocol", "normalize_features"):
            assert row[column] == getattr(cell, column)
        for column in JSON_COLUMNS:
            given = row[column] if isinstance(row[column], str) else "null"
            assert json.loads(given) == getattr(cell, column)


def test_map() -> None:
    study = script(ROOT / "examples" / "where_it_helps.py")
    rules = text_of("docs/results/depth/where_it_helps.rule.md")
    assert rules.endswith(f"\n\n{study.depth_text(MAP)}")
    points = study.by_point(study.gains(MAP))
    # One step of eight: the fits take a second each.
    main = (points["network"] == "Identity") & (points["gain"] == 0.9) & (points["temperature"] < 2)
    assert study.rule_text(points[main], study.POINT).splitlines()[-2:] == [
        line for line in rules.splitlines() if line.startswith("| Identity | g = 0.9, T = 1 |")
    ]

    page = text_of("docs/results/depth/where_it_helps.md")
    for temperature, name in ((1.0, "1"), (1e6, "∞")):
        at = points[(points["network"] == "Identity") & (points["temperature"] == temperature)]
        means = at[at["gain"] == 0.9].groupby("depth")["gained"].mean()
        values = leading_zero(" | ".join(f"{value:+.1f}" for value in means))
        assert f"| g = .9, T = {name} | {values} |" in page
    best = {tuple(row[1:5]): row[5:] for row in rows_of(rules) if row[0] == "Identity"}
    chosen = [row for row in rows_of(page) if len(row) == 7][2:]
    assert len(chosen) == 9
    for signal, homophily, alone, *others in (map(unmarked, row) for row in chosen):
        bare, _, half, finite, linear = best[decimal(signal), "3.0", "0.1", decimal(homophily)]
        assert others == [bare, half, finite, linear]
        assert f"{alone} (2)" == best[decimal(signal), "0.0", "0.1", "0.0"][0]


def unmarked(text: str) -> str:
    return text.replace("*", "")


def decimal(text: str) -> str:
    return str(float(text))


def test_u_curve() -> None:
    table = pd.read_csv(RESULTS / "depth" / "u_curve.accuracies.csv").set_index("network")
    rows = [row for row in rows_of(text_of("docs/results/depth/u_curve.md")) if len(row) == 5]
    assert [row[0] for row in rows[2:]] == list(table.index)
    for name, *printed in rows[2:]:
        columns = ("test_accuracy", "selected_epoch", "last_test_accuracy", "last_train_loss")
        given = table.loc[name, list(columns)]
        for column, value in zip(columns, printed, strict=True):
            expected = pytest.approx(given[column], rel=0.006, abs=0.0006)
            assert float(value) == expected, (name, column)


@pytest.mark.parametrize("path", ["README.md", "docs/scale.md"])
def test_speed(path: str) -> None:
    """Every "median (fastest)" of a section on speed is a pair of the benchmark."""
    pairs: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            if {"median", "fastest"} <= set(value):
                pairs.add(f"{value['median']:.2f} ({value['fastest']:.2f})")
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    collect(json.loads(text_of("benchmarks/results.json")))
    section = text_of(path).split("## Speed")[1].split("\n## ")[0]
    printed = re.findall(r"\d+\.\d\d \(\d+\.\d\d\)", section)
    assert len(printed) > 10
    assert set(printed) <= pairs


# The first two columns of the table of pairs, and the networks that they mean.
PAIRS: dict[str, tuple[str, str]] = {
    "plain, orthogonal | plain, identity": ("plain, orthogonal", PLAIN),
    "plain, identity | with the step": (PLAIN, f"{PLAIN}, step"),
    "plain, identity | with the step, differentiated through": (PLAIN, THROUGH),
    "with the step, detached | differentiated through": (f"{PLAIN}, step", THROUGH),
    "initial residual | with the step": (RESIDUAL, STEP),
    "initial residual, step | differentiated through": (STEP, f"{STEP} differentiated"),
    "initial residual, step | settings found by a search": (STEP, f"{STEP}, searched"),
    "initial residual, step | without the ReLU": (STEP, f"{RESIDUAL}, linear, step"),
    "initial residual, step | and one shared layer with weights": (
        STEP,
        f"{RESIDUAL}, one shared layer, step",
    ),
    "GCNII | entropic GCNII": ("GCNII", "entropic GCNII"),
    "GCNII | initial residual, step": ("GCNII", STEP),
    "GCNII | initial residual, step, searched": ("GCNII", f"{STEP}, searched"),
    "CiteSeer: initial residual | with the step": (RESIDUAL, STEP),
    "CiteSeer: GCNII | initial residual, step": ("GCNII", STEP),
    "PubMed: GCNII | initial residual, step": ("GCNII", STEP),
    "Cora, 64 layers | 256 layers (initial residual, step)": (STEP, STEP),
    "Cora, 64 layers | 1000 layers (initial residual, step)": (STEP, STEP),
}


@pytest.mark.parametrize("place", PAIRS)
def test_pairs(place: str) -> None:
    data = place.split(":")[0].lower() if ":" in place else "cora"
    depth = int(found[1]) if (found := re.search(r"(\d+) layers \(", place)) else 64
    one, other = trained(PAIRS[place][0], 64, data), trained(PAIRS[place][1], depth, data)
    difference = (100 * (other["test_accuracy"] - one["test_accuracy"])).dropna()
    values = f"{difference.mean():+.1f} ± {difference.std():.1f} ({len(difference)} seeds)"
    assert f"| {place} | {values} |" in text_of("docs/results/depth/README.md").splitlines()


def test_every_pair_is_checked() -> None:
    section = text_of("docs/results/depth/README.md").split("## What each ingredient")[1]
    assert len(list(rows_of(section.split("\n## ")[0]))) - 2 == len(PAIRS)
