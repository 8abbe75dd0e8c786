"""The examples run as they are; the studies among them with ``--quick``."""

import json
import runpy
import sys
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if "__main__" in path.read_text("utf-8"))
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
    layers = pd.read_csv(tmp_path / "layers.csv")
    accuracies = pd.read_csv(tmp_path / "accuracies.csv")
    assert list(layers) == ["network", "epoch", "layer", "measure", "value"]
    assert not layers.duplicated(["network", "epoch", "layer", "measure"]).any()
    assert list(dict.fromkeys(layers["network"])) == accuracies["network"].tolist()
    # Every network, epoch, layer and measure is there, and no value is negative.
    numbers = layers.groupby(["network", "epoch", "measure"])["layer"].apply(list)
    assert all(found == [1, 2, 3, 4, 5] for found in numbers)
    assert len(layers) == layers["network"].nunique() * 3 * 5 * 7
    assert (layers["value"] >= 0).all()

    values = layers.set_index(["network", "epoch", "layer", "measure"])["value"].unstack()
    assert values["scale_free_energy"].to_numpy() == pytest.approx(
        (values["energy"] / values["norm"] ** 2).to_numpy(), rel=1e-3
    )
    # Before training the two networks differ only in the step: with it the network smooths less.
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
    # Every point has, for both seeds and networks, one run without the step and four with it.
    # Beside them stand the runs on the features alone.
    joined = runs[runs["degree"] > 0]
    gains = joined.groupby([*point, "seed", "network"])["gain"].apply(list)
    assert all(found == [0, 0.5, 0.5, 0.9, 0.9] for found in gains)
    assert joined.groupby(point).size().tolist() == [20] * 2
    assert len(runs) - len(joined) == 2
    # The measures of a graph are the same for all networks on it, and tell homophily from
    # heterophily.
    measures = joined.groupby(["homophily", "seed"])[["label_homophily", "feature_similarity"]]
    assert (measures.nunique() == 1).to_numpy().all()
    assert (abs(joined["label_homophily"] - joined["homophily"]) < 0.1).all()
    similarity = joined.groupby("homophily")["feature_similarity"]
    assert similarity.min()[0.9] > similarity.max()[0.1]

    lines = (tmp_path / "rule.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| Identity | g = ")]
    assert len(rows) == 4 * 2  # every step, fitted for gain and for hits


def study(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a study twice; the second run must keep the files and train no network."""
    example = next(path for path in EXAMPLES if path.stem == name)
    run(example, monkeypatch, "--quick", "--output", str(folder))
    assert list(folder.glob("*.png"))
    before = {path.name: path.read_bytes() for path in folder.glob("*.csv")}

    def untouchable(*args: object, **kwargs: object) -> None:
        raise AssertionError("a network that had been trained was trained again")

    with monkeypatch.context() as patch:
        patch.setattr("eamp.training.train", untouchable)
        patch.setattr("eamp.experiments.cell.train", untouchable)
        patch.setattr("eamp.report.figure.save", lambda figure, folder: None)
        run(example, patch, "--quick", "--output", str(folder))
    assert {path.name: path.read_bytes() for path in folder.glob("*.csv")} == before


def run(example: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))  # as Python does for a script
    monkeypatch.setattr(sys, "argv", [str(example), *arguments])
    runpy.run_path(str(example), run_name="__main__")
