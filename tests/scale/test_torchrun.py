"""``torchrun -m eamp train`` gives the losses of ``eamp train``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SIZES = ["--data", "csbm:nodes=60,features=6,classes=3", "--depth", "2", "--width", "8"]
SETTINGS = [*SIZES, "--changes", '{"epochs": 6}']


def launched(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    launcher = (
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        if processes > 1
        else []
    )
    command = [sys.executable, *launcher, "-m", "eamp", "train", *SETTINGS, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "seed_0.json").read_text())
    return found


def test_two_processes_find_the_losses_of_one_and_one_of_them_prints(tmp_path: Path) -> None:
    run = launched(
        2, "--partition", "metis", "--model", "entropic-gcn", "--output", str(tmp_path / "two")
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("test accuracy at the epoch of lowest validation loss") == 1
    alone = launched(1, "--model", "entropic-gcn", "--output", str(tmp_path / "one"))
    assert alone.returncode == 0, alone.stderr
    one, two = result(tmp_path / "one"), result(tmp_path / "two")
    assert all(
        abs(a[0] - b[0]) < 1e-5 and abs(a[1] - b[1]) < 1e-5
        for a, b in zip(one["history"], two["history"], strict=True)
    )


def test_a_model_that_cannot_run_on_parts_is_refused_with_an_explanation() -> None:
    run = launched(2, "--partition", "metis", "--model", "gat")
    assert run.returncode != 0
    assert (
        "not known to compute the same on a graph that is spread over several processes"
        in run.stderr
    )


def test_a_partition_without_torchrun_is_refused_with_an_explanation() -> None:
    run = launched(1, "--partition", "metis")
    assert run.returncode == 2
    assert "run torchrun --nproc-per-node 4 -m eamp train --partition metis" in run.stderr
