"""The comparison of backends, which is meant for GPUs, on the CPU."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch
from benchmarks.backends import backend_table, compare_backends
from rich.console import Console

from benchmarks import report

ON_CPU = partial(compare_backends, 60, 240, 4, device="cpu", rounds=2)


def test_every_backend_is_compared_with_a_product_and_with_the_first() -> None:
    names, parts = ("numba", "torch", "reference"), ("step", "backward")
    found = ON_CPU(backends=names)
    with_product = [f"{name}: {part} / A @ x" for name in names for part in parts]
    with_first = [f"{name}: {part} / numba: {part}" for name in names[1:] for part in parts]
    assert list(found["ratios"]) == with_product + with_first
    assert all(ratio["median"] > 0 for ratio in found["ratios"].values())
    assert found["differences"].keys() == {"torch", "reference"}
    assert max(found["differences"].values()) < 1e-5
    # Another implementation rounds differently: 0 would mean that the same one ran twice.
    assert min(found["differences"].values()) > 0


def test_the_table_has_a_column_per_graph() -> None:
    found = ON_CPU(backends=("numba", "torch"))
    console = Console(record=True, width=160)
    console.print(backend_table([found, found]))
    shown = console.export_text()
    assert shown.count("60 nodes") == 2
    assert "torch: step / numba: step" in shown
    assert "largest difference" in shown


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_a_sentence_says_so(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no CUDA device"):
        report.run(tmp_path / "results.json", device="cuda")
    assert not list(tmp_path.iterdir())


def test_the_report_of_a_gpu_holds_the_backends_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the CPU in the GPU's place."""
    monkeypatch.setattr(report, "gpu_backends", lambda: ("numba", "torch"))
    monkeypatch.setattr(report, "machine", lambda device: {"GPU": device})
    monkeypatch.setattr(report, "compare_backends", lambda *given: ON_CPU(backends=given[-1]))
    output = tmp_path / "results.json"
    results = report.run(output, device="cuda")
    assert json.loads(output.read_text()) == results
    assert list(results) == ["machine", "backends"]
    assert len(results["backends"]) == 2  # the two graphs of the table of the CPU
    assert "torch: step / A @ x" in capsys.readouterr().out
