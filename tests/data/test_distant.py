import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected, to_networkx

from eamp.data import DataError, chains, distance, graph_digest, load
from eamp.data.splits import MASKS


def components(data: Data) -> list[torch.Tensor]:
    """Return the nodes of every connected component."""
    found = nx.connected_components(to_networkx(data, to_undirected=True))
    return [torch.tensor(sorted(nodes)) for nodes in found]


def check_split_by_component(data: Data) -> None:
    for nodes in components(data):
        parts = torch.stack([data[mask][nodes] for mask in MASKS])
        assert parts.sum(dim=0).tolist() == [1] * len(nodes)
        assert bool((parts == parts[:, :1]).all())


@given(st.integers(1, 4), st.integers(0, 9), st.integers(2, 6), st.integers(0, 99))
def test_a_chain_says_its_class_at_one_end(classes: int, more: int, length: int, seed: int) -> None:
    count = 4 * classes + more
    data = chains(count, length, classes, features=5, seed=seed)
    assert is_undirected(data.edge_index)
    assert data.num_edges == 2 * count * (length - 1)
    paths = components(data)
    assert [len(nodes) for nodes in paths] == [length] * count
    for nodes in paths:
        (label,) = data.y[nodes].unique().tolist()
        marked = data.x[nodes].nonzero().tolist()
        assert marked == [[0, label]]
        assert float(data.x[nodes[0], label]) == 1
        degrees = torch.bincount(data.edge_index[0], minlength=data.num_nodes)[nodes]
        assert sorted(degrees.tolist()) == [1, 1] + [2] * (length - 2)
        assert int(degrees[0]) == 1
    check_split_by_component(data)
    sizes = torch.bincount(data.y)
    assert int(sizes.max() - sizes.min()) <= length


def test_noise_is_added_to_the_features_of_chains() -> None:
    plain, noisy = chains(), chains(noise=0.1)
    added = noisy.x - plain.x
    assert float(added.std()) == pytest.approx(0.1, rel=0.02)
    assert float(added.mean()) == pytest.approx(0, abs=0.002)
    assert all(torch.equal(plain[key], noisy[key]) for key in ("y", "edge_index", *MASKS))


@given(
    st.sampled_from(["tree", "grid"]),
    st.sampled_from([1, 4, 9, 16]),
    st.integers(2, 6),
    st.integers(0, 99),
    st.data(),
)
def test_labels_are_distances(shape: str, nodes: int, classes: int, seed: int, draw: Any) -> None:
    sources = draw.draw(st.integers(1, nodes))
    data = distance(5, nodes, shape, sources, classes, seed)
    graph = to_networkx(data, to_undirected=True)
    assert data.x.shape == (5 * nodes, 1)
    marked = data.x[:, 0].nonzero().flatten().tolist()
    lengths = nx.multi_source_dijkstra_path_length(graph, set(marked))
    expected = [min(lengths[node], classes - 1) for node in range(5 * nodes)]
    assert data.y.tolist() == expected
    parts = components(data)
    assert len(parts) == 5
    for part in parts:
        assert int(data.x[part].sum()) == sources
        inside = graph.subgraph(part.tolist())
        side = math.isqrt(nodes)
        wanted = nx.path_graph(nodes) if shape == "tree" else nx.grid_2d_graph(side, side)
        assert nx.is_tree(inside) if shape == "tree" else nx.is_isomorphic(inside, wanted)
    check_split_by_component(data)


def test_every_tree_is_equally_likely() -> None:
    """Four of the sixteen trees on four nodes are stars."""
    data = distance(graphs=4000, nodes=4)
    degrees = torch.bincount(data.edge_index[0]).reshape(4000, 4)
    assert float((degrees.amax(dim=1) == 3).float().mean()) == pytest.approx(0.25, abs=0.03)


def test_distant_graphs_are_the_same_on_every_platform() -> None:
    # These digests may change only on purpose: a change alters the results of all users.
    assert graph_digest(chains())[:16] == "db80a73f4a1b25c6"
    assert graph_digest(chains(noise=0.1))[:16] == "d62457d571096307"
    assert graph_digest(distance())[:16] == "56c4a9456bb88615"
    assert graph_digest(distance(shape="grid"))[:16] == "9d72812199197e36"


def test_options_stand_in_the_name() -> None:
    assert load("chains:count=12,length=3,classes=3,features=3,noise=0.1,seed=2").x.shape == (36, 3)
    data = load("distance:graphs=4,nodes=9,shape=grid,sources=2,classes=3,seed=2")
    assert (data.num_nodes, data.num_edges, data.num_classes) == (36, 96, 3)
    with pytest.raises(DataError, match=r"does not understand 'nodes=5'.* as in chains:length=10"):
        load("chains:nodes=5")


@pytest.mark.parametrize(
    "options",
    [
        {"count": 7},
        {"length": 1},
        {"classes": 0},
        {"classes": 17},
        {"features": 1},
        {"noise": -0.1},
        {"noise": math.nan},
        {"noise": math.inf},
        {"noise": "loud"},
        {"count": 10**9},
        {"count": 8.0},
        {"seed": -1},
    ],
)
def test_impossible_chains_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="chains"):
        chains(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"graphs": 3},
        {"nodes": 0},
        {"sources": 0},
        {"sources": 65},
        {"classes": 1},
        {"shape": "ring"},
        {"shape": 4},
        {"shape": "grid", "nodes": 50},
        {"graphs": 10**9},
        {"nodes": 10**400},
        {"seed": -1},
    ],
)
def test_impossible_distances_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="distance"):
        distance(**options)


def test_numpy_numbers_are_numbers() -> None:
    assert chains(np.int64(8), noise=np.float32(0)).num_nodes == 160  # type: ignore[arg-type]
