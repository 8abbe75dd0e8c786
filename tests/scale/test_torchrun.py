"""``torchrun -m eamp train`` gives the losses of ``eamp train``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eamp.cli import main
from forked import as_torchrun_does, started

pytestmark = pytest.mark.slow

SIZES = ["--data", "csbm:nodes=60,features=6,classes=3", "--depth", "2", "--width", "8"]
SETTINGS = [*SIZES, "--changes", '{"epochs": 6}']


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "seed_0.json").read_text())
    return found


def test_two_processes_find_the_losses_of_one_and_one_of_them_prints(tmp_path: Path) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    settings = [*SETTINGS, "--model", "entropic-gcn", "--output"]
    command = ["-m", "eamp", "train", *settings, str(tmp_path / "two"), "--partition", "metis"]
    run = subprocess.run(
        [sys.executable, *launcher, *command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("test accuracy at the epoch of lowest validation loss") == 1
    assert main(["train", *settings, str(tmp_path / "one")]) == 0
    one, two = result(tmp_path / "one"), result(tmp_path / "two")
    assert all(
        abs(a[0] - b[0]) < 1e-5 and abs(a[1] - b[1]) < 1e-5
        for a, b in zip(one["history"], two["history"], strict=True)
    )


def test_a_model_that_cannot_run_on_parts_is_refused_with_an_explanation(tmp_path: Path) -> None:
    command = ["train", *SETTINGS, "--partition", "metis", "--model", "gat"]
    said = [tmp_path / f"process {rank}.txt" for rank in range(2)]
    processes = [
        started(said[rank], as_torchrun_does, rank, 2, tmp_path, command) for rank in range(2)
    ]
    why = "not known to compute the same on a graph that is spread over several processes"
    for process, output in zip(processes, said, strict=True):
        process.join()
        assert process.exitcode == 2
        assert why in output.read_text()


def test_a_partition_without_torchrun_is_refused_with_an_explanation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", *SETTINGS, "--partition", "metis"]) == 2
    said = capsys.readouterr().err
    assert "run torchrun --nproc-per-node 4 -m eamp train --partition metis" in said
