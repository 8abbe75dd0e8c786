import gc
import math
import weakref

import networkx as nx
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Batch, Data

import eamp
from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.nn.step import threshold as unit
from eamp.nn.step.threshold import collapse_threshold, unit_threshold
from problems import graphs, irregular_graph, undirected


def closed_form(k: int, width: int) -> float:
    return (k + 3) / (k - 1) * math.sqrt(width / k) / 4


@pytest.mark.parametrize(
    ("graph", "degree"),
    [
        (nx.cycle_graph(6), 2),
        (nx.grid_2d_graph(6, 6, periodic=True), 4),
        (nx.complete_bipartite_graph(5, 5), 5),
        (nx.hypercube_graph(3), 3),
        (nx.cycle_graph(300), 2),  # more nodes than steps of Lanczos
    ],
)
@pytest.mark.parametrize("width", [16, 256])
def test_closed_form_on_regular_bipartite_graphs(graph: nx.Graph, degree: int, width: int) -> None:
    assert collapse_threshold(eamp.Graph(graph), width).item() == pytest.approx(
        closed_form(degree, width), rel=1e-3
    )


def dense_radius(graph: eamp.Graph, weight: float, width: int) -> float:
    identity = torch.eye(graph.num_nodes, dtype=torch.float64)
    step = eamp.ops.weighted_differences(graph.rsqrt_degree / width**0.5, identity, graph)
    return float(
        torch.linalg.eigvals((identity + weight * step) @ gcn_propagate(identity, graph))
        .abs()
        .max()
    )


@given(graphs(min_nodes=3))
def test_at_the_threshold_the_dense_operator_has_radius_2(graph: eamp.Graph) -> None:
    found = collapse_threshold(graph, 9).item()
    if found == 0:  # no weight helps
        assert dense_radius(graph, 3 * 60.0, 9) < 2
    else:
        assert dense_radius(graph, found, 9) == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize("graph", [nx.complete_graph(5), nx.path_graph(2), nx.empty_graph(3)])
def test_it_is_0_where_no_weight_helps(graph: nx.Graph) -> None:
    assert collapse_threshold(eamp.Graph(graph), 64).item() == 0


def test_graphs_in_a_batch_have_the_thresholds_they_have_alone() -> None:
    alone = [
        eamp.Graph(graph)
        for graph in (
            nx.cycle_graph(6),
            nx.grid_2d_graph(3, 4),
            nx.complete_graph(4),
            nx.star_graph(5),
        )
    ]
    batch = Batch.from_data_list(
        [Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes) for graph in alone]
    )
    together = collapse_threshold(eamp.Graph(batch), 64)
    torch.testing.assert_close(
        together, torch.cat([collapse_threshold(graph, 64) for graph in alone]), rtol=1e-3, atol=0
    )


def test_an_edge_index_may_leave_nodes_out() -> None:
    square = undirected((0, 1), (1, 2), (2, 3), (3, 0))
    torch.testing.assert_close(
        collapse_threshold(square, 64, num_nodes=9), collapse_threshold(square, 64)
    )


def test_it_is_estimated_once_and_forgotten_with_its_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, calls, estimate = irregular_graph(), [], unit.estimate
    monkeypatch.setattr(unit, "estimate", lambda *given: calls.append(1) or estimate(*given))
    first = unit_threshold(graph)
    assert unit_threshold(graph) is first
    assert len(calls) == 1
    alive = weakref.ref(first)
    del graph, first
    gc.collect()
    assert alive() is None


def test_the_operator_under_compile_passes_opcheck() -> None:
    graph = irregular_graph()
    torch.library.opcheck(unit._threshold_of_key, (graph.edge_index, 10, 1, False))
