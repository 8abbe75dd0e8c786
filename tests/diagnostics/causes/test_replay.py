"""Layers without aggregation: what they return is what their weights make of each node alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric.nn import (
    APPNP,
    DeepGCNLayer,
    GATConv,
    GATv2Conv,
    GCN2Conv,
    GCNConv,
    GINConv,
    GINEConv,
    GraphConv,
    SAGEConv,
    TransformerConv,
)

import eamp
from diagnostics.faulty_models import Apply, features, grid, mean_of_neighbourhood, scale
from eamp.diagnostics.causes.replay import without_aggregation


def alone(layer: Module, x: Tensor, *args: Any, **kwargs: Any) -> Tensor | None:
    with torch.no_grad():
        out = layer(x, *args, **kwargs)
        return without_aggregation(layer.eval(), x, (x, *args), kwargs, out.shape)


def check(layer: Module, expected: Tensor, *args: Any, **kwargs: Any) -> None:
    found = alone(layer, features(), *args, **kwargs)
    assert found is not None
    torch.testing.assert_close(found, expected.detach(), rtol=1e-4, atol=1e-5)


def test_graph_convolution_is_its_linear_map() -> None:
    conv = GCNConv(32, 8)
    check(conv, features() @ conv.lin.weight.T + conv.bias, grid())
    ours = eamp.nn.conv.gcn_conv.GCNConv(32, 8)
    check(ours, features() @ ours.lin.weight.T, grid())
    check(ours, features() @ ours.lin.weight.T, eamp.Graph(grid()))


def test_edge_weights_of_self_loops_are_one() -> None:
    conv = GCNConv(32, 8)
    check(conv, features() @ conv.lin.weight.T, grid(), torch.rand(grid().size(1)))
    conv = GraphConv(32, 8)
    weight = conv.lin_rel.weight + conv.lin_root.weight
    check(conv, features() @ weight.T + conv.lin_rel.bias, grid(), edge_weight=torch.rand(360))


def test_layers_with_weights_of_their_own_for_the_node_use_both() -> None:
    conv = SAGEConv(32, 8)
    weight = conv.lin_l.weight + conv.lin_r.weight
    check(conv, features() @ weight.T + conv.lin_l.bias, grid())
    conv = TransformerConv(32, 8)
    value, skip = conv.lin_value, conv.lin_skip
    check(conv, value(features()) + skip(features()), grid())


def test_attention_to_oneself_alone_is_the_linear_map() -> None:
    conv = GATConv(32, 8, heads=2)
    check(conv, features() @ conv.lin.weight.T + conv.bias, grid())
    conv = GATv2Conv(32, 8, heads=2)
    check(conv, conv.lin_l(features()) + conv.bias, grid())


def test_gin_sees_the_node_once() -> None:
    conv = GINConv(Linear(32, 8), eps=0.5)
    check(conv, conv.nn(1.5 * features()), grid())
    conv = GINEConv(Linear(32, 8), edge_dim=3)
    check(conv, conv.nn(features()), grid(), torch.rand(360, 3))


def test_initial_residual_layers_keep_their_other_arguments() -> None:
    conv = GCN2Conv(32, alpha=0.3, theta=0.5, layer=1)
    first = features(seed=1)
    mixed = 0.7 * features() + 0.3 * first
    check(conv, (1 - conv.beta) * mixed + conv.beta * mixed @ conv.weight1, first, grid())


def test_the_entropy_step_counts_as_aggregation() -> None:
    conv = GCNConv(32, 8)
    wrapped = eamp.EntropyAware(conv, weight=5.0, temperature=1.0)
    check(wrapped, features() @ conv.lin.weight.T, grid())


def test_a_block_is_run_as_a_whole() -> None:
    block = DeepGCNLayer(GCNConv(32, 32), block="res")
    check(block, features() + features() @ block.conv.lin.weight.T, grid())


def test_our_layers_and_layers_without_weights() -> None:
    check(Apply(mean_of_neighbourhood), features(), grid())
    check(Apply(scale(0.5)), 0.5 * features(), grid())
    check(APPNP(3, 0.1), features(), grid())


def test_named_arguments() -> None:
    conv = SAGEConv(32, 8)
    with torch.no_grad():
        kwargs = {"x": features(), "edge_index": grid()}
        found = without_aggregation(conv, features(), (), kwargs, torch.Size((100, 8)))
    torch.testing.assert_close(found, alone(conv, features(), grid()))


@pytest.mark.parametrize("conv", [GCNConv(32, 8, cached=True), Linear(32, 8)])
def test_layers_that_keep_their_graph_or_take_none_are_refused(conv: Module) -> None:
    args = (grid(),) if isinstance(conv, GCNConv) else ()
    assert alone(conv, features(), *args) is None


def test_a_layer_that_fails_without_edges_is_refused() -> None:
    def needy(x: Tensor, edge_index: Any) -> Tensor:
        if eamp.Graph(edge_index).num_edges < 100:
            raise ValueError("too few edges")
        return x

    assert alone(Apply(needy), features(), grid()) is None
    diagnosis = eamp.diagnose(Apply(needy), (features(), grid()))
    assert diagnosis.kind == "healthy"
    assert diagnosis.table["weights_norm"].isna().all()
