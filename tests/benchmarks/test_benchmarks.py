import json
from pathlib import Path

import pytest

from eamp.benchmarks import report
from eamp.benchmarks.growth import exponent, peak_memory
from eamp.benchmarks.timing import interleaved


def test_contenders_take_turns() -> None:
    calls: list[str] = []
    timings = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, "a", rounds=3, round_seconds=0)
    assert list(timings) == ["a", "b"]
    assert timings["a"].ratio == timings["a"].fastest_ratio == 1.0
    assert calls[-6:] == ["a", "b"] * 3  # in turns


@pytest.mark.parametrize("power", [1.0, 1.3])
def test_the_exponent_of_a_power_law_is_found(power: float) -> None:
    assert exponent([(m, 3e-9 * m**power) for m in (10, 1000, 10**6)]) == pytest.approx(power)


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    measured = peak_memory(20_000, 40_000, 64)
    assert 0.9 < measured["extra / size of x"] < 2.5


def test_the_report_is_printed_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(report, "CORA_LIKE", (200, 800, 16))
    output = tmp_path / "results.json"
    results = report.run(output, quick=True)
    assert json.loads(output.read_text()) == results
    assert results["step"][0]["ratios"]["step / A @ x"] > 0
    assert "backward / forward" in capsys.readouterr().out
