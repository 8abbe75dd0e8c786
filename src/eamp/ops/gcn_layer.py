"""A layer of an entropic graph convolutional network on the CPU in one go: transform, propagate, bias, step, ReLU.

    y = N(s, x Wᵀ, s) + b,   out = max(0, y + γ u ⊙ T∇S(u ⊙ y))

The bias and the ReLU are done where a row has just been computed anyway, and autograd sees one function instead of five. The step is a
constant of the backward pass, as in :mod:`eamp.ops.with_step`, so the derivative is that of ReLU(y), cut off where ``out`` is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from eamp.graph import CSR
from eamp.ops import sums
from eamp.ops.degrees import normaliser, rsqrt_degree_with_loop
from eamp.ops.with_step import Step


def relu_gcn_layer(
    x: Tensor, weight: Tensor, bias: Tensor | None, csr: CSR, step: Step | None
) -> Tensor:
    """The layer, of dense features of float32 or float64 on the CPU."""
    if not torch.is_grad_enabled():
        return forward(x, weight, bias, csr, step)
    out: Tensor = ReluGCNLayer.apply(x, weight, bias, csr, step)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return out


def forward(x: Tensor, weight: Tensor, bias: Tensor | None, csr: CSR, step: Step | None) -> Tensor:
    """The layer, without a derivative."""
    from eamp.ops.backends.numba_cpu import (
        launch as numba_cpu,
    )  # on first use: Numba alone takes half a second

    y = numba_cpu.biased_neighbour_sums(
        rsqrt_degree_with_loop(csr, x.dtype), x @ weight.t(), csr, bias, cut=step is None
    )
    if step is None:
        return y
    scale = normaliser(y, step.csr.rsqrt_degree)
    return numba_cpu.with_step(y, y, csr, scale, *step[1:], cut=True)


class ReluGCNLayer(torch.autograd.Function):
    """The layer, with its derivative, which can be differentiated again."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, csr: CSR, step: Step | None
    ) -> Tensor:
        """See :func:`relu_gcn_layer`."""
        out = forward(x, weight, bias, csr, step)
        ctx.csr = csr
        of_x, of_weight, *_ = ctx.needs_input_grad
        ctx.save_for_backward(x if of_weight else None, weight if of_x else None, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The propagation is its own transpose."""
        x, weight, out = ctx.saved_tensors
        of_x, of_weight, of_bias, *_ = ctx.needs_input_grad
        grad = torch.ops.aten.threshold_backward(grad, out, 0)
        scale = rsqrt_degree_with_loop(ctx.csr, grad.dtype)
        back = (
            sums.neighbour_sums(scale, grad, scale, ctx.csr, self_loops=True, backend="numba")
            if of_x or of_weight
            else grad
        )
        return (
            back @ weight if of_x else None,
            back.t() @ x if of_weight else None,
            grad.sum(0) if of_bias else None,
            None,
            None,
        )
