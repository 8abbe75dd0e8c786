"""The entropy step of the default variant as one operator: what every layer of a deep network calls.

    E_i = C_i/2 · D(x)_i,   q_i = C_i e^{−E_i/T} (1 − E_i/T),   γT∇S = W(γq, x)

Composed from the sums in :mod:`eamp.ops.sums` it would cost a dozen small operators more; on a graph the size of Cora those are
a third of the time. So its derivative is one operator, too, unless it is to be differentiated again, when both are composed from the sums:

    ∂q_i/∂E_i = −(C_i p_i/T)(2 − E_i/T),   ∂q_i/∂T = C_i p_i (E_i/T²)(2 − E_i/T)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from eamp.graph import CSR
from eamp.ops.backends import choose, load
from eamp.ops.degrees import accumulate_dtype, normaliser
from eamp.ops.operator import like_first, operator
from eamp.ops.part import PartCSR
from eamp.ops.sums import (
    Gradients,
    inner_differences,
    pack,
    squared_differences,
    weighted_differences,
    widen,
)


def entropy_step(
    x: Tensor, csr: CSR, temperature: float | Tensor, factor: float = 1.0
) -> tuple[Tensor, Tensor]:
    """``factor`` · T∇S ``[n, F]`` and the energies E ``[n]`` of the unnormalised entropy."""
    if isinstance(csr, PartCSR):
        return entropy_step_of_part(x, csr, temperature, factor)
    if not isinstance(temperature, Tensor):
        temperature = torch.tensor(temperature, dtype=torch.float64)
    return _entropy_step(
        x, *csr[:4], csr.rsqrt_degree, temperature, float(factor), choose(x.device)
    )


def entropy_step_of_part(
    x: Tensor, csr: PartCSR, temperature: float | Tensor, factor: float
) -> tuple[Tensor, Tensor]:
    """The same from the sums: features travel once, and then, when the core's energies are known, one number per node."""
    n, both, c = x.size(0), csr.with_halo(x), normaliser(x, csr.rsqrt_degree)
    energy = c * (squared_differences(both, csr.local)[:n] / 2)
    ratio = energy / (
        temperature.to(energy.dtype) if isinstance(temperature, Tensor) else temperature
    )
    q = factor * c * torch.exp(-ratio) * (1 - ratio)
    return weighted_differences(csr.with_halo(q), both, csr.local)[:n], energy


def step_and_energy(x: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    """The shapes of a step and of its energies."""
    return like_first(x), x.new_empty(x.size(0), dtype=accumulate_dtype(x))


@operator("eamp::entropy_step", step_and_energy)
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
        from eamp.ops.backends.numba_cpu.launch import entropy_step as on_cpu

        step, energy = on_cpu(wide, csr, c, temperature.item(), factor)
        return step.to(x.dtype), energy
    energy = c * (sums.squared_differences(wide, csr) / 2)
    ratio = energy / temperature.to(energy.dtype)
    return sums.weighted_differences(factor * c * torch.exp(-ratio) * (1 - ratio), wide, csr).to(
        x.dtype
    ), energy


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.factor, ctx.backend = inputs
    ctx.save_for_backward(*tensors, output[1])


def _backward(ctx: Any, grad_step: Tensor, grad_energy: Tensor) -> Gradients:
    x, *csr, rsqrt_degree, temperature, energy = ctx.saved_tensors
    given = (
        x,
        grad_step,
        grad_energy,
        energy,
        *csr,
        rsqrt_degree,
        temperature,
        ctx.factor,
        ctx.backend,
    )
    wrt_x, wrt_temperature = (
        composed_backward if torch.is_grad_enabled() else _entropy_step_backward
    )(*given)
    return (
        wrt_x,
        None,
        None,
        None,
        None,
        None,
        wrt_temperature if ctx.needs_input_grad[6] else None,
        None,
        None,
    )


def composed_backward(
    x: Tensor,
    grad_step: Tensor,
    grad_energy: Tensor,
    energy: Tensor,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    rsqrt_degree: Tensor,
    temperature: Tensor,
    factor: float,
    backend: str,
) -> tuple[Tensor, Tensor]:
    """The derivatives in x and T, from the sums."""
    csr, c = pack(rowptr, col, reverse, edge_weight), normaliser(x, rsqrt_degree)
    inverse = 1 / temperature.to(energy.dtype)
    ratio = energy * inverse
    cp = factor * c * torch.exp(-ratio)
    slope = inner_differences(x, grad_step, csr, backend) * cp * (2 - ratio) * inverse
    # Through x in W, and through E = C/2 · D(x), whose derivative is W(C, x).
    wrt_x = weighted_differences(
        cp * (1 - ratio), grad_step, csr, c * (grad_energy - slope), x, backend
    )
    return wrt_x, (slope * ratio).sum().to(temperature)


def derivatives(
    x: Tensor, grad_step: Tensor, grad_energy: Tensor, energy: Tensor, *others: Any
) -> tuple[Tensor, Tensor]:
    """The shapes of the derivatives in x and T."""
    return like_first(x), others[5].new_empty(())


@operator("eamp::entropy_step_backward", derivatives)
def _entropy_step_backward(
    x: Tensor,
    grad_step: Tensor,
    grad_energy: Tensor,
    energy: Tensor,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    rsqrt_degree: Tensor,
    temperature: Tensor,
    factor: float,
    backend: str,
) -> tuple[Tensor, Tensor]:
    given = (rowptr, col, reverse, edge_weight)
    if backend != "numba":
        return composed_backward(
            x, grad_step, grad_energy, energy, *given, rsqrt_degree, temperature, factor, backend
        )
    from eamp.ops.backends.numba_cpu.launch import entropy_step_backward

    c = normaliser(x, rsqrt_degree)
    wrt_x, wrt_temperature = entropy_step_backward(
        widen(x), widen(grad_step), grad_energy, energy, pack(*given), c, temperature, factor
    )
    return wrt_x.to(x.dtype), wrt_temperature.to(temperature)


_entropy_step.differentiated(_backward, _save)
