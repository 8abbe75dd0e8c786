"""The sums over edges as torch operators: opaque to ``torch.compile``, exactly differentiable, on any backend.

Their derivatives are again these sums (W for weighted, I for inner, D for squared, N for neighbours), so autograd through
them is exact at every order, and never needs the transposed graph:

    D(x)_i    = Σ_j a_ij ‖x_i − x_j‖²                  ∂D: g ↦ 2 W(g, x)
    I(x, y)_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j)       ∂I: g ↦ W(g, y), W(g, x)
    W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j)        ∂W: G ↦ I(x, G), W(q, G)
    N(l, x, r)_i = l_i Σ_j a_ij r_j x_j                ∂N: G ↦ N(r, G, l), with l and r constants of the graph

Half-precision features are summed in float32, and the per-node sums D and I stay in float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from eamp.graph import CSR
from eamp.ops.backends import choose, load
from eamp.ops.part import PartCSR

Gradients = tuple[Tensor | None, ...]


def accumulate_dtype(x: Tensor) -> torch.dtype:
    """float32 for half precision, the dtype itself otherwise."""
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype


def widen(x: Tensor) -> Tensor:
    return x.to(accumulate_dtype(x))


# Operators take flat arguments; degrees are no business of theirs.
def pack(rowptr: Tensor, col: Tensor, reverse: Tensor, edge_weight: Tensor | None) -> CSR:
    return CSR(rowptr, col, reverse, edge_weight, degree=rowptr, rsqrt_degree=rowptr)


def squared_differences(x: Tensor, csr: CSR, backend: str | None = None) -> Tensor:
    """D(x)_i = Σ_j a_ij ‖x_i − x_j‖², shape ``[n]``."""
    if isinstance(csr, PartCSR):
        return squared_differences(csr.with_halo(x), csr.local, backend)[: x.size(0)]
    return _squared(x, *csr[:4], backend or choose(x.device))


def inner_differences(x: Tensor, y: Tensor, csr: CSR, backend: str | None = None) -> Tensor:
    """I(x, y)_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j), shape ``[n]``."""
    if isinstance(csr, PartCSR):
        return inner_differences(csr.with_halo(x), csr.with_halo(y), csr.local, backend)[: x.size(0)]
    return _inner(x, y, *csr[:4], backend or choose(x.device))


def weighted_differences(
    q: Tensor, x: Tensor, csr: CSR, r: Tensor | None = None, y: Tensor | None = None, backend: str | None = None
) -> Tensor:
    """W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j), shape of ``x``; plus W(r, y) in the same pass where they are given."""
    if isinstance(csr, PartCSR):
        r, y = (None if values is None else csr.with_halo(values) for values in (r, y))
        return weighted_differences(csr.with_halo(q), csr.with_halo(x), csr.local, r, y, backend)[: x.size(0)]
    return _weighted(q, x, r, y, *csr[:4], backend or choose(x.device))


def neighbour_sums(left: Tensor, x: Tensor, right: Tensor, csr: CSR, self_loops: bool = False) -> Tensor:
    """N(l, x, r)_i = l_i (r_i x_i + Σ_j a_ij r_j x_j), the first summand only with ``self_loops``; shape of ``x``."""
    if isinstance(csr, PartCSR):  # r ⊙ x travels; no row of the halo is kept, so its l is not needed
        scaled = csr.with_halo(right.to(x.dtype).unsqueeze(1) * x)
        factors = left.new_ones(scaled.size(0)), right.new_ones(scaled.size(0))
        factors[0][: x.size(0)] = left
        return neighbour_sums(factors[0], scaled, factors[1], csr.local, self_loops)[: x.size(0)]
    return _neighbours(left, x, right, *csr[:4], self_loops, choose(x.device))


@torch.library.custom_op("eamp::squared_differences", mutates_args=())
def _squared(x: Tensor, rowptr: Tensor, col: Tensor, reverse: Tensor, edge_weight: Tensor | None, backend: str) -> Tensor:
    return load(backend).squared_differences(widen(x), pack(rowptr, col, reverse, edge_weight))


@torch.library.custom_op("eamp::inner_differences", mutates_args=())
def _inner(x: Tensor, y: Tensor, rowptr: Tensor, col: Tensor, reverse: Tensor, edge_weight: Tensor | None, backend: str) -> Tensor:
    return load(backend).inner_differences(widen(x), widen(y), pack(rowptr, col, reverse, edge_weight))


@torch.library.custom_op("eamp::weighted_differences", mutates_args=())
def _weighted(
    q: Tensor,
    x: Tensor,
    r: Tensor | None,
    y: Tensor | None,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    backend: str,
) -> Tensor:
    csr = pack(rowptr, col, reverse, edge_weight)
    second = (None, None) if r is None or y is None else (widen(r), widen(y))
    return load(backend).weighted_differences(widen(q), widen(x), csr, *second).to(x.dtype)


@torch.library.custom_op("eamp::neighbour_sums", mutates_args=())
def _neighbours(
    left: Tensor,
    x: Tensor,
    right: Tensor,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    self_loops: bool,
    backend: str,
) -> Tensor:
    wide = widen(x)
    csr = pack(rowptr, col, reverse, edge_weight)
    return load(backend).neighbour_sums(left.to(wide.dtype), wide, right.to(wide.dtype), csr, self_loops).to(x.dtype)


@_squared.register_fake
def _(x: Tensor, *_: Any) -> Tensor:
    return x.new_empty(x.size(0), dtype=accumulate_dtype(x))


@_inner.register_fake
def _(x: Tensor, *_: Any) -> Tensor:
    return x.new_empty(x.size(0), dtype=accumulate_dtype(x))


@_weighted.register_fake
def _(q: Tensor, x: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@_neighbours.register_fake
def _(left: Tensor, x: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.backend = inputs
    ctx.save_for_backward(*tensors)


def _squared_backward(ctx: Any, grad: Tensor) -> Gradients:
    x, *csr = ctx.saved_tensors
    return _weighted(2 * grad, x, None, None, *csr, ctx.backend), *(None,) * 5


def _inner_backward(ctx: Any, grad: Tensor) -> Gradients:
    x, y, *csr = ctx.saved_tensors
    wrt_x = _weighted(grad, y, None, None, *csr, ctx.backend) if ctx.needs_input_grad[0] else None
    wrt_y = _weighted(grad, x, None, None, *csr, ctx.backend) if ctx.needs_input_grad[1] else None
    return wrt_x, wrt_y, None, None, None, None, None


def _weighted_backward(ctx: Any, grad: Tensor) -> Gradients:
    q, x, r, y, *csr = ctx.saved_tensors
    needed = ctx.needs_input_grad
    wrt_q = _inner(x, grad, *csr, ctx.backend).to(q.dtype) if needed[0] else None
    wrt_x = _weighted(q, grad, None, None, *csr, ctx.backend) if needed[1] else None
    wrt_r = _inner(y, grad, *csr, ctx.backend).to(r.dtype) if needed[2] else None
    wrt_y = _weighted(r, grad, None, None, *csr, ctx.backend) if needed[3] else None
    return wrt_q, wrt_x, wrt_r, wrt_y, *(None,) * 5


def _save_neighbours(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    left, _, right, *csr, ctx.self_loops, ctx.backend = inputs
    ctx.save_for_backward(left, right, *csr)


def _neighbours_backward(ctx: Any, grad: Tensor) -> Gradients:
    left, right, *csr = ctx.saved_tensors
    return None, _neighbours(right, grad, left, *csr, ctx.self_loops, ctx.backend), *(None,) * 7


_squared.register_autograd(_squared_backward, setup_context=_save)
_inner.register_autograd(_inner_backward, setup_context=_save)
_weighted.register_autograd(_weighted_backward, setup_context=_save)
_neighbours.register_autograd(_neighbours_backward, setup_context=_save_neighbours)
