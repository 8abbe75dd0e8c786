from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eamp.data import available, cache, check, get
from eamp.data.digests import ARRAY_DIGESTS
from eamp.data.errors import DataError


@pytest.fixture
def folder(tiny: dict[str, Any], tmp_path: Path) -> Path:
    tiny["cora"].write_folder(tmp_path / "files")
    return tmp_path / "files"


def test_list_shows_what_is_cached(folder: Path) -> None:
    # Six graphs, then mutag, solubility, and two typed graphs are fetched.
    listed = [*[False] * 6, *[None] * 12, False, *[None] * 3, False, None, False, False]
    assert [entry.cached for entry in available()] == listed
    get("cora", folder=folder)
    assert [entry.cached for entry in available()][:6] == [True] + [False] * 5
    assert str(available()[0]).split()[:2] == ["cora", "cached"]


def test_every_example_of_the_list_can_be_loaded() -> None:
    names = [entry.name for entry in available()]
    prefixes = [name.removesuffix("<name>") for name in names if name.endswith(":<name>")]
    assert len(prefixes) == 6
    for name in ("chains", "distance", *(f"{prefix}csbm" for prefix in prefixes)):
        assert check(name).state == "valid"


def test_get_returns_a_summary(folder: Path) -> None:
    summary = get("cora", folder=folder)
    assert (summary.nodes, summary.edges, summary.features, summary.classes) == (20, 19, 6, 3)
    assert (summary.train, summary.val, summary.test) == (4, 5, 8)
    assert sum(summary.class_counts) == 20
    assert summary.path == cache.cache_path("cora")
    assert "19 undirected edges" in str(summary)
    assert str(summary.path) in str(summary)


def test_edge_count_leaves_out_self_loops_and_duplicates(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        edge_index=[[0, 1, 0, 2, 3], [1, 0, 1, 2, 0]],
        x=np.zeros((6, 1)),
        y=[0, 0, 0, 0, 0, -1],
    )
    summary = get(tmp_path / "a.npz")
    assert (summary.edges, summary.class_counts, summary.path) == (2, (5,), None)


def test_check_reports_absent_intact_and_damaged(folder: Path) -> None:
    assert (check("cora").state, check("cora").ok) == ("absent", True)
    get("cora", folder=folder)
    assert check("Cora").state == "intact"
    assert ARRAY_DIGESTS["cora"] in str(check("cora"))
    path = cache.cache_path("cora")
    path.write_bytes(path.read_bytes()[:-1])
    damaged = check("cora")
    assert (damaged.state, damaged.ok) == ("damaged", False)
    assert "cora.npz is refused" in damaged.detail
    assert path.exists()


def test_check_of_other_names_loads_them(tmp_path: Path) -> None:
    assert check("grid:3x3").state == "valid"
    with pytest.raises(DataError, match="no file"):
        check(tmp_path / "a.npz")


def test_check_refuses_a_directed_graph_and_says_what_to_do(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", edge_index=[[0, 1], [1, 2]], x=np.zeros((6, 1)), y=[0] * 6)
    directed = check(tmp_path / "a.npz")
    assert (directed.state, directed.ok) == ("refused", False)
    assert "undirected:<name>" in directed.detail
    assert check(f"undirected:{tmp_path / 'a.npz'}").ok
