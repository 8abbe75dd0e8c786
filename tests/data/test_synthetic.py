import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, homophily, is_undirected

from eamp.data.digests import digest_of
from eamp.data.errors import DataError
from eamp.data.splits import MASKS
from eamp.data.synthetic import csbm, grid


@given(st.integers(1, 7), st.integers(1, 7))
def test_grid_is_the_grid(rows: int, columns: int) -> None:
    expected = nx.convert_node_labels_to_integers(
        nx.grid_2d_graph(rows, columns), ordering="sorted"
    )
    edges = {tuple(sorted(edge)) for edge in expected.edges}
    data = grid(rows, columns)
    assert {tuple(sorted(edge)) for edge in data.edge_index.t().tolist()} == edges
    assert data.num_edges == 2 * len(edges)
    assert data.num_nodes == rows * columns


def test_grid_features_come_from_the_seed() -> None:
    first, again, other = (
        grid(10, 10, features=3, seed=1),
        grid(10, 10, features=3, seed=1),
        grid(10, 10, features=3, seed=2),
    )
    assert first.x.shape == (100, 3)
    assert torch.equal(first.x, again.x)
    assert not torch.equal(first.x, other.x)
    assert 0 <= float(first.x.min()) < 0.1 < 0.9 < float(first.x.max()) < 1


def test_grid_labels_are_quadrants() -> None:
    assert grid(2, 4).y.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@given(
    st.integers(20, 120), st.integers(2, 5), st.floats(0, 4), st.floats(0.1, 0.9), st.integers(0, 9)
)
def test_csbm_has_the_degree_and_homophily_asked_for(
    nodes: int, classes: int, degree: float, within: float, seed: int
) -> None:
    data = csbm(nodes, classes, degree, within, features=4, seed=seed)
    count = round(nodes * degree / 2)
    assert data.num_edges == 2 * count
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    assert torch.unique(data.edge_index, dim=1).size(1) == data.num_edges
    if count:
        assert homophily(data.edge_index, data.y, method="edge") == pytest.approx(
            round(within * count) / count, abs=1e-6
        )
    sizes = torch.bincount(data.y)
    assert int(sizes.max() - sizes.min()) <= 1


def test_csbm_masks_follow_the_label_rate() -> None:
    data = csbm(nodes=1000, classes=5, label_rate=0.1)
    assert [int(data[mask].sum()) for mask in MASKS] == [100, 450, 450]
    assert torch.bincount(data.y[data.train_mask]).tolist() == [20] * 5


def test_csbm_signal_moves_class_means_apart() -> None:
    def spread(signal: float) -> float:
        data = csbm(nodes=2000, classes=4, signal=signal)
        means = torch.stack([data.x[data.y == c].mean(0) for c in range(4)])
        return float(torch.pdist(means).mean())

    assert spread(0.0) < 0.1
    assert spread(2.0) == pytest.approx(2 * 2**0.5, rel=0.2)


def test_csbm_can_be_complete() -> None:
    data = csbm(nodes=10, classes=2, degree=9, homophily=20 / 45)
    assert data.num_edges == 90


def test_generated_graphs_are_the_same_on_every_platform() -> None:
    # These digests may change only on purpose: a change alters the results of all users.

    def digest(data: Data) -> str:
        return digest_of(
            {key: data[key].numpy() for key in ("edge_index", "x", "y", *MASKS) if key in data}
        )

    assert digest(grid(10, 10))[:16] == "059d14741a24a135"
    assert digest(csbm())[:16] == "69f4e6a8dd9b958f"


@pytest.mark.parametrize(
    "arguments",
    [
        {"homophily": 1.5},
        {"classes": 0},
        {"label_rate": 0.0},
        {"nodes": 3, "classes": 5},
        {"degree": -1.0},
        {"nodes": 20, "degree": 15.0},
        {"seed": -1},
        {"seed": 1.5},
        {"nodes": "many"},
        {"nodes": True},
        {"nodes": 10**12},
        {"nodes": 10**400, "degree": 0.5},
        {"features": 10**9},
        {"features": 0},
        {"degree": math.inf},
        {"degree": math.nan},
        {"homophily": math.nan},
        {"label_rate": math.nan},
        {"signal": math.nan},
        {"signal": math.inf},
        {"signal": 1e300},
        {"signal": None},
    ],
)
def test_impossible_csbm_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="csbm"):
        csbm(**arguments)


def test_impossible_grid_is_refused() -> None:
    with pytest.raises(DataError, match="0 x 3"):
        grid(0, 3)


@pytest.mark.parametrize(
    "arguments",
    [{"seed": -1}, {"rows": 10**6, "columns": 10**6}, {"rows": "3"}, {"features": 1.0}],
)
def test_grid_with_wrong_numbers_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="grid"):
        grid(**arguments)


def test_numpy_numbers_are_numbers() -> None:
    assert csbm(np.int64(50), degree=np.float32(2)).num_nodes == 50  # type: ignore[arg-type]
