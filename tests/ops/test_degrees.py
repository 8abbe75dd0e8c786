"""What is remembered of degrees is right for every width and precision, goes with the graph, and serves training after inference."""

import gc

import pytest
import torch

from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.ops import degrees
from eamp.ops.degrees import normaliser, rsqrt_degree_with_loop, without_degrees
from problems import random_graph


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_widths_and_precisions_are_kept_apart(dtype: torch.dtype) -> None:
    csr = random_graph(9, 14).csr
    for width in (3, 7, 3):
        c = normaliser(torch.zeros(9, width, dtype=dtype), csr.rsqrt_degree)
        assert c.dtype == (torch.float32 if dtype == torch.bfloat16 else dtype)
        torch.testing.assert_close(
            c.double(), (csr.degree * width).rsqrt().nan_to_num(posinf=0.0), rtol=1e-6, atol=0
        )
    torch.testing.assert_close(rsqrt_degree_with_loop(csr, torch.float64), (csr.degree + 1).rsqrt())
    assert bool((without_degrees(csr).rsqrt_degree == 1).all())


def test_they_are_computed_once_and_forgotten_with_the_graph() -> None:
    csr = random_graph(9, 14).csr
    before = len(degrees._known)
    assert rsqrt_degree_with_loop(csr, torch.float32) is rsqrt_degree_with_loop(csr, torch.float32)
    assert len(degrees._known) == before + 1
    del csr
    gc.collect()
    assert len(degrees._known) <= before


def test_training_can_follow_inference() -> None:
    g, x = random_graph(9, 14), torch.randn(9, 4)
    with torch.inference_mode():
        expected = gcn_propagate(x, g).clone()
    x.requires_grad_()
    out = gcn_propagate(x, g)
    out.sum().backward()
    torch.testing.assert_close(out.detach(), expected)
