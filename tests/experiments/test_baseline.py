"""The best cell of a search, without the entropy step."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from eamp import cli
from eamp.experiments.baseline import validation_metric, without_step
from eamp.experiments.cell import Cell
from eamp.experiments.store import Store

pytestmark = pytest.mark.usefixtures("in_this_process")

CELL = Cell("gcn", "csbm:nodes=60,features=8", 2, width=8, protocol="paper", changes={"epochs": 10})


@pytest.fixture(scope="module")
def bare_metric() -> float:
    return mean(replace(CELL, seed=seed).train().val_metric for seed in (0, 1))


@pytest.mark.parametrize(
    ("model", "entropy"),
    [
        ("gcn", {"weight": 3.0, "temperature": 1.0}),
        ("gcn", {"weight": {"schedule": "gain", "of": 0.3}, "temperature": 100.0}),
        ("gcn", {"weight": 3.0, "learn_weight": True}),
        ("entropic-gcn", None),
    ],
)
def test_it_is_the_bare_network(
    model: str, entropy: dict[str, object] | None, tmp_path: Path, bare_metric: float
) -> None:
    bare = without_step(replace(CELL, model=model, entropy=entropy))
    assert bare is not None
    assert validation_metric(bare, 2, Store(tmp_path, "s")) == bare_metric


def test_cells_without_the_step_have_none() -> None:
    for entropy in (None, {"weight": 0}, {"weight": 0.0, "temperature": 1.0}):
        assert without_step(replace(CELL, entropy=entropy)) is None


def test_a_failure_is_told(tmp_path: Path) -> None:
    broken = replace(CELL, entropy={"weight": 0.0, "nonsense": 1})
    with pytest.raises(ValueError, match=r"the baseline failed: csbm.* no option nonsense"):
        validation_metric(broken, 1, Store(tmp_path, "s"))


def test_tune_prints_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[int],
    bare_metric: float,
) -> None:
    options = {"data": CELL.data, "depth": 2, "width": 8, "protocol": "paper"}
    options |= {"changes": json.dumps({"epochs": 10}), "trials": 2, "seeds": 2}
    options |= {"output": tmp_path, "search": json.dumps({"entropy.weight": [1.0, 3.0]})}
    command = ["tune", *(f"--{name}={value}" for name, value in options.items())]
    assert cli.main(command) == 0
    said = capsys.readouterr().out
    assert f"without the entropy step: {100 * bare_metric:.2f} (2 seeds), and " in said
    assert in_this_process == [2, 2]
    assert cli.main(command) == 0  # it is in the store
    assert capsys.readouterr().out == said
    assert in_this_process == [2, 2, 0, 0]
    assert cli.main([*command, "--baseline=false"]) == 0
    assert "not trained (--baseline false)" in capsys.readouterr().out
    # A worker that joins the search finds one study in its folder.
    assert cli.main(["work", "--output", str(tmp_path)]) == 0


def test_tune_without_the_step_prints_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"data": CELL.data, "depth": 2, "width": 8, "changes": '{"epochs": 2}', "trials": 1}
    options |= {"output": tmp_path, "search": json.dumps({"dropout": [0.0]})}
    assert cli.main(["tune", *(f"--{name}={value}" for name, value in options.items())]) == 0
    assert "aseline" not in capsys.readouterr().out
