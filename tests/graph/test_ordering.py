"""A new order brings neighbours near, changes nothing else, and is made only where it helps."""

import pytest
import torch
from benchmarks.step import local_graph
from torch_geometric.data import Data

import eamp
from eamp.graph import ordering
from eamp.graph.ordering import distance, in_order, near_order, nearer
from eamp.nn import GCN
from eamp.training import PROTOCOLS, train
from problems import random_graph


def shuffled_mesh(nodes: int = 600) -> Data:
    generator = torch.Generator().manual_seed(0)
    place = torch.randperm(nodes, generator=generator)
    edge_index = place[local_graph(nodes, 6 * nodes, reach=4).edge_index]
    y = torch.empty(nodes, dtype=torch.long).scatter_(0, place, torch.arange(nodes) * 3 // nodes)
    x = torch.randn(nodes, 8, generator=generator) + torch.eye(3, 8)[y]
    masks = {
        f"{split}_mask": torch.arange(nodes) % 3 == k
        for k, split in enumerate(("train", "val", "test"))
    }
    return Data(x=x, edge_index=edge_index, y=y, **masks)


def test_a_mesh_gets_its_order_back() -> None:
    data = shuffled_mesh()
    order = near_order(eamp.Graph(data.edge_index))
    assert order is not None
    assert order.sort().values.equal(torch.arange(600))
    assert 20 * distance(*in_order(data, order).edge_index) < distance(*data.edge_index)


def test_a_random_graph_keeps_its_order() -> None:
    assert near_order(random_graph(500, 5000)) is None


def test_everything_moves_with_the_nodes() -> None:
    data = shuffled_mesh()
    order = torch.randperm(600)
    moved = in_order(data, order)
    torch.testing.assert_close(moved.x, data.x[order])
    assert moved.y.equal(data.y[order])
    assert moved.val_mask.equal(data.val_mask[order])
    energy = eamp.dirichlet_energy(data.x, data.edge_index)
    torch.testing.assert_close(eamp.dirichlet_energy(moved.x, moved.edge_index), energy[order])


def test_small_graphs_stay_as_they_are() -> None:
    data = shuffled_mesh()
    assert nearer(data) is data


def test_training_does_not_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained() -> list[float]:
        torch.manual_seed(0)
        model = GCN(8, 16, 3, num_layers=2).double()
        data = shuffled_mesh()
        data.x = data.x.double()
        return [
            epoch.train_loss
            for epoch in train(model, data, PROTOCOLS["paper"].with_changes(epochs=10)).history
        ]

    as_it_is = trained()
    monkeypatch.setattr(ordering, "LARGE", 100)
    assert trained() == pytest.approx(as_it_is, rel=1e-9)


def test_sparse_features_lists_and_weights_move_too() -> None:
    data = shuffled_mesh(40)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))
    data.names, data.edge_weight, data.source = (
        [str(k) for k in range(40)],
        torch.rand(data.num_edges),
        "somewhere",
    )
    sparse = data.clone()
    sparse.x = data.x.to_sparse_csr()
    moved, dense = in_order(sparse, order), in_order(data, order)
    assert moved.names == [str(k) for k in order.tolist()]
    assert moved.x.to_dense().equal(data.x[order])
    assert dense.x.equal(data.x[order])
    assert moved.edge_weight.equal(data.edge_weight)
    assert moved.source == "somewhere"
