"""Gradients of a diagnosis: where there are some, and what is left without them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import eamp
from diagnostics.faulty_models import Apply, Stack, features, grid, rotate


def deep_gcn() -> GCN:
    torch.manual_seed(0)
    return GCN(64, 256, 64)


def test_parameters_their_gradients_and_random_numbers_stay_as_they_are() -> None:
    model = GCN(32, 8, 3, norm="batch_norm", dropout=0.5)
    model(features(), grid()).sum().backward()
    parameters = [p.detach().clone() for p in model.parameters()]
    slopes = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    state = torch.get_rng_state()
    eamp.diagnose(model, (features(), grid()), labels=torch.arange(100) % 4, jacobians=True)
    assert torch.equal(state, torch.get_rng_state())
    for parameter, value, slope in zip(model.parameters(), parameters, slopes, strict=True):
        assert torch.equal(parameter, value)
        assert slope is None or torch.equal(parameter.grad, slope)  # type: ignore[arg-type]
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_every_mode_of_autograd(mode: Any) -> None:
    with mode():
        diagnosis = eamp.diagnose(deep_gcn(), (features(64), grid()))
    assert diagnosis.kind == "smoothing"


def test_inference_mode_has_no_gradients_and_a_note_says_so() -> None:
    model, data = GCN(32, 16, 3), Data(features(), grid())
    with torch.inference_mode():
        made_inside, given = GCN(32, 16, 3), features()
        found = [eamp.diagnose(each, data, jacobians=True) for each in (model, made_inside)]
    found.append(eamp.diagnose(made_inside, data))
    found += [eamp.diagnose(model, each) for each in ((given, grid()), Data(given, grid()))]
    for diagnosis in found:
        assert diagnosis.kind == "healthy"
        assert "torch.inference_mode() has none" in diagnosis.notes[0]
        assert "weights_norm" in diagnosis.table
        assert not {"gradient", "jacobian"} & set(diagnosis.table)
    with torch.no_grad():
        assert (eamp.diagnose(model, data).table["gradient"] > 0).all()


def test_parts_and_gradients_can_be_left_out() -> None:
    diagnosis = eamp.diagnose(deep_gcn(), (features(64), grid()), parts=False, gradients=False)
    assert diagnosis.kind == "smoothing"
    assert diagnosis.findings[0].culprit is None
    assert not {"weights_norm", "gradient"} & set(diagnosis.table.columns)


def test_a_model_without_derivatives_is_diagnosed_with_a_note() -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(context: Any, *gradients: Any) -> Any:
            raise NotImplementedError("no derivative")

    model = Stack(Apply(rotate), Apply(lambda x, e: Broken.apply(x)), Apply(rotate))
    diagnosis = eamp.diagnose(model, (features(), grid()))
    assert diagnosis.kind == "healthy"
    assert "no derivative" in diagnosis.notes[0]


def test_a_layer_that_cannot_run_without_its_edges_keeps_the_gradients_of_the_others() -> None:
    """GRAND keeps one attention weight per edge, also where the replay has no edges."""
    torch.manual_seed(0)
    model = eamp.nn.MODELS["grand"](8, 16, 3, 2)
    diagnosis = eamp.diagnose(model, (features(8), grid()))
    assert "gradients are unknown" not in str(diagnosis)
    assert (diagnosis.table["gradient"] > 0).all()
    assert diagnosis.table[["weights_gradient", "weights_norm"]].isna().all(axis=None)


def test_gradients_pass_layers_that_are_computed_again_in_the_backward_pass() -> None:
    torch.manual_seed(0)
    plain = eamp.nn.GCN(8, 16, 4, num_layers=6)
    checkpointed = eamp.nn.GCN(8, 16, 4, num_layers=6, checkpoint=True)
    checkpointed.load_state_dict(plain.state_dict())
    expected = eamp.diagnose(plain, (features(8), grid())).table
    found = eamp.diagnose(checkpointed, (features(8), grid())).table
    assert (found["gradient"] > 0).all()
    pd.testing.assert_frame_equal(found, expected)
