"""The factors of the parts: their product, and the part that is named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

import eamp
from diagnostics.faulty_models import Apply, Stack, average, features, grid, scale
from eamp.diagnostics.causes.attribution import PARTS, QUANTITIES, factors
from eamp.diagnostics.causes.dissection import WIDEST


class Residual(Stack):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
        for layer in self.layers:
            x = x + layer(x, edge_index).relu()
        return x


MODELS: dict[str, Module] = {
    "GCN": GCN(32, 16, 4, norm="layer_norm"),
    "SAGE": GraphSAGE(32, 16, 4),
    "GIN": GIN(32, 16, 4),
    "GAT": GAT(32, 16, 4, heads=2),
    "residual": Residual(*(eamp.nn.conv.gcn_conv.GCNConv(32, 32) for _ in range(4))),
    "wrapped": eamp.wrap(GCN(32, 16, 4), weight=2.0, temperature=1.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_factors_multiply_to_the_change_from_a_layer_s_input_to_the_next(name: str) -> None:
    table = eamp.diagnose(MODELS[name], (features(), grid())).table
    for quantity in QUANTITIES:
        product = table[[f"{part}_{quantity}" for part in PARTS]].prod(axis=1, skipna=False)
        before, after = table[f"input_{quantity}"], table[f"after_{quantity}"]
        change = before / after if quantity == "gradient" else after / before
        assert product.notna().all()
        assert product.tolist() == pytest.approx(change.tolist(), rel=1e-9)
        assert after[:3].tolist() == before[1:].tolist()


def test_each_part_is_blamed_for_its_own_doing() -> None:
    halves = Stack(*(Apply(scale(0.5)) for _ in range(12)))
    (found,) = eamp.diagnose(halves, (features(), grid())).findings
    assert (found.kind, found.culprit) == ("shrinking", "weights")
    assert "the factor is 0.5 for the weights, 1 for aggregation, 1 for what follows" in found.words
    between = Stack(*(Apply(scale(1.0)) for _ in range(12)), activation=lambda x: 0.5 * x)
    (found,) = eamp.diagnose(between, (features(), grid())).findings
    assert (found.kind, found.culprit) == ("shrinking", "between")
    averages = Stack(*(Apply(average) for _ in range(40)))
    found = eamp.diagnose(averages, (features(), grid())).findings[0]
    assert (found.kind, found.culprit) == ("smoothing", "aggregation")


def test_gradients_are_those_of_autograd() -> None:
    model = Residual(*(eamp.nn.conv.gcn_conv.GCNConv(32, 32) for _ in range(3)))
    table = eamp.diagnose(model, (features(), grid())).table
    x = features().requires_grad_()
    states = [x]
    for layer in model.layers:
        states.append(states[-1] + layer(states[-1], grid()).relu())
    seed = torch.randn(
        states[-1].shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    ).float()
    expected = torch.autograd.grad(states[-1], states[:3], seed)
    np.testing.assert_allclose(
        table["input_gradient"], [float(g.norm()) for g in expected], rtol=1e-5
    )


def test_the_parts_of_the_gradient_at_wide_features_are_not_measured() -> None:
    table = eamp.diagnose(GCN(WIDEST + 1, 16, 3), (features(WIDEST + 1), grid())).table
    assert table["weights_gradient"].isna().tolist() == [True, False, False]
    assert table["input_gradient"].notna().all()


def test_unknown_parts_are_nan() -> None:
    columns = {"relative_energy": [1.0, 0.5], "rayleigh_quotient": [1.0, 0.5], "norm": [1.0, 1.0]}
    found = factors(pd.DataFrame(columns | {"effective_rank": [1.0, 1.0]}))
    assert found.isna().all(axis=None)
