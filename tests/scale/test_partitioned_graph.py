"""A part of a graph has complete rows, and sends the rows that other parts expect.

No second process is needed to see that.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import eamp
from eamp import ops
from eamp.graph.subgraph import take_rows
from eamp.nn.models import MODELS
from eamp.scale.partitioned_graph import GraphPart, take_part
from scale.jobs import weighted_graph


def halo_of(part: GraphPart, graph: eamp.Graph, parts: Tensor) -> Tensor:
    """Return the nodes of the halo: neighbours in other parts, by part and number."""
    row, col = graph.edge_index
    mine = parts == parts[part.rows.nodes[0]]
    outside = col[mine[row] & ~mine[col]].unique()
    return outside[torch.argsort(parts[outside] * graph.num_nodes + outside)]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(2, 5))
def test_what_one_sends_is_what_the_other_expects(seed: int, count: int) -> None:
    graph = weighted_graph(seed)
    parts = torch.randint(count, (40,))
    parts[:count] = torch.arange(count)
    taken = [take_part(graph, parts, rank, count) for rank in range(count)]
    nodes = [part.rows.nodes for part in taken]
    assert torch.equal(torch.cat(nodes).sort().values, torch.arange(40))
    for rank, part in enumerate(taken):
        halo = halo_of(part, graph, parts)
        assert part.halo_size == halo.numel()
        assert part.received == parts[halo].bincount(minlength=count).tolist()
        assert part.received[rank] == part.sent[rank] == 0
        for other, arrives in enumerate(halo.split(part.received)):
            sent = taken[other].rows_to_send.split(taken[other].sent)[rank]
            assert torch.equal(nodes[other][sent], arrives)


def test_rows_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = weighted_graph()
    parts = torch.arange(40) % 3
    x = torch.randn(40, 3, dtype=torch.float64)
    wanted = ops.squared_differences(x, graph)
    for rank in range(3):
        part = take_part(graph, parts, rank, 3)
        halo, nodes = x[halo_of(part, graph, parts)], part.rows.nodes
        monkeypatch.setattr(GraphPart, "halo", lambda part, x, halo=halo: halo)
        torch.testing.assert_close(ops.squared_differences(x[nodes], part), wanted[nodes])
        assert torch.equal(part.degree, graph.degree[nodes])
        assert (part.num_nodes, part.total_nodes) == (nodes.numel(), 40)


def test_places_of_rows_in_sparse_features() -> None:
    graph, x = weighted_graph(), torch.randn(40, 5).relu()
    nodes = torch.arange(0, 40, 2)
    part = take_part(graph, torch.arange(40) % 2, 0, 2, features=x.to_sparse_csr())
    assert torch.equal(part.rows.nodes, nodes)
    assert torch.equal(part.rows.entries, (x > 0).sum(1).cumsum(0)[nodes] - (x > 0).sum(1)[nodes])
    assert take_part(graph, torch.arange(40) % 2, 0, 2, features=x).rows.entries is None


def test_rows_of_features_dense_and_sparse() -> None:
    x, rows = torch.randn(8, 5).relu(), torch.tensor([0, 3, 4, 7])
    assert torch.equal(take_rows(x, rows), x[rows])
    assert torch.equal(take_rows(x.to_sparse_csr(), rows).to_dense(), x[rows])


def half() -> GraphPart:
    return take_part(weighted_graph(), torch.arange(40) // 20, 0, 2)


@pytest.mark.parametrize("name", ["gat", "graphsage", "grand"])
def test_models_that_read_single_edges_say_that_they_cannot(name: str) -> None:
    with pytest.raises(eamp.GraphError, match="spread over several processes"):
        MODELS[name](3, 4, 2, 1)(torch.randn(20, 3), half())


def test_functions_that_need_all_rows_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    x, part = torch.randn(20, 3), half()
    no_halo = torch.zeros(part.halo_size, 3)
    monkeypatch.setattr(GraphPart, "halo", lambda part, x: no_halo)
    for function in (eamp.boltzmann, eamp.entropy, eamp.entropy_gradient):
        with pytest.raises(eamp.GraphError, match="normalize=True"):
            function(x, part, normalize=True)
    with pytest.raises(eamp.GraphError, match="the distance to remote nodes"):
        eamp.diagnostics.mad_gap(x, part)
    with pytest.raises(eamp.GraphError, match="single edges"):
        part.edge_index  # noqa: B018  # a property


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        (torch.zeros(39, dtype=torch.long), "one integer per node"),
        (torch.zeros(40), "one integer per node"),
        (torch.full((40,), 2), "0 to 1"),
        (
            torch.zeros(40, dtype=torch.long),
            "1 of 2 parts have no node, the first is 1; use fewer processes",
        ),
    ],
)
def test_parts_that_do_not_fit(part: Tensor, complaint: str) -> None:
    with pytest.raises(eamp.GraphError, match=complaint):
        take_part(weighted_graph(), part, 0, 2)


def test_a_part_shows_what_it_is() -> None:
    part = half()
    assert repr(part).startswith("GraphPart(num_nodes=20 of 40, ")
    assert part.to("cpu") is part
    with pytest.raises(eamp.GraphError, match="move the whole graph to meta and make it again"):
        part.to("meta")
