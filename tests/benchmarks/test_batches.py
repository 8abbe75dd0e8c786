from pathlib import Path

import pytest
from benchmarks.batches import STEPS, batch_costs, batch_table, main


def test_every_step_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.batches.SIZES", ((2, 8),))
    main(["--rounds", "1", "--output", str(tmp_path / "out.json")])
    assert "2 graphs of 8 nodes" in capsys.readouterr().out
    result = batch_costs(2, 8, rounds=1)
    assert set(result["ratios"]) == set(STEPS)
    assert batch_table([result]).row_count == len(STEPS)
