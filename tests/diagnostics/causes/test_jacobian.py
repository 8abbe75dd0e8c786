"""Largest singular values beside those of Jacobians that are written out."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GAT, GCN, DeepGCNLayer, GCNConv, SAGEConv

import eamp
from diagnostics.faulty_models import Apply, Stack, features, grid, rotate, scale
from eamp.diagnostics.causes.jacobian import largest_singular_value


def dense(function: object, x: Tensor) -> float:
    jacobian = torch.autograd.functional.jacobian(function, x)  # type: ignore[arg-type]
    return float(torch.linalg.matrix_norm(jacobian.reshape(-1, x.numel()), 2))


@pytest.mark.parametrize(
    "conv", [GCNConv(4, 3), SAGEConv(4, 3), eamp.nn.conv.gcn_conv.GCNConv(4, 3)]
)
def test_the_jacobian_of_a_layer_is_that_of_a_dense_computation(conv: torch.nn.Module) -> None:
    path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    expected = dense(lambda z: conv(z, path).tanh(), x.detach())
    found = largest_singular_value(conv(x, path).tanh(), x, iterations=100)
    assert found == pytest.approx(expected, rel=1e-3)


def test_no_dependence_and_no_slope() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    assert math.isnan(largest_singular_value(torch.ones(2, 2, requires_grad=True) * 2, x))
    assert largest_singular_value((x * -1).relu() * 3, x) == 0


def test_factors_multiply_to_the_jacobian_between_two_layers() -> None:
    torch.manual_seed(0)
    table = eamp.diagnose(GCN(32, 16, 4), (features(), grid()), jacobians=True).table
    product = table[[f"{part}_jacobian" for part in ("weights", "aggregation", "between")]].prod(
        axis=1
    )
    assert product[:3].tolist() == pytest.approx(table["jacobian"][:3].tolist())
    assert (table["aggregation_jacobian"] < 1.01).all()  # symmetric normalisation has norm 1
    assert (table["between_jacobian"][:3] <= 1.01).all()  # so has a ReLU


def test_each_part_gets_its_own_factor() -> None:
    model = Stack(Apply(scale(0.5)), Apply(rotate), Apply(scale(3.0)), activation=torch.relu)
    table = eamp.diagnose(model, (features(), grid()), jacobians=True).table
    assert table["weights_jacobian"].tolist() == pytest.approx([0.5, 1.0, 3.0], rel=1e-4)
    assert table["aggregation_jacobian"].tolist() == pytest.approx([1.0] * 3, rel=1e-4)


def test_residual_blocks_and_attention_have_jacobians() -> None:
    blocks = [DeepGCNLayer(GCNConv(32, 32), act=torch.nn.ReLU(), block="res") for _ in range(2)]
    for model in (Stack(*blocks), GAT(32, 8, 2)):
        table = eamp.diagnose(model, (features(), grid()), jacobians=True).table
        assert (table["jacobian"] > 0).all()
