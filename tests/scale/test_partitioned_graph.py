"""What a process holds of a graph: complete rows, and routes on which both ends agree. No second process is needed to see that."""

from typing import Any

import pytest
import torch
from eamp.ops.part import PartCSR
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import eamp
from eamp import ops
from eamp.graph.subgraph import take_rows
from eamp.nn.models import MODELS
from eamp.scale.partitioned_graph import GraphPart, take_part
from scale.jobs import weighted_graph


class Elsewhere:
    """An exchange that takes the halo's rows from the whole matrix."""

    def __init__(self, halo: Tensor) -> None:
        self.ids, self.whole = halo, torch.empty(0)

    def halo(self, x: Tensor) -> Tensor:
        return self.whole[self.ids]


def halo_of(part: GraphPart, graph: eamp.Graph, parts: Tensor) -> Tensor:
    """The halo's numbers: neighbours elsewhere, by owner and number."""
    row, col = graph.edge_index
    mine = parts == parts[part.csr.nodes[0]]
    outside = col[mine[row] & ~mine[col]].unique()
    return outside[torch.argsort(parts[outside] * graph.num_nodes + outside)]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(2, 5))
def test_what_one_sends_is_what_the_other_expects(seed: int, count: int) -> None:
    graph = weighted_graph(seed)
    parts = torch.randint(count, (40,))
    parts[:count] = torch.arange(count)
    taken = [take_part(graph, parts, rank, count) for rank in range(count)]
    assert torch.equal(
        torch.cat([part.csr.nodes for part in taken]).sort().values, torch.arange(40)
    )
    for rank, part in enumerate(taken):
        routes: Any = part.csr.exchange.routes  # type: ignore[attr-defined]  # of the wire that it is
        halo = halo_of(part, graph, parts)
        assert part.halo_size == halo.numel()
        assert routes.received == parts[halo].bincount(minlength=count).tolist()
        assert routes.received[rank] == routes.sent[rank] == 0
        for other, arrives in enumerate(halo.split(routes.received)):
            theirs: Any = taken[other].csr.exchange.routes  # type: ignore[attr-defined]  # likewise
            sent = theirs.rows.split(theirs.sent)[rank]
            assert torch.equal(taken[other].csr.nodes[sent], arrives)


def test_rows_are_complete() -> None:
    graph = weighted_graph()
    parts = torch.arange(40) % 3
    x = torch.randn(40, 3, dtype=torch.float64)
    wanted = ops.squared_differences(x, graph.csr)
    for rank in range(3):
        part = take_part(graph, parts, rank, 3)
        exchange = Elsewhere(halo_of(part, graph, parts))
        exchange.whole = x
        csr = PartCSR.make(
            part.csr.local, part.csr.degree, part.csr.rsqrt_degree, exchange, part.csr.nodes, 40
        )  # type: ignore[arg-type]
        torch.testing.assert_close(
            ops.squared_differences(x[part.csr.nodes], csr), wanted[part.csr.nodes]
        )
        assert torch.equal(part.degree, graph.degree[part.csr.nodes])


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


def test_what_needs_all_nodes_says_so() -> None:
    x = torch.randn(20, 3)
    for function in (eamp.boltzmann, eamp.entropy, eamp.entropy_gradient):
        with pytest.raises(eamp.GraphError, match="normalize=True"):
            function(x, half(), normalize=True)
    with pytest.raises(eamp.GraphError, match="this measure"):
        eamp.diagnostics.rusch_energy(x, half())
    with pytest.raises(eamp.GraphError, match="single edges"):
        half().edge_index  # noqa: B018  # a property


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
    with pytest.raises(eamp.GraphError, match="cut the graph after moving it"):
        part.to("meta")
