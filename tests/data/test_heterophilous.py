"""The heterophilous graphs, with small stand-ins for their files."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_geometric.datasets import HeterophilousGraphDataset
from torch_geometric.utils import is_undirected

from eamp.data import check, digests, get, load
from eamp.data.errors import DataError, DataWarning, RefusedError
from eamp.data.heterophilous import SIZES, assemble, file_names

NODES, SPLITS = 12, 10
Trust = Callable[[str, bytes], None]


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    part = np.stack([rng.permutation(NODES) % 3 for _ in range(SPLITS)])  # [splits, nodes]
    return {
        "node_features": rng.integers(2, size=(NODES, 4)).astype(np.float32),
        "node_labels": np.arange(NODES) % 2,
        "edges": np.stack([np.arange(NODES - 1), np.arange(1, NODES)], axis=1),  # a path
        "train_masks": part == 0,
        "val_masks": part == 1,
        "test_masks": part == 2,
    }


def content(**change: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **(arrays() | change))
    return buffer.getvalue()


@pytest.fixture
def folder(tmp_path: Path, trust: Trust, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with stand-ins for the three files, whose digests are trusted."""
    for name in SIZES:
        (file,) = file_names(name)
        (tmp_path / file).write_bytes(content())
        trust(file, content())
        digest = digests.digest_of(assemble(name, {file: content()})._asdict())
        monkeypatch.setitem(digests.ARRAY_DIGESTS, name, digest)
    return tmp_path


@pytest.mark.parametrize("name", SIZES)
def test_arrays_are_those_of_the_file(folder: Path, name: str) -> None:
    data, expected = load(name, folder=folder), arrays()
    assert (data.name, data.source, data.split, data.num_splits) == (name, "folder", "public", 10)
    np.testing.assert_array_equal(data.x.numpy(), expected["node_features"])
    np.testing.assert_array_equal(data.y.numpy(), expected["node_labels"])
    assert data.num_edges == 2 * (NODES - 1)
    assert is_undirected(data.edge_index)
    assert set(map(tuple, expected["edges"])) <= set(map(tuple, data.edge_index.t().tolist()))


def test_ten_splits(folder: Path) -> None:
    for number in range(SPLITS):
        data = load("actor", folder=folder, split=number)
        for part in ("train", "val", "test"):
            found = data[f"{part}_mask"].numpy()
            np.testing.assert_array_equal(found, arrays()[f"{part}_masks"][number])
    with pytest.raises(DataError, match="there is no split 10: train_mask holds 10"):
        load("actor", split=10)


def test_cache_is_used_and_checked(folder: Path) -> None:
    summary = get("chameleon-filtered", folder=folder)
    assert summary.path is not None
    assert summary.path.name == "chameleon-filtered.npz"
    assert load("Chameleon-Filtered").source == "folder"  # no source can be reached now
    assert check("chameleon-filtered").state == "intact"


def test_one_of_several_folders_of_the_environment(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("EAMP_DATA", f"{tmp_path / 'other'}{os.pathsep}{folder}")
    assert load("minesweeper").source == "folder"


def test_github_is_the_address_pyg_uses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        asked.append(url)
        return io.BytesIO(content())

    monkeypatch.setattr("eamp.data.sources.urllib.request.urlopen", urlopen)
    assert load("chameleon-filtered").source == "GitHub"
    assert asked == [f"{HeterophilousGraphDataset.url}/chameleon_filtered.npz"]


def test_error_says_what_to_do() -> None:
    with pytest.raises(DataError, match="cannot get 'actor'") as caught:
        load("actor")
    assert "put actor.npz into a folder" in str(caught.value)
    assert "package index" not in str(caught.value)


def test_changed_file_is_refused_before_it_is_parsed(
    folder: Path, malicious_pickle: tuple[bytes, Path]
) -> None:
    hostile, trace = malicious_pickle
    (folder / "actor.npz").write_bytes(hostile)
    with (
        pytest.warns(DataWarning, match=r"actor\.npz is refused: its SHA-256"),
        pytest.raises(DataError, match="every source failed"),
    ):
        load("actor", folder=folder)
    assert not trace.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"edges": np.array([[0, NODES]])},
        {"node_labels": np.array([{}] * NODES, dtype=object)},
    ],
)
def test_files_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match=r"actor\.npz is refused"):
        assemble("actor", {"actor.npz": content(**change)})
