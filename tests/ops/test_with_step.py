"""A layer's output with a constant step is what its parts say, and has the derivative of the output alone."""

import math

import pytest
import torch

import eamp
from eamp import ops
from eamp.ops import reference
from eamp.ops.with_step import _with_step
from problems import random_graph


def operands(
    dtype: torch.dtype = torch.float64, weighted: bool = False
) -> tuple[eamp.Graph, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    base, x = torch.randn(2, 20, 6, generator=generator, dtype=torch.float64).to(dtype)
    return (
        random_graph(20, 50, weighted=weighted),
        base,
        x,
        torch.rand(20, generator=generator, dtype=torch.float64) + 0.5,
    )


@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("by_degree", [False, True])
@pytest.mark.parametrize("scale_free", [False, True])
def test_it_is_the_sum_of_its_parts(
    backend: str, dtype: torch.dtype, weighted: bool, by_degree: bool, scale_free: bool
) -> None:
    g, base, x, u = operands(dtype, weighted)
    with eamp.backend(backend):
        out = ops.with_step(
            base, x, ops.Step(g.csr, 0.8, 1.5, u if by_degree else None, scale_free)
        )
    assert out.dtype == dtype
    scale = u.unsqueeze(1) if by_degree else 1.0
    temperature = 0.8 * (float(x.double().square().mean()) * math.sqrt(6) if scale_free else 1.0)
    step = 1.5 * temperature * reference.entropy_gradient(scale * x.double(), g.csr, temperature)
    tolerance = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 5e-2}[dtype]
    torch.testing.assert_close(
        out.double(), base.double() + scale * step, rtol=tolerance, atol=tolerance
    )


def test_an_embedding_of_zeros_is_no_unit() -> None:
    g, base, x, u = operands()
    for backend in ("numba", "torch"):
        with eamp.backend(backend):
            torch.testing.assert_close(
                ops.with_step(base, 0 * x, ops.Step(g.csr, 0.8, 1.5, u, scale_free=True)),
                base,
                rtol=0,
                atol=0,
            )


def test_only_the_base_has_a_derivative() -> None:
    g, base, x, _ = operands()
    base.requires_grad_()
    x.requires_grad_()
    grad = torch.randn_like(base)
    wrt_base, wrt_x = torch.autograd.grad(
        ops.with_step(base, x, ops.Step(g.csr, 0.8, 1.5)), (base, x), grad, allow_unused=True
    )
    torch.testing.assert_close(wrt_base, grad, rtol=0, atol=0)
    assert wrt_x is None


@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_it_passes_opcheck(backend: str) -> None:
    g, base, x, u = operands()
    given = (*g.csr[:4], g.csr.rsqrt_degree, 0.8, 1.5)
    for inward, scale_free in ((None, False), (u, True)):
        torch.library.opcheck(
            _with_step.registered, (base.requires_grad_(), x, inward, *given, scale_free, backend)
        )
