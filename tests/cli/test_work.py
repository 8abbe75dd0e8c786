"""``eamp work``, and commands that lose their store."""

from pathlib import Path

import pytest
from optuna.exceptions import StorageInternalError

from eamp.cli import main
from eamp.experiments.cell import Cell
from eamp.experiments.store import Store
from eamp.experiments.sweep import finished

CELL = Cell("gcn", "csbm:nodes=60,features=8", 2, width=8, changes={"epochs": 10})


def test_work_joins_the_only_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path, "study")
    store.enqueue([CELL.job])
    assert main(["work", "--output", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "csbm:nodes=60,features=8 gcn depth 2 seed 0: highest validation accuracy" in said
    assert list(finished(store)) == [CELL.key]


def test_work_on_no_store_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (
        ["--output", str(tmp_path / "none")],
        ["--storage", f"sqlite:///{tmp_path / 'none.db'}"],
    ):
        assert main(["work", *options]) == 2
        assert "there is no store at" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_stores_address_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    store = Store(tmp_path, "study", url)
    store.enqueue([CELL.job])
    monkeypatch.setenv("EAMP_STORAGE", url)
    assert main(["work", "--output", str(tmp_path / "mine")]) == 0
    assert list(finished(store)) == [CELL.key]


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (["work", "--study", "study"], "eamp.experiments.worker.work"),
        (["sweep", "recipe.yaml"], "eamp.experiments.sweep.sweep"),
        (["tune", "--model", "gcn", "--data", "csbm"], "eamp.experiments.tune.tune"),
    ],
    ids=["work", "sweep", "tune"],
)
def test_a_command_that_loses_the_store_says_so(
    command: list[str],
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def lost(*_: object, **__: object) -> None:
        reason = OSError("server closed the connection\nmore of it")
        raise StorageInternalError("invalid data") from reason

    monkeypatch.chdir(tmp_path)
    recipe = "name: study\nruns: [{model: gcn, data: csbm, depth: 1}]\n"
    Path("recipe.yaml").write_text(recipe, encoding="utf-8")
    Store(tmp_path, "study")
    monkeypatch.setattr(place, lost)
    assert main([*command, "--output", str(tmp_path)]) == 2
    expected = "the store was lost: server closed the connection. What has been trained is safe"
    assert expected in capsys.readouterr().err
