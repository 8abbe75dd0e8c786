import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from benchmarks.fresh_process import CHECKOUT, extra_memory, in_fresh_process
from benchmarks.results import both

pytestmark = pytest.mark.slow

MEGABYTE = 2**20


def test_a_function_runs_elsewhere_and_its_result_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the benchmarks are found from any folder
    assert in_fresh_process(both, {"median": 2, "fastest": 1.5}) == "2.00 (1.50)"


def test_an_error_over_there_is_an_error_here(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        in_fresh_process(both, "no ratio")
    assert "Error" in capfd.readouterr().err


def test_a_module_that_is_run_can_start_processes_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "large.json"
    sizes = ["--nodes", "50", "--edges", "100", "--features", "2"]
    monkeypatch.setattr(sys, "argv", ["large.py", *sizes, "--output", str(output)])
    runpy.run_path(str(CHECKOUT / "benchmarks" / "large.py"), run_name="__main__")
    assert "entropy_gradient" in output.read_text()


def test_memory_counts_the_result() -> None:
    extra = extra_memory(lambda: torch.ones(64 * MEGABYTE, dtype=torch.uint8))
    assert 60 * MEGABYTE < extra < 80 * MEGABYTE
