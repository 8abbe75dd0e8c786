import copy
import dataclasses
import pickle

import pytest
import torch
from torch_geometric.data import Batch, Data

import eamp
from eamp.graph.csr import INT32_MAX
from problems import PROBLEMS, undirected


def test_neighbours_are_sorted_and_reverse_points_at_the_opposite_edge() -> None:
    g = eamp.Graph(undirected((0, 2), (0, 1), (1, 2), (3, 1)))
    assert g.csr.rowptr.tolist() == [0, 2, 5, 7, 8]
    assert g.csr.col.tolist() == [1, 2, 0, 2, 3, 0, 1, 1]
    rows, cols = g.edge_index
    assert torch.equal(rows[g.csr.reverse.long()], cols)
    assert torch.equal(cols[g.csr.reverse.long()], rows)
    assert g.csr.col.dtype == torch.int32
    assert max(g.num_nodes, g.csr.col.numel()) <= INT32_MAX


def test_self_loops_are_dropped_and_do_not_count_in_the_degree() -> None:
    g = eamp.Graph(torch.tensor([[0, 1, 0, 2], [1, 0, 0, 2]]))
    assert g.num_edges == 1
    assert g.degree.tolist() == [1.0, 1.0, 0.0]


def test_duplicates_are_merged_and_their_weights_added() -> None:
    edge_index = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]])
    assert eamp.Graph(edge_index).degree.tolist() == [1.0, 1.0]
    weighted = eamp.Graph(edge_index, edge_weight=torch.tensor([1.0, 2.0, 2.0, 1.0]))
    assert weighted.degree.tolist() == [3.0, 3.0]


def test_isolated_nodes_and_no_edges_are_fine() -> None:
    g = eamp.Graph(torch.empty(2, 0, dtype=torch.int64), num_nodes=3)
    assert (g.num_nodes, g.num_edges) == (3, 0)
    assert eamp.Graph(torch.empty(2, 0, dtype=torch.int64)).num_nodes == 0


def test_a_directed_graph_is_refused_with_its_first_one_way_edge_and_the_remedy() -> None:
    directed = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 3]])
    with pytest.raises(
        eamp.GraphError,
        match=r"2 of 4 edges have no opposite, the first is 1 -> 2.*symmetrize=True",
    ):
        eamp.Graph(directed)
    assert torch.equal(
        eamp.Graph(directed, symmetrize=True).edge_index,
        eamp.Graph(undirected((0, 1), (1, 2), (2, 3))).edge_index,
    )


def test_symmetrize_averages_weights_where_both_directions_are_there() -> None:
    g = eamp.Graph(
        torch.tensor([[0, 1, 1], [1, 0, 2]]),
        edge_weight=torch.tensor([1.0, 3.0, 5.0]),
        symmetrize=True,
    )
    assert g.edge_weight is not None
    assert g.edge_weight.tolist() == [2.0, 2.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "message"),
    [
        (
            torch.tensor([[0, -1], [-1, 0]]),
            2,
            r"2 of 2 edges with an index negative; the first is edge 0, \(0, -1\)",
        ),
        (
            torch.tensor([[0, 5], [5, 0]]),
            3,
            r"2 of 2 edges with an index >= num_nodes = 3; the first is edge 0, \(0, 5\)",
        ),
        (torch.tensor([0, 1]), None, r"shape \[2, num_edges\]; got \[2\]"),
        (torch.tensor([[0, 1], [1, 0], [1, 2]]), None, r"got \[3, 2\]\. It looks transposed"),
        (torch.tensor([[0.0], [1.0]]), None, r"integers; got torch.float32"),
        ("cora", None, r"cannot read a graph from builtins.str"),
        (undirected((0, 1)), -1, r"num_nodes = -1"),
    ],
)
def test_bad_adjacencies_are_named(edge_index: object, num_nodes: int | None, message: str) -> None:
    with pytest.raises(eamp.GraphError, match=message):
        eamp.Graph(edge_index, num_nodes)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.tensor([1.0, -1.0]), r">= 0, but 1 are not; the first is -1.0 on edge 1 -> 0"),
        (torch.tensor([1.0, float("nan")]), r"finite and >= 0"),
        (torch.tensor([1.0, 2.0]), r"symmetric, but 0 -> 1 weighs 1.0 and 1 -> 0 weighs 2.0"),
        (torch.ones(3), r"one entry per edge, shape \[2\]; got \[3\]"),
        (torch.ones(2, requires_grad=True), r"require a gradient, which would be lost"),
    ],
)
def test_bad_weights_are_named(weight: torch.Tensor, message: str) -> None:
    with pytest.raises(eamp.GraphError, match=message):
        eamp.Graph(undirected((0, 1)), edge_weight=weight)


