from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import Module, ReLU
from torch_geometric.nn import GAE, GCN, DeepGCNLayer, GCNConv, PairNorm, SAGEConv

import eamp
from diagnostics.faulty_models import Apply, Stack, features, grid, rotate, scale
from eamp.diagnostics import mean_energy


def test_a_shared_layer_gives_a_row_each_time_it_runs() -> None:
    layer = Apply(scale(0.5))
    with eamp.probe(Stack(layer, layer, layer, layer)) as p:
        p.model(features(), grid())
    np.testing.assert_allclose(p.norm[1:] / p.norm[:-1], 0.5)
    assert p.name.tolist() == ["layers.0"] * 4
    with eamp.probe(layer) as alone:  # and so does a bare layer in a loop
        x = features()
        for _ in range(3):
            x = layer(x, grid())
    assert len(alone.table()) == 3


def test_directed_graphs_are_measured_as_undirected_ones() -> None:
    one_way = grid()[:, : grid().size(1) // 2]
    with eamp.probe(Stack(Apply(rotate))) as p:
        p.model(features(), one_way)
    assert p.energy[0] == pytest.approx(mean_energy(rotate(features(), one_way), grid()).item())


@pytest.mark.parametrize("form", ["keyword", "sparse", "graph"])
def test_the_adjacency_is_found_in_every_form(form: str) -> None:
    x, edge_index = features(), grid()
    ones = torch.ones(edge_index.size(1))
    sparse = torch.sparse_coo_tensor(edge_index, ones, (100, 100), check_invariants=True)
    conv = eamp.nn.conv.gcn_conv.GCNConv(32, 8)
    with eamp.probe(conv) as p:
        if form == "keyword":
            out = conv(x=x, edge_index=edge_index)
        else:
            out = conv(x, sparse.to_sparse_csr() if form == "sparse" else eamp.Graph(edge_index))
    assert p.energy[0] == pytest.approx(mean_energy(out, edge_index).item())


def test_an_encoder_called_twice_in_one_pass_gives_all_its_rows() -> None:
    class TwoViews(Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = GCN(32, 16, 2)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.encoder(x, edge_index) + self.encoder(-x, edge_index)

    model = TwoViews()
    with eamp.probe(model) as p:
        for _ in range(2):
            model(features(), grid())
    assert p.name.tolist() == ["encoder.convs.0", "encoder.convs.1"] * 2


def test_an_encoder_called_without_the_model_s_forward() -> None:
    model = GAE(GCN(32, 16, 2))
    with eamp.probe(model) as p:
        for _ in range(3):
            model.encode(features(), grid())
    assert p.name.tolist() == ["encoder.convs.0", "encoder.convs.1"]


def test_other_modules_can_be_measured() -> None:
    blocks = [DeepGCNLayer(GCNConv(32, 32), act=ReLU(), block="res") for _ in range(2)]
    model = Stack(*blocks)
    with eamp.probe(model, layers=DeepGCNLayer) as p:
        out = model(features(), grid())
    assert p.type.tolist() == ["DeepGCNLayer"] * 2
    assert p.energy[-1] == pytest.approx(mean_energy(out, grid()).item())
    with eamp.probe(model, layers=["layers.1"]) as p:
        model(features(), grid())
    assert p.name.tolist() == ["layers.1"]
    with pytest.raises(ValueError, match=r"no module named layers\.7"):
        eamp.probe(model, layers="layers.7")


def test_modules_called_without_an_adjacency_are_measured_on_the_last_one_seen() -> None:
    model = GCN(32, 16, 3, norm=PairNorm())
    with eamp.probe(model, layers=[GCNConv, PairNorm]) as p:
        model(features(), grid())
    assert p.type.tolist() == ["GCNConv", "PairNorm"] * 2 + ["GCNConv"]
    assert np.isfinite(p.energy).all()


def test_bipartite_layers_are_measured_without_a_graph() -> None:
    conv = SAGEConv((32, 32), 8)
    x = features()
    with eamp.probe(conv) as p, pytest.warns(UserWarning, match="cannot be measured on a graph"):
        conv((x, x[:10]), torch.tensor([[50, 60], [0, 1]]))
    assert math.isnan(p.energy[0])
    assert p.norm[0] > 0
