"""Sparse input features give what dense ones give."""

import pytest
import torch
from torch_geometric.data import Data

import eamp
from eamp.nn.models import MODELS
from eamp.nn.models.traits import traits
from eamp.training import PROTOCOLS, train
from eamp.training.sparse_features import sparse_features
from eamp.training.tasks import node_level


def bag_of_words(features: int = 90) -> Data:
    data = eamp.data.load("csbm:nodes=60,features=8")
    data.x = (torch.rand(60, features, generator=torch.Generator().manual_seed(0)) < 0.04).float()
    return data


def network(name: str, data: Data, width: int = 16) -> torch.nn.Module:
    torch.manual_seed(0)
    return MODELS[name](data.num_features, width, data.num_classes, 3)


TAKING = [name for name in MODELS if traits(network(name, bag_of_words())).takes_sparse_features]


@pytest.mark.parametrize("name", TAKING)
@pytest.mark.parametrize("width", [16, 128])  # narrower and wider than the input
def test_models_take_both(name: str, width: int) -> None:
    data = bag_of_words()
    model, sparse = network(name, data, width).eval(), sparse_features(data.x)
    assert sparse.layout == torch.sparse_csr
    expected, got = model(data.x, data.edge_index), model(sparse, data.edge_index)
    torch.testing.assert_close(got, expected)
    weight = next(p for p in model.parameters() if p.dim() == 2 and data.num_features in p.shape)
    torch.testing.assert_close(
        *(torch.autograd.grad(out.square().sum(), weight)[0] for out in (got, expected)),
        rtol=1e-4,
        atol=1e-5,
    )


def test_most_models_take_both() -> None:
    taking = "gcn pairnorm g2 gcnii linear egnn residual-gcn state-space acmp grand gps"
    assert set(taking.split()) <= set(TAKING)
    assert "noisy-gcn" not in TAKING  # it adds noise to every feature


def test_training_is_the_same_but_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    data, short = bag_of_words(), PROTOCOLS["standard"].with_changes(epochs=8)
    sparse = train(network("gcn", data), data, short)
    monkeypatch.setattr(node_level, "sparse_features", lambda x: x)
    dense = train(network("gcn", data), data, short)
    assert [row.train_loss for row in sparse.history] == pytest.approx(
        [row.train_loss for row in dense.history], rel=1e-4
    )


def test_dense_features_stay_dense() -> None:
    x = torch.randn(30, 30)
    assert sparse_features(x) is x
    assert sparse_features(sparse_features(torch.eye(30))).layout == torch.sparse_csr
    wanted = torch.eye(30).requires_grad_()
    assert sparse_features(wanted) is wanted
