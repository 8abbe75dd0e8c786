"""The CPU backend: the kernels of :mod:`eamp.ops.backends.numba_cpu.kernels` on torch's tensors and threads."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from eamp.graph import CSR
from eamp.ops.backends.numba_cpu.kernels import FACTOR, TEMPERATURE, TICKET, tasks
from eamp.ops.backends.numba_cpu.threads import run
from eamp.ops.memory import large_empty, large_empty_like
from eamp.ops.sums import TINY

PARTS_PER_THREAD = 8  # enough that a thread which is held up leaves its share to the others


def launch(
    names: tuple[str, ...],
    csr: CSR,
    x: Tensor,
    *,
    y: Tensor | None = None,
    q: Tensor | None = None,
    r: Tensor | None = None,
    per_edge: Tensor | None = None,
    per_node: Tensor | None = None,
    scale: Tensor | None = None,
    energy: Tensor | None = None,
    out: Tensor | None = None,
    base: Tensor | None = None,
    unit: Tensor | None = None,
    bias: Tensor | None = None,
    flag: bool = False,
    cut: bool = False,
    temperature: float = 1.0,
    factor: float = 1.0,
) -> None:
    """Run tasks one after the other on the same operands. Those they write to must be contiguous and of the dtype of ``x``."""
    in_order_of_slots = (
        csr.rowptr,
        csr.col,
        csr.reverse,
        csr.edge_weight,
        q,
        r,
        x,
        y,
        per_edge,
        per_node,
        scale,
        energy,
        out,
        base,
        unit,
        bias,
    )
    operands = [
        None if operand is None else operand.contiguous() for operand in in_order_of_slots
    ]  # kept alive to the end
    for slot, operand in enumerate(operands[3:], start=3):
        if operand is not None and operand.dtype != x.dtype:
            operands[slot] = operand.to(x.dtype)  # something to read: results are made like x
    addresses = [0 if operand is None else operand.data_ptr() for operand in operands]
    parts = PARTS_PER_THREAD * torch.get_num_threads()
    compiled = tasks(
        np.float64 if x.dtype == torch.float64 else np.float32,
        np.int64 if csr.col.dtype == torch.int64 else np.int32,
    )
    block = np.array([0, parts, *x.shape, csr.col.numel(), *addresses, flag, cut, 0, 0], np.int64)
    block.view(np.float64)[TEMPERATURE : FACTOR + 1] = temperature, factor
    for name in names:
        block[TICKET] = 0
        run(compiled[name], block)


def squared_differences(x: Tensor, csr: CSR) -> Tensor:
    """D(x)_i = Σ_j a_ij ‖x_i − x_j‖²."""
    out = large_empty(x.size(0), x)
    launch(("squared", "row_sums"), csr, x, per_edge=large_empty(csr.col.numel(), x), per_node=out)
    return out


def inner_differences(x: Tensor, y: Tensor, csr: CSR) -> Tensor:
    """I(x, y)_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j)."""
    out = large_empty(x.size(0), x)
    launch(
        ("inner", "row_sums"), csr, x, y=y, per_edge=large_empty(csr.col.numel(), x), per_node=out
    )
    return out


def weighted_differences(
    q: Tensor, x: Tensor, csr: CSR, r: Tensor | None = None, y: Tensor | None = None
) -> Tensor:
    """W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j), plus W(r, y) in the same pass where they are given."""
    out = large_empty_like(x)
    launch(("weighted",), csr, x, y=y, q=q, r=r, out=out)
    return out


def neighbour_sums(left: Tensor, x: Tensor, right: Tensor, csr: CSR, self_loops: bool) -> Tensor:
    """N(l, x, r)_i = l_i (r_i x_i + Σ_j a_ij r_j x_j), the first summand only with ``self_loops``."""
    return mixed_neighbour_sums(left, x, right, None, csr, self_loops, 0.0)


def mixed_neighbour_sums(
    left: Tensor,
    x: Tensor,
    right: Tensor,
    mixed_in: Tensor | None,
    csr: CSR,
    self_loops: bool,
    share: float,
) -> Tensor:
    """(1 − ``share``) N(l, x, r) + ``share`` · ``mixed_in``, the second summand only where there is one."""
    out = large_empty_like(x)
    launch(
        ("neighbours",), csr, x, y=mixed_in, q=left, r=right, out=out, flag=self_loops, factor=share
    )
    return out


def biased_neighbour_sums(
    scale: Tensor, x: Tensor, csr: CSR, bias: Tensor | None, cut: bool
) -> Tensor:
    """N(s, x, s) with self-loops, plus a bias where there is one; its positive part, if ``cut``."""
    out = large_empty_like(x)
    launch(
        ("neighbours",),
        csr,
        x,
        q=scale,
        r=scale,
        out=out,
        bias=bias,
        flag=True,
        cut=cut,
        factor=0.0,
    )
    return out


def channel_products(x: Tensor, y: Tensor, csr: CSR) -> Tensor:
    """B(x, y)_i = Σ_j a_ij (x_i − x_j) ⊙ (y_i − y_j)."""
    out = large_empty_like(x)
    launch(("channel_products",), csr, x, y=y, out=out)
    return out


def channel_differences(g: Tensor, x: Tensor, csr: CSR) -> Tensor:
    """V(g, x)_i = Σ_j a_ij (g_i + g_j) ⊙ (x_i − x_j)."""
    out = large_empty_like(x)
    launch(("channel_products",), csr, x, y=g, out=out, flag=True)
    return out


def entropy_step(
    x: Tensor,
    csr: CSR,
    scale: Tensor,
    temperature: float,
    factor: float,
    base: Tensor | None = None,
    outward: Tensor | None = None,
    cut: bool = False,
) -> tuple[Tensor, Tensor]:
    """γT∇S and E of the unnormalised entropy: D, then E and q, then W, without leaving compiled code for more than a launch.

    With ``base``, that plus the step, whose rows are multiplied by ``outward`` where it is given; of it the positive part, if ``cut``.
    """
    out = large_empty_like(x)
    energy, q, per_edge = (
        large_empty(x.size(0), x),
        large_empty(x.size(0), x),
        large_empty(csr.col.numel(), x),
    )
    launch(
        ("squared", "drive", "weighted"),
        csr,
        x,
        q=q,
        per_edge=per_edge,
        per_node=energy,
        scale=scale,
        out=out,
        base=base,
        unit=outward,
        cut=cut,
        temperature=temperature,
        factor=factor,
    )
    return out, energy


def with_step(
    base: Tensor,
    x: Tensor,
    csr: CSR,
    scale: Tensor,
    temperature: float,
    factor: float,
    inward: Tensor | None,
    scale_free: bool,
    cut: bool = False,
) -> Tensor:
    """``base`` + γ u ⊙ T∇S(u ⊙ x), with u ``inward``, and T in units of the mean square of x times sqrt(F) if ``scale_free``.

    The positive part of it, if ``cut``.
    """
    if inward is not None or scale_free:
        seen, square = large_empty_like(x), large_empty(x.size(0), x)
        launch(
            ("enter",),
            csr,
            x,
            per_node=square,
            unit=torch.ones_like(square) if inward is None else inward,
            out=seen,
        )
        x = seen
        if scale_free:
            mean = square.sum(dtype=torch.float64).item() / max(x.numel(), 1)
            temperature *= (mean if mean > TINY else 1.0) * math.sqrt(x.size(1))
    return entropy_step(x, csr, scale, temperature, factor, base, inward, cut)[0]


def entropy_step_backward(
    x: Tensor,
    grad_step: Tensor,
    grad_energy: Tensor,
    energy: Tensor,
    csr: CSR,
    scale: Tensor,
    temperature: Tensor,
    factor: float,
) -> tuple[Tensor, Tensor]:
    """The derivatives of ``entropy_step`` in x and in T."""
    out, q, r = large_empty_like(x), large_empty_like(energy), large_empty_like(energy)
    per_node = grad_energy.clone(memory_format=torch.contiguous_format)
    launch(
        ("inner", "drive_backward"),
        csr,
        x,
        y=grad_step,
        q=q,
        r=r,
        per_edge=large_empty(csr.col.numel(), x),
        per_node=per_node,
        scale=scale,
        energy=energy,
        temperature=temperature.item(),
        factor=factor,
    )
    launch(("weighted",), csr, grad_step, y=x, q=q, r=r, out=out)
    return out, per_node.sum()
