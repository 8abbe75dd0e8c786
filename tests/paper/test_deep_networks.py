from pathlib import Path

import pandas as pd

from eamp.paper.deep_networks import TRAINING, advice, deep_networks, deep_networks_table
from eamp.paper.frames import checked, read_frame
from eamp.paper.reproduce import recipe
from eamp.report.table import markdown

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "deep_networks"


def cells(accuracies: dict[str, tuple[float, float]]) -> pd.DataFrame:
    """Two seeds at depths 2 and 64, .01 above and below these accuracies."""
    rows = [
        {"data": "cora", "name": name, "depth": depth, "seed": seed, "test_accuracy": value + away}
        for name, values in accuracies.items()
        for depth, value in zip((2, 64), values, strict=True)
        for seed, away in enumerate((0.01, -0.01))
    ]
    table = pd.DataFrame(rows)
    return table.assign(best_val_accuracy=table["test_accuracy"])


def test_the_sentence_follows_the_numbers() -> None:
    found = {"Basic GCN": (0.8, 0.2), "GCNII": (0.79, 0.84), "Mine": (0.86, 0.83)}
    assert advice(cells(found)) == (
        "With 64 layers, GCNII (.840 ± .014) and Mine (.830 ± .014) are the most accurate on Cora; "
        "Basic GCN has .200 ± .014. Of all depths, validation chooses 2 layers of Mine "
        "(.860 ± .014), and for Basic GCN 2 layers (.800 ± .014)."
    )
    turned = advice(cells({"Basic GCN": (0.7, 0.9), "GCNII": (0.79, 0.2)}))
    assert turned == (
        "With 64 layers, Basic GCN (.900 ± .014) is the most accurate on Cora; GCNII has "
        ".200 ± .014. Of all depths, validation chooses 64 layers of Basic GCN (.900 ± .014)."
    )
    others = advice(cells({"A": (0.7, 0.9), "B": (0.7, 0.5), "C": (0.7, 0.4), "D": (0.7, 0.3)}))
    assert "on Cora; the others have .500 ± .014 (B) to .300 ± .014 (D). Of all" in others
    near = advice(cells({"A": (0.7, 0.9), "B": (0.7, 0.9), "C": (0.7, 0.9)}))
    assert "A (.900 ± .014), B (.900 ± .014) and C (.900 ± .014) are" in near
    assert advice(pd.DataFrame()) == ""


def test_the_chart_names_seeds_and_training() -> None:
    figure = deep_networks(cells({"Basic GCN": (0.8, 0.2)}))
    assert figure is not None
    assert "mean over 2 seeds (numbers 0, 1). 100 epochs, width 64" in figure.caption
    assert deep_networks(pd.DataFrame()) is None


def test_the_caption_says_how_the_recipe_trains() -> None:
    trained = recipe("depth", seeds=3)
    assert len(trained) == 8 * 6 * 3
    assert {(cell.data, cell.width, cell.normalize_features) for cell in trained} == {
        ("cora", 64, True)
    }
    rates = {(cell.name, cell.depth, cell.rules.learning_rate) for cell in trained}
    slow_from = {
        "Entropic GCN, strong step": 16,
        "Basic GCN, weights × 1.6": 16,
        "Mirrored GCN": 8,
    }
    for network, first in slow_from.items():
        own = {(depth, rate) for name, depth, rate in rates if name == network}
        assert own == {(d, 1e-3 if d < first else 3e-4) for d in (2, 4, 8, 16, 32, 64)}
    assert {rate for name, _, rate in rates if name not in slow_from} == {1e-3, 0.01}
    for cell in trained:
        rules, deep = cell.rules, cell.model in ("gcnii", "entropic-deep-gcn")
        assert (rules.epochs, rules.patience, rules.schedule) == (100, None, "none")
        assert (rules.reduction, cell.dropout) == (("mean", 0.6) if deep else ("sum", 0.0))
        assert rules.weight_decay == (5e-4 if deep else 0.0)
        assert rules.label_smoothing == (0.2 if cell.name in slow_from else 0.0)
        assert rules.conv_decay == (0.01 if cell.model == "gcnii" else None)
    assert "100 epochs, width 64" in TRAINING
    assert "dropout .6" in TRAINING


def test_the_readme_and_its_page_print_the_numbers_of_the_committed_run() -> None:
    table = checked(read_frame(RESULTS / "deep_cells.csv"), "deep_cells")
    wanted = [(cell.name, cell.depth, cell.seed) for cell in recipe("depth", seeds=3)]
    assert sorted(wanted) == sorted(zip(table["name"], table["depth"], table["seed"], strict=True))
    page = (RESULTS / "README.md").read_text(encoding="utf-8")
    for text in (page, (ROOT / "README.md").read_text(encoding="utf-8")):
        assert advice(table) in text.replace("\n", " ")  # a page has one sentence per line
    printed = deep_networks_table(table)
    assert printed is not None
    assert markdown(printed) in page
    assert TRAINING.replace(". ", ".\n") in page
    # "With up to 32 layers it is at least as accurate, with 64 it does not train."
    means = table.groupby(["name", "depth"])["test_accuracy"].mean()
    step, without = means["Entropic GCN, strong step"], means["Basic GCN, weights × 1.6"]
    assert (without - step).loc[:32].min() > 0
    assert without[64] < 0.3 < 0.6 < step[64]


def test_networks_that_diverged_are_not_recommended() -> None:
    read = [0.81, 0.2, 0.9, 0.95, 0.7, 0.75]
    rows = {"data": "cora", "depth": [2, 64] * 3, "seed": 0}
    rows["name"] = [name for name in ("Basic GCN", "GCNII", "PairNorm") for _ in range(2)]
    rows |= {"test_accuracy": read, "best_val_accuracy": read}
    rows["diverged"] = [None, None, 3, 3, None, None]
    said = advice(pd.DataFrame(rows))
    assert "GCNII" not in said
    assert "With 64 layers, PairNorm (.750) is the most accurate on Cora" in said
    assert advice(pd.DataFrame(rows).assign(diverged=3)) == ""
