import networkx as nx
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

import eamp
from problems import graphs, undirected


def weights(g: eamp.Graph) -> torch.Tensor:
    return (
        torch.ones(2 * g.num_edges, dtype=torch.float64)
        if g.edge_weight is None
        else g.edge_weight.double()
    )


def same(a: eamp.Graph, b: eamp.Graph) -> bool:
    return (
        a.num_nodes == b.num_nodes
        and torch.equal(a.edge_index, b.edge_index)
        and torch.allclose(weights(a), weights(b))
    )


class SparseTensor:
    """The methods of torch_sparse.SparseTensor that eamp calls, for a matrix of three nodes.

    The package itself has wheels for few platforms.
    """

    def __init__(self, edges: torch.Tensor, value: torch.Tensor | None) -> None:
        self.edges, self.value = edges, value

    def coo(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        return self.edges[0], self.edges[1], self.value

    def sizes(self) -> list[int]:
        return [3, 3]


SparseTensor.__module__ = "torch_sparse.tensor"


@given(graphs())
def test_all_formats_agree(g: eamp.Graph) -> None:
    n, edge_index, values = g.num_nodes, g.edge_index, weights(g)
    coo = torch.sparse_coo_tensor(edge_index, values, (n, n))
    matrix = sp.coo_matrix((values.numpy(), tuple(edge_index.numpy())), shape=(n, n))
    network = nx.Graph()
    network.add_nodes_from(range(n))
    network.add_weighted_edges_from(
        (int(i), int(j), float(w)) for (i, j), w in zip(edge_index.t(), values, strict=True)
    )
    formats = {
        "graph": g,
        "coo": coo,
        "csr": coo.to_sparse_csr(),
        "csc": coo.to_sparse_csc(),
        "networkx": network,
        "scipy csr": matrix.tocsr(),
        "scipy coo": matrix,
        "scipy array": sp.csr_array(matrix),
        "data": Data(edge_index=edge_index, edge_weight=g.edge_weight, num_nodes=n),
        "data adj_t": Data(adj_t=coo.coalesce(), num_nodes=n),
    }
    for name, adjacency in formats.items():
        assert same(eamp.Graph(adjacency), g), name
    for name, adjacency in {
        "edge_index": edge_index,
        "int32": edge_index.int(),
        "numpy": edge_index.numpy(),
        "EdgeIndex": EdgeIndex(edge_index, sparse_size=(n, n)),
        "shuffled": edge_index.flip(1),
    }.items():
        weight = (
            g.edge_weight.flip(0)
            if name == "shuffled" and g.edge_weight is not None
            else g.edge_weight
        )
        assert same(eamp.Graph(adjacency, n, edge_weight=weight), g), name


def test_networkx_nodes_are_numbered_in_their_own_order() -> None:
    network = nx.Graph([("b", "a"), ("b", "c")])
    assert eamp.Graph(network).degree.tolist() == [2.0, 1.0, 1.0]
    with pytest.raises(eamp.GraphError, match="directed"):
        eamp.Graph(nx.DiGraph([(0, 1)]))


def test_duplicates_in_a_matrix_are_added_up_and_in_an_edge_index_they_are_one_edge() -> None:
    edges = torch.cat([undirected((0, 1)), undirected((0, 1)), undirected((1, 2))], dim=1)
    row, col = edges.numpy()
    for value in (torch.ones(6), torch.full((6,), 3.0), torch.ones(6, dtype=torch.int64)):
        sparse = torch.sparse_coo_tensor(edges, value, (3, 3))
        matrix = sp.coo_matrix((value.numpy(), (row, col)), shape=(3, 3))
        expected = value[0] * torch.tensor([2.0, 3.0, 1.0], dtype=torch.float64)
        own = SparseTensor(edges, value)
        for adjacency in (sparse, sparse.coalesce(), matrix, matrix.tocsr(), own):
            assert torch.equal(eamp.Graph(adjacency).degree, expected)
        assert matrix.nnz == sparse._nnz() == 6, "the matrix is left as it was"
    truth = torch.sparse_coo_tensor(edges, torch.ones(6, dtype=torch.bool), (3, 3))
    for adjacency in (edges, truth, SparseTensor(edges, None)):
        assert eamp.Graph(adjacency).degree.tolist() == [1.0, 2.0, 1.0]
    weight = torch.arange(6.0) // 2  # one for every stored entry, in the order in which they stand
    weighted = eamp.Graph(torch.sparse_coo_tensor(edges, torch.ones(6), (3, 3)), edge_weight=weight)
    assert weighted.degree.tolist() == [1.0, 3.0, 2.0]


def test_parallel_edges_of_a_multigraph_are_added_up() -> None:
    network = nx.MultiGraph([(0, 1), (1, 0)])
    assert eamp.Graph(network).degree.tolist() == [2.0, 2.0]
    network.add_edge(1, 2, weight=2)
    assert eamp.Graph(network).degree.tolist() == [2.0, 4.0, 2.0]
    assert eamp.Graph(nx.MultiDiGraph(network)).degree.tolist() == [2.0, 4.0, 2.0]
    assert eamp.Graph(nx.MultiGraph([(0, 1), (1, 2)])).edge_weight is None


def test_sizes_must_agree() -> None:
    with pytest.raises(eamp.GraphError, match="square; got 2 x 3"):
        eamp.Graph(sp.csr_matrix((2, 3)))
    with pytest.raises(eamp.GraphError, match="num_nodes = 5, but the adjacency has 2 nodes"):
        eamp.Graph(sp.csr_matrix((2, 2)), num_nodes=5)
    with pytest.raises(eamp.GraphError, match="two dimensions"):
        eamp.Graph(torch.zeros(2, 2, 2).to_sparse())
    with pytest.raises(eamp.GraphError, match="neither edge_index nor adj_t"):
        eamp.Graph(Data(num_nodes=2))


def test_torch_sparse_tensors_are_read_through_their_own_interface() -> None:
    matrix = SparseTensor(undirected((0, 1)), None)
    assert same(eamp.Graph(matrix), eamp.Graph(undirected((0, 1)), 3))


@pytest.mark.parametrize(
    "kind", [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32]
)
def test_integers_of_any_width_are_read(kind: torch.dtype) -> None:
    edges, batch = undirected((0, 1), (3, 4)), torch.tensor([0, 0, 0, 1, 1])
    expected = eamp.Graph(edges, num_nodes=5, batch=batch)
    g = eamp.Graph(edges.to(kind), num_nodes=5, batch=batch.to(kind))
    x = torch.randn(5, 3)
    assert g.edge_index.tolist() == expected.edge_index.tolist()
    assert torch.equal(eamp.entropy_gradient(x, g), eamp.entropy_gradient(x, expected))
    assert eamp.Graph(edges.to(kind).numpy()).edge_index.tolist() == expected.edge_index.tolist()
    for values in (torch.tensor([True] * 5), torch.ones(5), torch.ones(5, dtype=torch.complex64)):
        with pytest.raises(eamp.GraphError, match="one integer per node"):
            eamp.Graph(edges, num_nodes=5, batch=values)
