"""Sums over edges that keep channels apart, against the literal ones."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import eamp
from eamp.ops import reference
from eamp.ops.backends import load
from eamp.ops.channel_sums import channel_squares
from problems import irregular_graph, problems, random_graph


@given(problems(), st.sampled_from(("numba", "torch")))
def test_backends_agree_with_the_reference(
    problem: tuple[Tensor, eamp.Graph], backend: str
) -> None:
    x, graph = problem
    y = torch.randn_like(x)
    for name in ("channel_products", "channel_differences"):
        torch.testing.assert_close(
            getattr(load(backend), name)(x, y, graph.csr), getattr(reference, name)(x, y, graph.csr)
        )
    with eamp.backend(backend):
        torch.testing.assert_close(
            channel_squares(x, graph), reference.channel_products(x, x, graph.csr)
        )


@given(problems())
def test_summed_over_channels_they_are_the_squared_differences(
    problem: tuple[Tensor, eamp.Graph],
) -> None:
    x, graph = problem
    torch.testing.assert_close(
        channel_squares(x, graph).sum(1), eamp.ops.squared_differences(x, graph)
    )


@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
def test_derivatives_are_exact_to_the_third_order(backend: str) -> None:
    graph = random_graph(6, 9, weighted=True)
    x = torch.randn(
        6, 2, dtype=torch.float64, requires_grad=True, generator=torch.Generator().manual_seed(0)
    )

    def slope(x: Tensor) -> Tensor:
        (grad,) = torch.autograd.grad(channel_squares(x, graph).pow(2).sum(), x, create_graph=True)
        return grad

    with eamp.backend(backend):
        assert torch.autograd.gradcheck(lambda x: channel_squares(x, graph), x)
        assert torch.autograd.gradcheck(slope, x)
        assert torch.autograd.gradgradcheck(slope, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_are_well_behaved_operators(dtype: torch.dtype) -> None:
    x, y = (torch.randn(10, 3, dtype=dtype, requires_grad=True) for _ in range(2))
    csr = (*irregular_graph().csr, "numba")
    torch.library.opcheck(torch.ops.eamp.channel_squares.default, (x, *csr))
    torch.library.opcheck(torch.ops.eamp.channel_products.default, (x, y, *csr))
    torch.library.opcheck(torch.ops.eamp.channel_differences.default, (x, y, *csr))
