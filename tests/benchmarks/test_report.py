import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks.diagnosis import diagnosis_cost
from benchmarks.growth import growth
from benchmarks.large import large
from benchmarks.memory import of_network
from benchmarks.step import compare, reordered
from benchmarks.training import gcnii_epoch, training_step
from benchmarks.watching import monitored

from benchmarks import report

pytestmark = pytest.mark.slow


def test_the_report_is_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "CORA_LIKE", (200, 800, 16))
    monkeypatch.setattr(report, "CASES", [(2, 8, 200, 800)])
    monkeypatch.setattr(report, "compare", partial(compare, rounds=2))
    monkeypatch.setattr(report, "training_step", partial(training_step, rounds=1, compiled=False))
    monkeypatch.setattr(
        report, "gcnii_epoch", lambda layers: gcnii_epoch(layers=2, width=8, rounds=1)
    )
    monkeypatch.setattr(
        report, "reordered", lambda *size: reordered(2000, 20_000, features=4, rounds=1)
    )
    monkeypatch.setattr(
        report, "memory", lambda *sizes: [of_network("GCNII", layers=2, width=8, rounds=1)]
    )
    monkeypatch.setattr(
        report, "diagnosis_costs", lambda quick: [diagnosis_cost(60, 240, 8, 8, 2, rounds=1)]
    )
    monkeypatch.setattr(report, "monitors", lambda quick: [monitored(60, 240, 2, rounds=1)])
    monkeypatch.setattr(report, "first_call", lambda: {"nothing compiled": {"eamp": 1.0}})
    monkeypatch.setattr(report, "large", lambda *sizes: large(100, 300, 4))
    monkeypatch.setattr(report, "growth", partial(growth, rounds=1, features=4))
    output = tmp_path / "results.json"
    results = report.run(output, quick=True)
    assert json.loads(output.read_text()) == results
    assert results["step"][0]["ratios"]["step / A @ x"]["median"] > 0
    printed = capsys.readouterr().out
    assert "backward / step" in printed
    assert "our GCN: diagnosis / forward pass" in printed
    assert "measured / bare epoch" in printed
    assert "In short" in printed
    assert "entropic / fastest PyG" in printed


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, "not tried"),
        ({"of": "PyG, CSR", "seconds": 12.4}, "took 12 s"),
        ({"of": "PyG, CSR", "error": "no compiler"}, "failed on PyG, CSR: no compiler"),
    ],
)
def test_what_became_of_the_compiler_is_said(found: dict[str, Any], words: str) -> None:
    assert report.compilation(found) == words
