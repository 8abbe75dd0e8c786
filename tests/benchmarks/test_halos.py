"""The benchmark of halos, on graphs of a few nodes."""

import json
from pathlib import Path

import pytest
from benchmarks.halos import main


def test_it_measures_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = main(["--nodes", "225", "--parts", "3", "--output", str(tmp_path / "halos.json")])
    assert json.loads((tmp_path / "halos.json").read_text()) == rows
    by_metis, by_lot = (row for row in rows if row["graph"] == "mesh")
    assert by_metis["moved / nodes"] < by_lot["moved / nodes"]
    assert by_metis["bytes per layer"]["GCN"] == by_metis["largest halo"] * 2 * 64 * 4
    assert "peak memory" in capsys.readouterr().out
