"""Names in printed tables are those of the recipe, whatever signs they have."""

import io

import pandas as pd
import pytest
from optuna.distributions import CategoricalDistribution
from optuna.trial import create_trial
from rich.console import Console
from rich.table import Table

from eamp.cli.tables import show
from eamp.experiments.sweep import summary
from eamp.experiments.tune import best_table

NAMES = ["gcn [no residual]", "[/]", "[red]gcn", ":smile:", "\\[b]"]


def printed(table: Table) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    said: str = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO above
    return said


@pytest.mark.parametrize("name", NAMES)
def test_names_with_brackets_are_printed_as_they_are(name: str) -> None:
    row = {"data": f"{name}.npz", "name": name, "depth": 2, "seed": 0}
    accuracies = {"best_val_accuracy": 0.5, "test_accuracy": 0.5}
    assert printed(summary(pd.DataFrame([{**row, **accuracies}]))).count(name) == 2


def test_no_name_is_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a name " + "x" * 200
    row = {"data": "cora", "name": name, "depth": 2, "seed": 0}
    table = summary(pd.DataFrame([{**row, "best_val_accuracy": 0.5, "test_accuracy": 0.5}]))
    monkeypatch.delenv("COLUMNS", raising=False)
    show(table)  # to a pipe
    assert name in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "60")  # as wide as a terminal
    show(table)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 60
    assert said.count("x") >= 200


def test_settings_and_importances_are_printed_as_they_are() -> None:
    choices = {"options.form": CategoricalDistribution(NAMES)}
    trial = create_trial(value=0.5, params={"options.form": "[/]"}, distributions=choices)
    said = printed(best_table([trial], {"options.[bold]": 1.0}))
    assert "options.form [/]" in said
    assert "options.[bold] 1.00" in said
