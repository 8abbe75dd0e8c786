"""The benchmark of monitor, influence and bottlenecks, on small graphs."""

import json
from pathlib import Path

import pytest
from benchmarks.watching import main


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # tqdm's, of PyG's influence
def test_it_measures_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "watching.json"
    results = main(["--quick", "--output", str(output)])
    assert json.loads(output.read_text()) == json.loads(json.dumps(results))
    assert len(results["monitor"]) == 1
    rows = results["influence"]
    assert len(rows) == 4
    assert len(results["bottlenecks"]) == 2
    said = capsys.readouterr().out
    assert all(title in said for title in ("with a monitor", "by distance", "Bottlenecks"))
