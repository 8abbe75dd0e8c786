"""Neither a name of data nor a file in the cache can run a program."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric.datasets as pyg
from torch_geometric.data import Data

from eamp.data import DataError, DataWarning, load
from eamp.data.planetoid import SUFFIXES
from eamp.experiments.cell import Cell
from eamp.experiments.recipe import load_recipe


def by_load(name: str, folder: Path) -> Data:
    return load(name)


def by_recipe(name: str, folder: Path) -> Data:
    file = folder / "recipe.yaml"
    file.write_text(f"runs: [{{model: gcn, depth: 2, data: {json.dumps(name)}}}]")
    return load_recipe(file)[1][0].graph


def by_job(name: str, folder: Path) -> Data:
    """Load as a worker does with a job of its database."""
    job = Cell("gcn", "csbm", depth=2).job | {"data": name}
    return Cell.from_job(json.loads(json.dumps(job))).graph


@pytest.fixture
def hostile(
    tmp_path: Path, malicious_pickle: tuple[bytes, Path], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Return a folder in the layout of PyG, all of whose files would run a program."""
    content, _ = malicious_pickle
    files = ["processed/pre_transform.pt", "processed/pre_filter.pt", "processed/data.pt"]
    files += [f"raw/ind.cora.{suffix}" for suffix in SUFFIXES]
    folder = tmp_path / "hostile" / "Cora"
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)

    def download(self: object) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(pyg.Planetoid, "download", download)
    return folder


@pytest.mark.parametrize("route", [by_load, by_recipe, by_job])
@pytest.mark.parametrize(
    "name", ["pyg:Planetoid/{folder}", "pyg:Planetoid/../../../hostile/Cora", "undirected:{first}"]
)
def test_path_in_place_of_a_name_is_refused(
    route: Callable[[str, Path], Data],
    name: str,
    hostile: Path,
    tmp_path: Path,
    malicious_pickle: tuple[bytes, Path],
) -> None:
    given = name.format(folder=hostile, first=f"pyg:Planetoid/{hostile}")
    with pytest.raises(DataError, match="is not the name of a dataset: a name has only letters"):
        route(given, tmp_path)
    assert not malicious_pickle[1].exists()


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "a\\b", "a.b", "a\0b", "a\n", "~", "a b", "é", "C:", "a::b", "%2e%2e"],
)
def test_name_has_only_letters_digits_and_dashes(name: str) -> None:
    with pytest.raises(DataError, match="is not the name of a dataset"):
        load(f"pyg:Planetoid/{name}")


@pytest.mark.parametrize("name", ["os", "../Planetoid", "Planetoid.download", "", "\0", "ZINC"])
def test_class_must_be_a_known_one(name: str) -> None:
    with pytest.raises(DataError, match="has no"):
        load(f"pyg:{name}")


@pytest.mark.parametrize("route", [by_load, by_recipe, by_job])
def test_pickles_in_the_cache_that_eamp_did_not_write_are_not_opened(
    route: Callable[[str, Path], Data],
    hostile: Path,
    tmp_path: Path,
    malicious_pickle: tuple[bytes, Path],
) -> None:
    content, trace = malicious_pickle
    cached = tmp_path / "cache" / "pyg" / "Planetoid"
    cached.mkdir(parents=True)
    hostile.rename(cached / "Cora")
    with pytest.raises(DataError, match="no route to host"):
        route("pyg:Planetoid/Cora", tmp_path)
    cached.with_name("Planetoid-Cora.npz").write_bytes(content)
    with (
        pytest.warns(DataWarning, match=r"Planetoid-Cora\.npz is refused"),
        pytest.raises(DataError, match="no route to host"),
    ):
        by_load("pyg:Planetoid/Cora", tmp_path)
    assert not trace.exists()


class Program:
    """Its pickle names no module that torch.load always refuses, unlike os and posix."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return subprocess.getoutput, (f"echo executed > {self.trace}",)


def test_torch_file_that_pyg_downloads_cannot_run_a_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def download(self: Any) -> None:
        torch.save(Program(tmp_path / "executed"), self.raw_paths[0])

    # PyG's own loader tries a second time without weights_only.
    monkeypatch.setattr(pyg.CityNetwork, "download", download)
    monkeypatch.setattr(pyg.CityNetwork, "process", lambda self: self.load(self.raw_paths[0]))
    with (
        pytest.warns(UserWarning, match="Weights only load failed"),
        pytest.raises(DataError, match="UnpicklingError"),
    ):
        load("pyg:CityNetwork/paris")
    assert not (tmp_path / "executed").exists()
