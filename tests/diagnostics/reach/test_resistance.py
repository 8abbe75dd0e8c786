from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

import eamp
from diagnostics.faulty_models import SIDE, grid
from eamp.diagnostics import bottlenecks
from problems import undirected

CLIQUE = 10


def two_cliques(*between: tuple[int, int]) -> Tensor:
    """Two cliques of ten nodes, joined by the given edges."""
    left = list(itertools.combinations(range(CLIQUE), 2))
    right = [(a + CLIQUE, b + CLIQUE) for a, b in left]
    return undirected(*left, *right, *between)


def random_graph(weighted: bool) -> eamp.Graph:
    """Two components, and an isolated node."""
    generator = torch.Generator().manual_seed(0)
    pairs = [(k, k + 1) for k in range(19)] + torch.randint(
        20, (25, 2), generator=generator
    ).tolist()
    pairs += [(k + 20, (k + 1) % 8 + 20) for k in range(8)]
    edges = undirected(*{(min(p), max(p)) for p in map(tuple, pairs) if p[0] != p[1]})
    weight = 1.0 + (edges.sum(0) % 5) if weighted else None
    return eamp.Graph(edges, 29, edge_weight=weight)


def by_definition(graph: eamp.Graph) -> tuple[np.ndarray, float]:
    """The resistances of all pairs, and the total over connected ones, from the dense inverse."""
    dense = np.zeros((graph.num_nodes, graph.num_nodes))
    weight = torch.ones(2 * graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    dense[tuple(graph.edge_index.numpy())] = weight.numpy()
    inverse = np.linalg.pinv(np.diag(dense.sum(1)) - dense)
    diagonal = np.diag(inverse)
    resistance = diagonal[:, None] + diagonal - 2 * inverse
    reachable = np.linalg.matrix_power(dense + np.eye(len(dense)), len(dense)) > 0
    return resistance, float(resistance[reachable].sum() / 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_resistances_and_their_total_are_those_of_the_dense_inverse(weighted: bool) -> None:
    graph = random_graph(weighted)
    found = bottlenecks(graph)
    resistance, total = by_definition(graph)
    assert found.exact
    assert found.resistance == pytest.approx(resistance[tuple(found.edge_index.numpy())])
    assert found.total == pytest.approx(total)
    assert found.share.sum() == pytest.approx(1)
    largest = found.table.iloc[0]
    assert largest["share"] == pytest.approx(found.share.max())
    assert largest["resistance"] == pytest.approx(found.resistance[found.share.argmax()])


def test_a_share_is_how_fast_the_total_falls_with_the_weight_of_the_edge() -> None:
    graph = random_graph(weighted=True)
    found, step = bottlenecks(graph), 1e-3
    for edge in (0, 7):
        ends = found.edge_index[:, edge]
        hit = (graph.edge_index == ends[:, None]).all(0) | (
            graph.edge_index.flip(0) == ends[:, None]
        ).all(0)
        weight = graph.edge_weight.double() * torch.where(hit, 1 + step, 1.0)
        stronger = bottlenecks(eamp.Graph(graph.edge_index, 29, edge_weight=weight))
        assert (found.total - stronger.total) / step / found.total == pytest.approx(
            found.share[edge], rel=5e-3
        )


@pytest.mark.parametrize("mesh", [False, True], ids=["conjugate gradients", "factorised"])
def test_projections_estimate_the_same(mesh: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if mesh:
        monkeypatch.setattr("eamp.diagnostics.reach.laplacian.STEPS", 2)
    graph = random_graph(weighted=True)
    exact, found = bottlenecks(graph), bottlenecks(graph, exact=False, projections=3000)
    assert not found.exact
    assert found.resistance == pytest.approx(exact.resistance, rel=0.15)
    assert found.total == pytest.approx(exact.total, rel=0.1)
    assert found.table["resistance"].iloc[0] == pytest.approx(exact.table["resistance"].iloc[0])
    assert set(found.table["source"][:3]) == set(exact.table["source"][:3])


def test_what_cannot_be_solved_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eamp.diagnostics.reach.laplacian.STEPS", 1)
    with pytest.warns(UserWarning, match="not solved"):
        bottlenecks(two_cliques((4, 15)), exact=False)


def test_the_edge_between_two_cliques_is_found_and_named() -> None:
    found = bottlenecks(two_cliques((4, 15)))
    first = found.table.iloc[0]
    assert (first["source"], first["target"], first["sides"]) == (4, 15, "10 and 10")
    assert first["leverage"] == pytest.approx(1)
    # The potential is ±1/2 on the two sides: n · 20/4 of the total.
    assert first["share"] * found.total == pytest.approx(20 * 5)
    words = str(found)
    assert words.startswith("Bottleneck at edge 4-15 (a bridge)")
    assert all(cure in words for cure in ("VirtualNode", "GPSConv", "Add edges across"))
    assert "Bottleneck" in found._repr_html_()
    assert "<table" in found._repr_html_()


def test_two_edges_between_cliques_are_the_first_two() -> None:
    found = bottlenecks(two_cliques((4, 15), (7, 12)))
    assert set(zip(found.table["source"][:2], found.table["target"][:2], strict=True)) == {
        (4, 15),
        (7, 12),
    }
    assert found.table["leverage"][0] == pytest.approx(0.6, abs=0.05)
    assert found.advice


def test_a_leaf_is_a_bridge_but_no_bottleneck() -> None:
    leaf = torch.cat([grid(), undirected((0, SIDE * SIDE))], dim=1)
    found = bottlenecks(leaf)
    assert not found.advice
    assert str(found).startswith("No single edge is a bottleneck")


def test_without_edges_there_is_nothing_to_say() -> None:
    found = bottlenecks(torch.zeros(2, 0, dtype=torch.long), 3)
    assert found.total == 0
    assert "no edges" in str(found)


def test_cures_are_names_of_pyg() -> None:
    import torch_geometric

    assert torch_geometric.transforms.GDC
    assert torch_geometric.transforms.VirtualNode
    assert torch_geometric.nn.GPSConv
    assert torch_geometric.nn.knn_graph
    with pytest.raises(ValueError, match="at least 1"):
        bottlenecks(grid(), projections=0)
