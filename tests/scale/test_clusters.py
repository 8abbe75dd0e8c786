"""Batches of clusters: every node is in one core, with exact energies, and models train on them."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE, SAGEConv

import eamp
from eamp.data.synthetic import csbm
from eamp.scale import ClusterLoader
from problems import problems, random_graph


def weighted_data() -> Data:
    graph = random_graph(80, 160, weighted=True)
    x, mask = torch.randn(80, 3, dtype=torch.float64), torch.rand(80) < 0.5
    return Data(
        x=x,
        edge_index=graph.edge_index,
        edge_weight=graph.edge_weight,
        y=torch.arange(80),
        train_mask=mask,
        year=2024,
    )


@given(problem=problems(min_nodes=2), seed=st.integers(0, 2**31), hops=st.integers(1, 3))
def test_energies_of_the_core_are_exact(
    problem: tuple[Tensor, eamp.Graph], seed: int, hops: int
) -> None:
    x, graph = problem
    clusters = torch.randint(3, (graph.num_nodes,), generator=torch.Generator().manual_seed(seed))
    data = Data(
        x=x, edge_index=graph.edge_index, edge_weight=graph.edge_weight, num_nodes=graph.num_nodes
    )
    wanted = eamp.dirichlet_energy(x, graph)
    for batch in ClusterLoader(data, clusters, hops=hops):
        for adjacency in (batch.graph, eamp.Graph(batch)):
            energy = eamp.dirichlet_energy(batch.x, adjacency)
            torch.testing.assert_close(
                energy[batch.core], wanted[batch.n_id[batch.core]], rtol=1e-12, atol=1e-12
            )
        assert torch.equal(batch.graph.degree, graph.degree[batch.n_id])


def test_every_node_is_in_one_core_and_comes_with_its_neighbours() -> None:
    data = weighted_data()
    batches = list(ClusterLoader(data, 8, batch_size=3))
    assert len(batches) == 3
    assert torch.equal(
        torch.cat([batch.n_id[batch.core] for batch in batches]).sort().values, torch.arange(80)
    )
    for batch in batches:
        inside = torch.isin(data.edge_index, batch.n_id)
        from_core = torch.isin(data.edge_index[0], batch.n_id[batch.core])
        assert torch.isin(data.edge_index[1][from_core], batch.n_id).all()
        # All edges among the nodes of the batch.
        assert batch.edge_index.size(1) == batch.edge_weight.numel() == inside.all(0).sum()
        assert torch.equal(batch.x, data.x[batch.n_id])
        assert torch.equal(batch.y, batch.n_id)
        assert torch.equal(batch.train_mask, data.train_mask[batch.n_id] & batch.core)
        assert batch.year == 2024
        assert batch.num_nodes == batch.n_id.numel() == batch.graph.num_nodes


def test_other_clusters_are_joined_in_every_epoch_and_the_seed_decides() -> None:
    data = weighted_data()

    def epochs(shuffle: bool = True) -> list[list[int]]:
        torch.manual_seed(3)
        loader = ClusterLoader(data, 8, batch_size=2, shuffle=shuffle)
        return [torch.cat([batch.n_id[batch.core] for batch in loader]).tolist() for _ in range(2)]

    first, second = epochs()
    assert first != second
    assert epochs() == [first, second]
    first, second = epochs(shuffle=False)
    assert first == second


STEP = {"weight": 2.0, "temperature": 1.0}


@pytest.mark.parametrize(
    ("hops", "model"),
    [
        (1, eamp.nn.GCNConv(3, 4)),
        (2, eamp.EntropyAware(eamp.nn.GCNConv(3, 3), placement="input", **STEP)),
        (3, eamp.EntropyAware(eamp.nn.GCNConv(3, 4), **STEP)),
        (3, eamp.EntropyAware(SAGEConv(3, 4), **STEP)),
        (4, eamp.nn.GCN(3, 4, 2, num_layers=1, entropy=STEP)),  # and a bare layer after it
    ],
    ids=lambda value: str(value) if isinstance(value, int) else type(value).__name__,
)
def test_as_many_hops_as_a_model_reads_make_it_exact(hops: int, model: torch.nn.Module) -> None:
    data, model = weighted_data(), model.double()
    wanted = model(data.x, eamp.Graph(data))

    def errors(hops: int) -> Tensor:
        found = [
            (model(batch.x, batch.graph) - wanted[batch.n_id])[batch.core].abs().amax(1)
            for batch in ClusterLoader(data, 8, hops=hops)
        ]
        return torch.cat(found)

    assert errors(hops).max() < 1e-12
    if hops > 1:
        assert errors(hops - 1).max() > 1e-6  # one hop less is not enough


def test_layers_of_pyg_take_the_edge_list() -> None:
    data = weighted_data()
    model = eamp.wrap(GraphSAGE(3, 4, num_layers=2)).double()
    for batch in ClusterLoader(data, 4):
        assert model(batch.x, batch.edge_index).shape == (batch.num_nodes, 4)


def test_sparse_features_stay_sparse() -> None:
    data = weighted_data()
    dense, data.x = data.x, data.x.to_sparse_csr()
    for batch in ClusterLoader(data, 4):
        assert batch.x.layout == torch.sparse_csr
        assert torch.equal(batch.x.to_dense(), dense[batch.n_id])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            {"clusters": torch.zeros(79, dtype=torch.long)},
            r"one integer per node, shape \[80\]; got \[79\]",
        ),
        ({"clusters": torch.zeros(80)}, "float32"),
        ({"clusters": 0}, "1 part or more"),
        ({"clusters": 4, "hops": 0}, "hops must be at least 1"),
    ],
)
def test_wrong_clusters_are_an_error(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ClusterLoader(weighted_data(), **arguments)


def test_a_batch_of_graphs_is_not_cut() -> None:
    data = weighted_data()
    data.batch = torch.zeros(80, dtype=torch.long)
    with pytest.raises(eamp.GraphError, match="batch of graphs"):
        ClusterLoader(data, 4)


def test_training_by_clusters_is_about_as_good_as_on_the_whole_graph() -> None:
    data = csbm(nodes=1000, degree=6, features=32, signal=1.0, label_rate=0.2, seed=1)

    def accuracy(batches: Any, epochs: int) -> float:
        torch.manual_seed(0)
        model = eamp.nn.GCN(
            32, 16, 5, num_layers=2, dropout=0.3, entropy={"weight": 0.5, "temperature": 1.0}
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
        for _ in range(epochs):
            for x, graph, y, mask in batches():
                optimizer.zero_grad()
                F.cross_entropy(model(x, graph)[mask], y[mask]).backward()
                optimizer.step()
        predicted = eamp.inference(model, data.x, whole).argmax(1)
        return (predicted == data.y)[data.test_mask].float().mean().item()

    whole = eamp.Graph(data)
    loader = ClusterLoader(data, clusters=20, batch_size=4)
    by_clusters = accuracy(
        lambda: ((batch.x, batch.graph, batch.y, batch.train_mask) for batch in loader), epochs=12
    )
    at_once = accuracy(lambda: [(data.x, whole, data.y, data.train_mask)], epochs=60)
    assert at_once > 0.7  # of five classes
    assert by_clusters > at_once - 0.05