def test_weights_that_differ_by_rounding_are_symmetric() -> None:
    g = eamp.Graph(undirected((0, 1)), edge_weight=torch.tensor([0.1, 0.1 * (1 + 1e-7)]))
    assert g.edge_weight is not None
    assert g.edge_weight[0] == g.edge_weight[1]


def test_a_batch_knows_its_graphs_and_refuses_edges_between_them() -> None:
    one = Data(edge_index=undirected((0, 1)), num_nodes=3)
    g = eamp.Graph(Batch.from_data_list([one, one]))
    assert (g.num_nodes, g.num_graphs) == (6, 2)
    assert "num_graphs=2" in repr(g)
    with pytest.raises(eamp.GraphError, match=r"edge 0 -> 1 joins graphs 0 and 1"):
        eamp.Graph(undirected((0, 1)), batch=torch.tensor([0, 1]))
    with pytest.raises(eamp.GraphError, match=r"one integer per node, shape \[2\]; got \[3\]"):
        eamp.Graph(undirected((0, 1)), batch=torch.tensor([0, 0, 1]))
    with pytest.raises(eamp.GraphError, match="must not be negative; the first such node is 1"):
        eamp.Graph(undirected((0, 1)), batch=torch.tensor([0, -1]))


def test_a_graph_is_frozen_and_can_be_copied() -> None:
    g = eamp.Graph(PROBLEMS["path"].edge_index)
    with pytest.raises(dataclasses.FrozenInstanceError):
        g.num_nodes = 5  # type: ignore[misc]
    assert copy.deepcopy(g).edge_index.tolist() == g.edge_index.tolist()


def test_it_moves_between_devices() -> None:
    g = eamp.Graph(undirected((0, 1)), edge_weight=torch.ones(2), batch=torch.tensor([0, 0]))
    assert g.to("cpu") is g
    moved = g.to("meta")
    assert moved.device.type == "meta"
    assert all(part is None or part.device.type == "meta" for part in (*moved.csr, moved.batch))
    assert "device='meta'" in repr(moved)


def test_a_graph_in_a_batch_moves_with_it() -> None:
    data = Data(x=torch.ones(2, 1), graph=eamp.Graph(torch.tensor([[0, 1], [1, 0]])))
    assert data.to("meta").graph.device.type == "meta"


# --- What a layer may ask ---------------------------------------------------------------------


def test_a_whole_graph_answers_by_itself() -> None:
    g = eamp.Graph(PROBLEMS["path"].edge_index)
    x = torch.tensor([[1.0, 4.0], [2.0, 5.0], [6.0, 0.0]])
    assert g.with_halo(x) is x
    assert g.own_rows(x) is x
    assert g.rows is None
    assert g.in_one_piece
    assert g.total_nodes == 3
    assert g.total(x).tolist() == [9.0, 9.0]
    assert g.mean(x).tolist() == [3.0, 3.0]
    assert g.mean(x[:, 0]).item() == 3.0
    assert g.largest(x[:, 1]).item() == 5.0
    assert g.local_csr is g.csr
    g.require_all_rows("anything")
    assert g.sampled_from is g


def test_in_a_batch_every_node_is_told_about_its_own_graph() -> None:
    g = eamp.Graph(undirected((0, 1), (2, 3)), 5, batch=torch.tensor([0, 0, 1, 1, 1]))
    values = torch.tensor([1.0, 3.0, 2.0, 4.0, 9.0])
    assert g.total(values).item() == 19.0
    assert g.total_by_graph(values).tolist() == [4.0, 15.0]
    assert g.mean(values).tolist() == [2.0, 2.0, 5.0, 5.0, 5.0]
    assert g.mean(values.unsqueeze(1)).shape == (5, 1)
    assert g.largest(values).item() == 9.0
    assert g.largest_by_graph(values).tolist() == [3.0, 9.0]
    assert g.for_nodes(torch.tensor([1.0, 2.0])).tolist() == [1.0, 1.0, 2.0, 2.0, 2.0]
    assert g.graph_sizes().tolist() == [2.0, 3.0]


def test_a_graph_without_nodes_has_totals_of_zero() -> None:
    g, nothing = eamp.Graph(torch.empty(2, 0, dtype=torch.int64), 0), torch.empty(0)
    assert g.total(nothing) == g.mean(nothing) == g.largest(nothing) == 0


def test_things_are_remembered_once_per_graph_and_not_copied() -> None:
    g, calls = eamp.Graph(PROBLEMS["path"].edge_index), []
    for _ in range(2):
        assert g.remember(("answer", 1), lambda: calls.append(1) or 42) == 42
    assert len(calls) == 1
    assert copy.deepcopy(g).remember(("answer", 1), lambda: 43) == 43
    assert pickle.loads(pickle.dumps(g)).edge_index.tolist() == g.edge_index.tolist()
