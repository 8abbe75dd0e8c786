"""Typed graphs by name: verified before they are parsed, cached without pickles."""

import io
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData

import eamp
from eamp.data import (
    DataError,
    DataWarning,
    RefusedError,
    cache,
    check,
    digests,
    get,
    load,
    typed_graphs,
)
from eamp.experiments.cell import load_graph
from eamp.optional import MissingPackageError

CACHE = cache.cache_folder()  # the user's own, read here because a fixture replaces it
SIZES = {"movie": 12, "director": 3, "actor": 4}
RELATION = ("director", "directed", "movie")
LASTFM = [
    ("user", "listens_to", "artist"),
    ("user", "tagged", "artist"),
    ("user", "is_friend_of", "user"),
]
# The numbers of nodes have gaps, and are in no order.
TINY_LASTFM: dict[str, dict[str, Any]] = {
    "user_nodes.parquet.gzip": {"nodeId": [9, 2, 5]},
    "artist_nodes.parquet.gzip": {"nodeId": [10_007, 10_001]},
    "user_listen_artist_rels.parquet.gzip": {
        "sourceNodeId": [9, 2, 5],
        "targetNodeId": [10_001, 10_007, 10_001],
        "weight": [3, 1, 2],
    },
    "user_tag_artist_rels.parquet.gzip": {
        "sourceNodeId": [9, 9],
        "targetNodeId": [10_007, 10_007],
        "tagID": [1, 2],
    },
    "user_friend_df_directed.parquet.gzip": {"sourceNodeId": [2, 5], "targetNodeId": [5, 9]},
}


def tiny_tables() -> dict[str, dict[str, Any]]:
    """Twelve movies, of which two have no genre, three directors and four actors."""
    rng = np.random.default_rng(0)

    def words(count: int) -> list[list[float]]:
        return rng.integers(2, size=(count, typed_graphs.FEATURES)).astype(float).tolist()

    order = [5, 0, 3, 1, 2, 4, 6, 8, 7, 9]
    return {
        "imdb_movies_with_genre.parquet.gzip": {
            "nodeId": order,
            "genre": [node % 2 for node in order],
            "plot_keywords": words(10),
        },
        "imdb_movies_without_genre.parquet.gzip": {"nodeId": [11, 10], "plot_keywords": words(2)},
        "imdb_directors.parquet.gzip": {"nodeId": [12, 13, 14], "plot_keywords": words(3)},
        "imdb_actors.parquet.gzip": {"nodeId": [15, 16, 17, 18], "plot_keywords": words(4)},
        "imdb_directed_in.parquet.gzip": {"sourceNodeId": [14, 12], "targetNodeId": [3, 11]},
        "imdb_acted_in.parquet.gzip": {"sourceNodeId": [18, 15, 15], "targetNodeId": [0, 9, 2]},
    }


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, trust: Any) -> dict[str, bytes]:
    """Return tiny files in the format of the real ones, with trusted digests."""
    pyarrow = pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
    from pyarrow import parquet

    monkeypatch.setitem(typed_graphs.SIZES, "imdb", SIZES)
    monkeypatch.setitem(typed_graphs.SIZES, "lastfm", {"user": 3, "artist": 2})
    files = {}
    for file, columns in {**tiny_tables(), **TINY_LASTFM}.items():
        parquet.write_table(pyarrow.table(columns), written := io.BytesIO(), compression="gzip")
        files[file] = written.getvalue()
        trust(file, files[file])
    for name in ("imdb", "lastfm"):
        arrays = typed_graphs.assemble(name, files)
        monkeypatch.setitem(digests.ARRAY_DIGESTS, name, digests.digest_of(arrays))
    return files


def test_the_files_become_a_heterodata_with_masks(tiny: dict[str, bytes], tmp_path: Path) -> None:
    for file, content in tiny.items():
        (tmp_path / file).write_bytes(content)
    data = load("IMDB", folder=tmp_path)
    assert isinstance(data, HeteroData)
    assert (data.source, data.num_classes, data.target) == ("folder", 2 + 1, "movie")
    assert {kind: data[kind].num_nodes for kind in data.node_types} == SIZES
    tables = tiny_tables()
    movies = tables["imdb_movies_with_genre.parquet.gzip"]
    for node, genre, words in zip(*movies.values(), strict=True):
        assert int(data["movie"].y[node]) == genre
        assert data["movie"].x[node].tolist() == words
    actors = tables["imdb_actors.parquet.gzip"]["plot_keywords"]
    assert data["actor"].x.tolist() == actors
    assert data["movie"].y[[10, 11]].tolist() == [-1, -1]
    assert data[RELATION].edge_index.tolist() == [[0, 2], [11, 3]]
    assert torch.equal(
        data["movie", "rev_directed", "director"].edge_index, data[RELATION].edge_index.flip(0)
    )
    masks = [data["movie"][name] for name in ("train_mask", "val_mask", "test_mask")]
    assert sum(map(int, (mask.sum() for mask in masks))) == 10
    other = load("imdb", split="random:0.2/0.4/0.4", seed=1)
    assert int(other["movie"].train_mask.sum()) == 2
    assert get("imdb").edges == 5


