import json
from functools import partial
from pathlib import Path

import pytest
import torch
from benchmarks.growth import exponent, growth, peak_memory
from benchmarks.large import large
from benchmarks.memory import of_network
from benchmarks.step import bytes_moved, compare, reordered
from benchmarks.timing import interleaved, ratios
from benchmarks.training import gcnii_epoch, training_step

import eamp
from benchmarks import report


def test_contenders_take_turns() -> None:
    calls: list[str] = []
    seconds = interleaved(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3, round_seconds=0
    )
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3}
    assert calls[-6:] == ["a", "b"] * 3


def test_ratios_are_medians_within_rounds_and_of_the_fastest_rounds() -> None:
    found = ratios({"a": [2.0, 30.0, 9.0], "b": [1.0, 10.0, 1.0]}, [("a", "b")])
    assert found == {"a / b": {"median": 3.0, "fastest": 2.0}}


@pytest.mark.parametrize("power", [1.0, 1.3])
def test_the_exponent_of_a_power_law_is_found(power: float) -> None:
    assert exponent([(m, 3e-9 * m**power) for m in (10, 1000, 10**6)]) == pytest.approx(power)


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    measured = peak_memory(20_000, 40_000, 64)
    assert 0.9 < measured["extra / size of x"] < 2.5


def test_the_report_is_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "CORA_LIKE", (200, 800, 16))
    monkeypatch.setattr(report, "CASES", [(2, 8, 200, 800)])
    monkeypatch.setattr(report, "compare", partial(compare, rounds=2))
    monkeypatch.setattr(report, "training_step", partial(training_step, rounds=1))
    monkeypatch.setattr(
        report, "gcnii_epoch", lambda layers: gcnii_epoch(layers=2, width=8, rounds=1)
    )
    monkeypatch.setattr(
        report, "reordered", lambda *size: reordered(2000, 20_000, features=4, rounds=1)
    )
    monkeypatch.setattr(
        report, "memory", lambda *sizes: [of_network("GCNII", layers=2, width=8, rounds=1)]
    )
    monkeypatch.setattr(report, "large", lambda *sizes: large(100, 300, 4))
    monkeypatch.setattr(report, "growth", partial(growth, rounds=1, features=4))
    output = tmp_path / "results.json"
    results = report.run(output, quick=True)
    assert json.loads(output.read_text()) == results
    assert results["step"][0]["ratios"]["step / A @ x"]["median"] > 0
    printed = capsys.readouterr().out
    assert "backward / step" in printed
    assert "In short" in printed


def test_the_bytes_of_a_step_are_counted() -> None:
    g = eamp.Graph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))  # two edges, so four entries
    moved = bytes_moved(g, torch.zeros(3, 5))
    assert moved == {"step": (3 + 2 + 3 + 4 + 3) * 20, "A @ x": (4 + 3) * 20, "copy": 6 * 20}
