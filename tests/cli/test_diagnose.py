from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eamp.cli import main

MODULE = """
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

def deep():
    torch.manual_seed(0)
    ring = torch.arange(40)
    edges = torch.stack([ring, ring.roll(1)])
    data = Data(x=torch.randn(40, 8), edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    return GCN(8, 16, 24), data

def model_alone():
    return GCN(8, 16, 24)

number = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_networks.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_networks", raising=False)
    return tmp_path


def test_one_s_own_model_gets_a_page(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["diagnose", "--model", "my_networks:deep", "--report", "pages/out.html"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert said.startswith("Oversmoothing")
    assert said.endswith("Written to pages/out.html\n")
    page = (own / "pages" / "out.html").read_text(encoding="utf-8")
    assert "Diagnosis of GCN of my_networks:deep" in page
    assert "Before and after" in page


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nowhere_at_all:deep", "no module 'nowhere_at_all'"),
        ("my_networks:shallow", "no function 'shallow'"),
        ("my_networks:number", "no function 'number'"),
        ("my_networks:model_alone", "must return a model and its data"),
    ],
)
@pytest.mark.usefixtures("own")
def test_a_wrong_name_is_told_in_a_line(
    model: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", "--model", model]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.usefixtures("own")
def test_settings_beside_one_s_own_model_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["diagnose", "--model", "my_networks:deep", "--data", "cora", "--depth", "3"]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "my_networks:deep is a function that returns the model and its data" in error
    assert "leave --data, --depth out" in error
    assert error.count("\n") == 1
    assert main(["diagnose", "--model", "my_networks:deep", "--normalize-features"]) == 2
    assert "--normalize_features" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["./mm:f", ":f", "my models:f", "a..b:f"])
def test_a_module_is_named_as_in_an_import(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--model", name]) == 2
    assert f"--model {name}: write a module as in an import" in capsys.readouterr().err


def test_a_folder_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--model", "gcn", "--data", "csbm", "--report", str(tmp_path)]) == 2
    assert "--report is a file, but" in capsys.readouterr().err
