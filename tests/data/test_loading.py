from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import eamp
from eamp.data import cache, digests, load
from eamp.data.errors import DataError, DataWarning
from eamp.data.planetoid import SIZES


@pytest.fixture
def folder(tiny: dict[str, Any], tmp_path: Path) -> Path:
    for dataset in tiny.values():
        dataset.write_folder(tmp_path / "files")
    return tmp_path / "files"


@pytest.mark.parametrize("name", SIZES)
def test_data_carries_name_source_split_and_digest(folder: Path, name: str) -> None:
    data = load(name.upper(), folder=folder)
    assert (data.name, data.source, data.split) == (name, "folder", "public")
    assert data.digest == digests.ARRAY_DIGESTS[name]
    assert data.num_classes == int(data.y.max()) + 1
    assert data.validate()


def test_second_load_comes_from_the_cache(folder: Path) -> None:
    first = load("cora", folder=folder)
    again = load("cora")  # no source can be reached now
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.edge_index, again.edge_index)
    assert again.source == "folder"


def test_refresh_does_not_read_the_cache(folder: Path) -> None:
    load("cora", folder=folder)
    with pytest.raises(DataError, match="every source failed"):
        load("cora", refresh=True)


def test_damaged_cache_is_reported_and_rebuilt(folder: Path) -> None:
    load("cora", folder=folder)
    path = cache.cache_path("cora")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.warns(DataWarning, match=r"cora\.npz is refused.*fetched again"):
        load("cora", folder=folder)
    assert load("cora").digest == digests.ARRAY_DIGESTS["cora"]


def test_unreachable_dataset_is_an_error_not_another_graph() -> None:
    with pytest.raises(DataError, match="cannot get 'cora'"):
        load("cora")
    assert load().name == "csbm"


def test_planetoid_graph_with_a_drawn_split(folder: Path) -> None:
    data = load("citeseer", folder=folder, split="random", seed=3)
    assert data.split == "random:0.6/0.2/0.2, seed 3"
    assert data.digest == digests.ARRAY_DIGESTS["citeseer"]


@pytest.mark.parametrize(
    ("name", "nodes", "features"),
    [
        ("grid", 100, 1),
        ("grid:3x5", 15, 1),
        ("grid:3x5,features=2,seed=4", 15, 2),
        ("grid:rows=4,columns=5", 20, 1),
        ("csbm:nodes=50, features=7", 50, 7),
    ],
)
def test_options_are_read_from_the_name(name: str, nodes: int, features: int) -> None:
    data = load(name)
    assert data.x.shape == (nodes, features)
    assert (data.name, data.source) == (name, "generated")


def test_name_determines_the_graph_and_seed_the_split() -> None:
    graphs = [
        load(name, seed=seed)
        for name, seed in (("grid:9x9", 0), ("grid:9x9", 1), ("grid:9x9,seed=1", 0))
    ]
    assert graphs[0].digest == graphs[1].digest != graphs[2].digest
    assert not torch.equal(graphs[0].train_mask, graphs[1].train_mask)


@pytest.mark.parametrize(
    "name",
    [
        "grid:3x",
        "grid:axb",
        "csbm:3x5",
        "csbm:nodes",
        "csbm:nodes=many",
        "csbm:colour=red",
        "grid:rows=2.5",
    ],
)
def test_error_on_unknown_options_lists_the_known_ones(name: str) -> None:
    with pytest.raises(DataError, match=r"does not understand .* options and defaults: .*seed=0"):
        load(name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("coar", "Did you mean 'cora'"),
        ("nonsense", "Known: cora"),
        ("cora:1", "Known: cora"),
        ("", "Known"),
    ],
)
def test_error_on_unknown_names_lists_the_known_ones(name: str, hint: str) -> None:
    with pytest.raises(DataError, match=hint):
        load(name)


def test_weights_are_averaged_when_symmetrized(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        edge_index=[[0, 1, 1], [1, 0, 2]],
        edge_weight=[1.0, 3.0, 5.0],
        x=np.zeros((6, 1)),
        y=[0, 0, 0, 0, 0, 0],
    )
    data = load(tmp_path / "a.npz", symmetrize=True)
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.edge_weight.tolist() == [2, 2, 5, 5]


def test_weights_of_repeated_edges_are_summed_before_directions_are_averaged(
    tmp_path: Path,
) -> None:
    np.savez(
        tmp_path / "a.npz",
        edge_index=[[0, 0, 1], [1, 1, 0]],
        edge_weight=[1.0, 2.0, 5.0],
        x=np.zeros((6, 1)),
        y=[0] * 6,
    )
    data = load(tmp_path / "a.npz", symmetrize=True)
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.edge_weight.tolist() == [4, 4]


def test_graph_accepts_loaded_data() -> None:
    assert eamp.Graph(eamp.data.load("grid:10x10")).num_edges == 180
