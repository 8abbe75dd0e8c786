"""Normalisers are right for every width and precision, and belong to their graph."""

import gc
import weakref

import pytest
import torch

from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.ops import energy_normaliser, propagation_scale
from problems import random_graph


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_widths_and_precisions_are_kept_apart(dtype: torch.dtype) -> None:
    g = random_graph(9, 14)
    for width in (3, 7, 3):
        x = torch.zeros(9, width, dtype=dtype)
        c = energy_normaliser(x, g)
        assert c.dtype == (torch.float32 if dtype == torch.bfloat16 else dtype)
        expected = (g.degree * width).rsqrt().nan_to_num(posinf=0.0)
        torch.testing.assert_close(c.double(), expected, rtol=1e-6, atol=0)
        uniform = energy_normaliser(x, g, by_degree=False)
        expected = torch.full((9,), width**-0.5, dtype=torch.float64)
        torch.testing.assert_close(uniform.double(), expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(propagation_scale(g, torch.float64), (g.degree + 1).rsqrt())


def test_they_are_computed_once_and_freed_with_the_graph() -> None:
    g = random_graph(9, 14)
    scale = weakref.ref(propagation_scale(g, torch.float32))
    assert propagation_scale(g, torch.float32) is scale()
    del g
    gc.collect()
    assert scale() is None


def test_training_can_follow_inference() -> None:
    g, x = random_graph(9, 14), torch.randn(9, 4)
    with torch.inference_mode():
        expected = gcn_propagate(x, g).clone()
    x.requires_grad_()
    out = gcn_propagate(x, g)
    out.sum().backward()
    torch.testing.assert_close(out.detach(), expected)