def test_the_wheel_is_verified_read_and_cached(
    tiny: dict[str, bytes], trust: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as zipped:
        for file, content in tiny.items():
            name = "imdb" if file.startswith("imdb") else "lastfm"
            zipped.writestr(f"{typed_graphs.FOLDER}/{name}/{file}", content)
    wheel, asked = buffer.getvalue(), []

    def pip(command: list[str], cwd: str, **_: Any) -> Any:
        asked.append(command[-1])
        (Path(cwd) / typed_graphs.WHEEL.file).write_bytes(wheel)
        return type("Done", (), {"returncode": 0, "stderr": ""})

    monkeypatch.setattr("eamp.data.package_index.subprocess.run", pip)
    with (
        pytest.warns(DataWarning, match=r"graphdatascience-2\.2.*expected"),
        pytest.raises(
            DataError, match=r"(?s)EAMP_DATA is not set.*graphdatascience-2\.2.*expected"
        ),
    ):
        load("imdb")  # the tiny wheel is not the real one
    trust(typed_graphs.WHEEL.file, wheel)
    assert check("imdb").state == "absent"
    assert load("imdb").source == "package index"
    assert check("imdb").state == "intact"
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # needed until the graph is cached
    assert load("imdb").source == "package index"
    assert len(asked) == 2
    assert "graphdatascience" not in sys.modules


def test_a_graph_without_features_and_labels_has_relations_alone(
    tiny: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, content in tiny.items():
        (tmp_path / file).write_bytes(content)
    monkeypatch.setenv("EAMP_DATA", f"{tmp_path / 'nothing'}{os.pathsep}{tmp_path}")
    data = load("lastfm")
    assert (data.source, data.num_classes, data.split) == ("folder", 0, "no labels")
    assert data["user", "listens_to", "artist"].edge_index.tolist() == [[0, 1, 2], [1, 0, 0]]
    assert data["user", "tagged", "artist"].edge_index.tolist() == [[2], [1]]  # two tags, one edge
    friends = data["user", "is_friend_of", "user"].edge_index
    assert friends.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert ("user", "rev_is_friend_of", "user") not in data.edge_types
    assert "x" not in data["user"]
    summary = get("lastfm")
    assert (summary.nodes, summary.edges, summary.classes) == (5, 6, 0)
    assert "nodes per class" not in str(summary)
    assert [len(g.degree) for g in map(eamp.TypedGraph(data).__getitem__, LASTFM)] == [5, 5, 3]
    with pytest.raises(DataError, match=r"no labels, so no split; write load\('lastfm'\)"):
        load("lastfm", split="random")


def test_a_changed_file_is_refused_before_it_is_parsed(
    tiny: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, content in tiny.items():
        (tmp_path / file).write_bytes(content + b"x")
    monkeypatch.setattr(typed_graphs, "read_table", lambda *_: pytest.fail("it was parsed"))
    with (
        pytest.warns(DataWarning, match=r"imdb: folder: .* is refused.* SHA-256"),
        pytest.raises(DataError, match=r"folder: imdb_movies_with_genre.* is refused.* SHA-256"),
    ):
        load("imdb", folder=tmp_path)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = r"imdb_movies_with_genre\.parquet\.gzip: No such file"
    with (
        pytest.warns(DataWarning, match=missing),
        pytest.raises(DataError, match=rf"(?s){missing}.*put .*imdb_actors\.parquet\.gzip"),
    ):
        load("imdb", folder=tmp_path)
    with pytest.raises(DataError, match="No matching distribution"):
        load("imdb")
    with pytest.raises(DataError, match="prefixes do not change"):
        load("undirected:imdb")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"eamp\[parquet\]"):
        typed_graphs.read_table("x", b"")


def test_a_file_that_is_no_parquet_is_refused() -> None:
    pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
    with pytest.raises(RefusedError, match="cannot be read as Parquet"):
        typed_graphs.read_table("imdb_actors.parquet.gzip", b"PAR1 and nothing else")


def test_recipes_and_the_command_line_refuse_a_typed_graph(
    tiny: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, content in tiny.items():
        (tmp_path / file).write_bytes(content)
    load("imdb", folder=tmp_path)
    with pytest.raises(DataError, match="typed graph"):
        load_graph("imdb")


@pytest.mark.skipif(not (CACHE / "imdb.npz").is_file(), reason="imdb is not in the user's cache")
def test_the_real_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAMP_CACHE", str(CACHE))
    summary = get("imdb")
    assert (summary.nodes, summary.edges, summary.features) == (12772, 4661 + 13983, 1256)
    assert summary.class_counts == (543, 924, 1472)
    assert (summary.train, summary.val, summary.test) == (1763, 588, 588)


@pytest.mark.skipif(not (CACHE / "lastfm.npz").is_file(), reason="lastfm is not in the cache")
def test_the_real_graph_of_users_and_artists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAMP_CACHE", str(CACHE))
    summary = get("lastfm")
    assert (summary.nodes, summary.edges) == (1892 + 18022, 92834 + 71064 + 12717)
