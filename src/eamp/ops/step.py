"""The entropy step of the default variant as one operator: what every layer of a deep network calls.

    E_i = C_i/2 · D(x)_i,   q_i = C_i e^{−E_i/T} (1 − E_i/T),   γT∇S = W(γq, x)

Composed from the sums in :mod:`eamp.ops.sums` it would cost a dozen small operators more; on a graph the size of Cora those are
a third of the time. Its derivative *is* composed from them, and so is differentiable again:

    ∂q_i/∂E_i = −(C_i p_i/T)(2 − E_i/T),   ∂q_i/∂T = C_i p_i (E_i/T²)(2 − E_i/T)
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from eamp.graph import CSR
from eamp.ops.backends import choose, load
from eamp.ops.sums import Gradients, accumulate_dtype, inner_differences, pack, weighted_differences, widen


def entropy_step(x: Tensor, csr: CSR, temperature: float | Tensor, factor: float = 1.0) -> tuple[Tensor, Tensor]:
    """``factor`` · T∇S ``[n, F]`` and the energies E ``[n]`` of the unnormalised entropy."""
    if not isinstance(temperature, Tensor):
        temperature = torch.tensor(temperature, dtype=torch.float64)
    return _entropy_step(x, *csr[:4], csr.rsqrt_degree, temperature, float(factor), choose(x.device))


def normaliser(x: Tensor, rsqrt_degree: Tensor) -> Tensor:
    """C_i = 1 / sqrt(k_i F), in the dtype that sums over ``x`` have; 0 for an isolated node."""
    return rsqrt_degree.to(accumulate_dtype(x)) * (1 / math.sqrt(max(x.size(1), 1)))


@torch.library.custom_op("eamp::entropy_step", mutates_args=())
def _entropy_step(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    rsqrt_degree: Tensor,
    temperature: Tensor,
    factor: float,
    backend: str,
) -> tuple[Tensor, Tensor]:
    wide, sums = widen(x), load(backend)
    csr, c = pack(rowptr, col, reverse, edge_weight), normaliser(x, rsqrt_degree)
    if backend == "numba":
        from eamp.ops import numba_cpu

        step, energy = numba_cpu.entropy_step(wide, csr, c, temperature, factor)
        return step.to(x.dtype), energy
    energy = c * (sums.squared_differences(wide, csr) / 2)
    ratio = energy / temperature.to(energy.dtype)
    return sums.weighted_differences(factor * c * torch.exp(-ratio) * (1 - ratio), wide, csr).to(x.dtype), energy


@_entropy_step.register_fake
def _(x: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(x.size(0), dtype=accumulate_dtype(x))


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.factor, ctx.backend = inputs
    ctx.save_for_backward(*tensors, output[1])


def _backward(ctx: Any, grad_step: Tensor, grad_energy: Tensor) -> Gradients:
    x, rowptr, col, reverse, edge_weight, rsqrt_degree, temperature, energy = ctx.saved_tensors
    csr, backend = pack(rowptr, col, reverse, edge_weight), ctx.backend
    c = normaliser(x, rsqrt_degree)
    inverse = 1 / temperature.to(energy.dtype)
    ratio = energy * inverse
    cp = c * torch.exp(-ratio) * ctx.factor
    grad_q = inner_differences(x, grad_step, csr, backend)
    slope = grad_q * cp * (2 - ratio) * inverse
    wrt_x = wrt_temperature = None
    if ctx.needs_input_grad[0]:
        # Through x in W, and through E = C/2 · D(x), whose derivative is W(C, x).
        wrt_x = weighted_differences(cp * (1 - ratio), grad_step, csr, backend)
        wrt_x = wrt_x.add_(weighted_differences(c * (grad_energy - slope), x, csr, backend))
    if ctx.needs_input_grad[6]:
        wrt_temperature = (slope * ratio).sum().to(temperature.dtype)
    return wrt_x, None, None, None, None, None, wrt_temperature, None, None


_entropy_step.register_autograd(_backward, setup_context=_save)
