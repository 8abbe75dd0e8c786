from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import eamp
from eamp.data import Fractions, PerClass, cache, digests, load, summarize
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
        f"grid:{'9' * 5000}x1",
        f"csbm:nodes={'9' * 5000}",
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


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("csbm:seed=-1", "seed >= 0"),
        ("grid:3x3,seed=-1", "seed >= 0"),
        ("csbm:nodes=1000000000000", "fewer nodes"),
        ("csbm:signal=nan", "signal"),
        ("csbm:nodes=50,nodes=60", "option nodes twice"),
        ("~nobody-of-this-name/a.npz", "there is no file"),
        ("a" * 5000, "there is no dataset"),
        ("a\0b", "there is no dataset"),
        ("a\0b.npz", "cannot be read"),
        (5, "such as 'cora'.* got int"),
        (None, "got NoneType"),
        (b"cora", "got bytes"),
        (["cora"], "got list"),
        (Data(), "got Data. It is a graph already"),
    ],
)
def test_wrong_names_get_a_sentence(name: Any, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        load(name)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"seed": -1}, "seed must be a whole number from 0; got -1"),
        ({"seed": 1.5}, "seed must be"),
        ({"seed": "1"}, "seed must be"),
        ({"split": 1.5}, "split must be"),
        ({"split": True}, "split must be"),
        ({"split": ["random"]}, "split must be"),
        ({"split": -1}, "there is no split -1"),
        ({"split": 10**30}, "there is no split 1000"),
        ({"split": "9" * 5000}, "unknown split"),
        ({"split": "random:nan/nan/nan"}, "each fraction must be above 0"),
        ({"split": "planetoid:-1/2/3"}, "does not fit"),
        ({"symmetrize": "False"}, "symmetrize must be True or False"),
        ({"refresh": 1}, "refresh must be True or False"),
        ({"folder": 5}, "folder must be a path"),
    ],
)
def test_wrong_options_get_a_sentence(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        load("csbm:nodes=100", **options)


def test_numpy_number_selects_its_split(tmp_path: Path) -> None:
    masks = {
        f"{part}_mask": np.eye(6, dtype=bool)[:, k : k + 2]
        for k, part in enumerate(("train", "val", "test"))
    }
    path = tmp_path / "a.npz"
    np.savez(path, edge_index=[[0, 1], [1, 0]], x=np.ones((6, 1)), y=[0] * 6, **masks)
    assert load(str(path), split=np.int64(1)).train_mask.nonzero().tolist() == [[1]]


@pytest.mark.parametrize("split", [(PerClass, 1.5), (PerClass, "1"), (Fractions, None)])
def test_split_of_wrong_numbers_is_refused(split: tuple[Any, object]) -> None:
    with pytest.raises(DataError, match="needs three"):
        split[0](split[1])


def test_summary_of_something_else_is_refused() -> None:
    with pytest.raises(DataError, match=r"a graph that eamp\.data\.load returned; got Data"):
        summarize(Data())
