"""The tables of docs/results/typed are made again from their raw figures."""

import pandas as pd

from printed import RESULTS, script, text_of

TABLES = script(RESULTS / "typed" / "tables.py")
RUNS = pd.read_csv(RESULTS / "typed" / "accuracies.csv")


def test_the_page_has_the_tables_of_its_raw_figures() -> None:
    page = text_of("docs/results/typed/README.md")
    assert TABLES.filled(page) == page, "run python docs/results/typed/tables.py"
    assert page.count("\n| ") > 10


def test_the_runs_are_those_that_the_page_describes() -> None:
    assert sorted(RUNS["depth"].unique()) == [2, 4, 8, 16]
    assert set(RUNS["step"]) == {"without", "with", "linear", "permuted", "residual"}
    assert (RUNS.groupby(["depth", "step"])["seed"].nunique() >= 2).all()
    assert RUNS["epoch"].max() <= 40
