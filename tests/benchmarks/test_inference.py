"""The benchmark of inference, on a graph of a few nodes."""

import json
from pathlib import Path

import pytest
from benchmarks.inference import MODELS, main, measure, table
from rich.console import Console


def test_both_ways_give_the_same() -> None:
    rows = [
        measure(name, blocks, nodes=60, edges=200) for name in MODELS for blocks in (False, True)
    ]
    for whole, blocks in zip(rows[::2], rows[1::2], strict=True):
        assert blocks["sum"] == pytest.approx(whole["sum"], rel=1e-5, abs=1e-3)
    console = Console(record=True, width=120)
    console.print(table(rows))
    shown = console.export_text()
    assert all(name in shown for name in MODELS)


@pytest.mark.slow
def test_it_measures_prints_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = next(iter(MODELS))
    monkeypatch.setattr("benchmarks.inference.MODELS", {name: MODELS[name]})
    output = tmp_path / "inference.json"
    rows = main(["--nodes", "60", "--edges", "200", "--output", str(output)])
    assert json.loads(output.read_text()) == rows
    assert [(row["model"], row["blocks"]) for row in rows] == [(name, False), (name, True)]
    assert name in capsys.readouterr().out
