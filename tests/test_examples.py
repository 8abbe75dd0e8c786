"""The examples run as they stand; the studies among them in their quick form, and only once."""

import json
import runpy
import sys
from pathlib import Path

import pandas as pd
import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
STUDIES = {"u_curve", "where_it_helps"}


@pytest.mark.parametrize(
    "example", [path for path in EXAMPLES if path.stem not in STUDIES], ids=lambda path: path.stem
)
def test_example_runs(
    example: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run(example, monkeypatch)
    assert capsys.readouterr().out


def test_u_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study("u_curve", tmp_path, monkeypatch)
    layers, accuracies = (
        pd.read_csv(tmp_path / "layers.csv"),
        pd.read_csv(tmp_path / "accuracies.csv"),
    )
    assert list(layers) == ["network", "epoch", "layer", "measure", "value"]
    assert not layers.duplicated(["network", "epoch", "layer", "measure"]).any()
    assert list(dict.fromkeys(layers["network"])) == accuracies["network"].tolist()
    # Every network, epoch, layer and measure, all of them known and none negative.
    assert (
        layers.groupby(["network", "epoch", "measure"])["layer"]
        .apply(list)
        .map(lambda found: found == [1, 2, 3, 4, 5])
        .all()
    )
    assert len(layers) == layers["network"].nunique() * 3 * 5 * 7
    assert (layers["value"] >= 0).all()

    values = layers.set_index(["network", "epoch", "layer", "measure"])["value"].unstack()
    assert values["scale_free_energy"].to_numpy() == pytest.approx(
        (values["energy"] / values["norm"] ** 2).to_numpy(), rel=1e-3
    )
    # Before training, networks that differ in the step alone: with it they smooth less.
    last = values.xs((0, 5), level=("epoch", "layer"))["rayleigh_quotient"]
    assert last["Identity + step, g = .9"] > last["Identity"]
    assert (accuracies["epochs"] == 4).all()
    assert accuracies["test_accuracy"].between(0, 1).all()
    assert {json.loads(cell)["depth"] for cell in accuracies["cell"]} == {5}


def test_where_it_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study("where_it_helps", tmp_path, monkeypatch)
    runs = pd.read_csv(tmp_path / "runs.csv")
    point = ["homophily", "depth", "signal", "degree", "label_rate"]
    seen = ["label_homophily", "feature_similarity", "test_accuracy", "val_accuracy", "epochs"]
    assert list(runs) == [*point, "seed", "network", "gain", "temperature", *seen]
    assert runs["test_accuracy"].between(0, 1).all()
    # Every point has, for both seeds and networks, one run without the step and four with it; and beside them the features alone.
    joined = runs[runs["degree"] > 0]
    assert (
        joined.groupby([*point, "seed", "network"])["gain"]
        .apply(list)
        .map(lambda found: found == [0, 0.5, 0.5, 0.9, 0.9])
        .all()
    )
    assert joined.groupby(point).size().tolist() == [20] * 2
    assert len(runs) - len(joined) == 2
    # What is seen of a graph is the same for all networks on it, and tells homophily from heterophily.
    assert (
        (
            joined.groupby(["homophily", "seed"])[
                ["label_homophily", "feature_similarity"]
            ].nunique()
            == 1
        )
        .all()
        .all()
    )
    assert (abs(joined["label_homophily"] - joined["homophily"]) < 0.1).all()
    assert (
        joined[joined["homophily"] == 0.9]["feature_similarity"].min()
        > joined[joined["homophily"] == 0.1]["feature_similarity"].max()
    )

    rows = [
        line
        for line in (tmp_path / "rule.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| Identity | g = ")
    ]
    assert len(rows) == 4 * 2  # every step, fitted for gain and for hits


def study(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a study, then again with nothing left that could train a network: what is there is kept as it is."""
    example = next(path for path in EXAMPLES if path.stem == name)
    run(example, monkeypatch, "--quick", "--output", str(folder))
    assert list(folder.glob("*.png"))
    before = {path.name: path.read_bytes() for path in folder.glob("*.csv")}

    def untouchable(*args: object, **kwargs: object) -> None:
        raise AssertionError("a network that is there already was trained again")

    with monkeypatch.context() as patch:
        patch.setattr("eamp.training.train", untouchable)
        patch.setattr("eamp.experiments.cell.train", untouchable)
        patch.setattr("eamp.report.figure.save", lambda figure, folder: None)
        run(example, patch, "--quick", "--output", str(folder))
    assert {path.name: path.read_bytes() for path in folder.glob("*.csv")} == before


def run(example: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", [str(example), *arguments])
    runpy.run_path(str(example), run_name="__main__")
