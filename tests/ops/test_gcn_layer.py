"""The layer in one go is transform, propagation, bias, step and ReLU one after the other, and so is its derivative."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import eamp
from eamp import ops
from problems import random_graph


def operands(
    dtype: torch.dtype = torch.float64, weighted: bool = False, biased: bool = True
) -> tuple[eamp.Graph, list[Tensor | None]]:
    generator = torch.Generator().manual_seed(1)
    sizes = ((20, 6), (5, 6), (5,))
    x, weight, bias = (
        torch.randn(size, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for size in sizes
    )
    return random_graph(20, 50, weighted=weighted), [x, weight, bias if biased else None]


def one_by_one(
    x: Tensor, weight: Tensor, bias: Tensor | None, g: eamp.Graph, step: ops.Step | None
) -> Tensor:
    scale = ops.rsqrt_degree_with_loop(g.csr, x.dtype)
    with eamp.backend("reference"):
        y = ops.neighbour_sums(scale, x @ weight.t(), scale, g.csr, self_loops=True)
        y = y if bias is None else y + bias
        return (y if step is None else ops.with_step(y, y, step)).relu()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("step", [None, (None, False), ("by degree", True)])
def test_it_is_its_parts_one_by_one(
    dtype: torch.dtype, weighted: bool, biased: bool, step: tuple[str | None, bool] | None
) -> None:
    g, given = operands(dtype, weighted, biased)
    taken = None
    if step is not None:
        inward = None if step[0] is None else ops.rsqrt_degree_with_loop(g.csr, dtype)
        taken = ops.Step(g.csr, 0.8, 1.5, inward, step[1])
    out, expected = ops.relu_gcn_layer(*given, g.csr, taken), one_by_one(*given, g, taken)
    assert (expected == 0).any()
    assert (expected > 0).any()
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-4}[dtype]
    torch.testing.assert_close(out, expected, rtol=tolerance, atol=tolerance)
    with torch.no_grad():
        torch.testing.assert_close(ops.relu_gcn_layer(*given, g.csr, taken), out, rtol=0, atol=0)
    leaves, upstream = [leaf for leaf in given if leaf is not None], torch.randn_like(expected)
    for got, wanted in zip(
        torch.autograd.grad(out, leaves, upstream),
        torch.autograd.grad(expected, leaves, upstream),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


def test_its_derivative_can_be_differentiated() -> None:
    g, given = operands()
    assert torch.autograd.gradcheck(lambda *leaves: ops.relu_gcn_layer(*leaves, g.csr, None), given)
    assert torch.autograd.gradgradcheck(
        lambda *leaves: ops.relu_gcn_layer(*leaves, g.csr, None), given
    )


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_one_derivative_alone(wanted: int) -> None:
    g, given = operands()
    step = ops.Step(g.csr, 0.8, 1.5)
    leaves = [leaf.detach().requires_grad_(place == wanted) for place, leaf in enumerate(given)]
    got, expected = (
        torch.autograd.grad(f.sum(), leaves[wanted])
        for f in (ops.relu_gcn_layer(*leaves, g.csr, step), one_by_one(*leaves, g, step))
    )
    torch.testing.assert_close(got, expected)


def test_what_is_no_number_stays_none() -> None:
    g, (x, weight, bias) = operands()
    x.data[3, 2] = torch.nan
    for step in (None, ops.Step(g.csr, 0.8, 1.5)):
        assert ops.relu_gcn_layer(x, weight, bias, g.csr, step)[3].isnan().all()
