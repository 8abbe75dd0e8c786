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
from eamp.ops.degrees import accumulate_dtype
from eamp.ops.operator import like_second, operator
from eamp.ops.part import PartCSR

Gradients = tuple[Tensor | None, ...]
TINY = 1e-30  # a mean square below is no unit to measure energies in: the embedding counts as zero and is taken as it is


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
        return inner_differences(csr.with_halo(x), csr.with_halo(y), csr.local, backend)[
            : x.size(0)
        ]
    return _inner(x, y, *csr[:4], backend or choose(x.device))


def weighted_differences(
    q: Tensor,
    x: Tensor,
    csr: CSR,
    r: Tensor | None = None,
    y: Tensor | None = None,
    backend: str | None = None,
) -> Tensor:
    """W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j), shape of ``x``; plus W(r, y) in the same pass where they are given."""
    if isinstance(csr, PartCSR):
        r, y = (None if values is None else csr.with_halo(values) for values in (r, y))
        return weighted_differences(csr.with_halo(q), csr.with_halo(x), csr.local, r, y, backend)[
            : x.size(0)
        ]
    return _weighted(q, x, r, y, *csr[:4], backend or choose(x.device))


def neighbour_sums(
    left: Tensor,
    x: Tensor,
    right: Tensor,
    csr: CSR,
    self_loops: bool = False,
    mixed_in: Tensor | None = None,
    share: float = 0.0,
    backend: str | None = None,
) -> Tensor:
    """N(l, x, r)_i = l_i (r_i x_i + Σ_j a_ij r_j x_j), the first summand only with ``self_loops``; shape of ``x``.

    With ``mixed_in`` y, (1 − ``share``) N(l, x, r) + ``share`` y in the same pass.
    """
    if isinstance(
        csr, PartCSR
    ):  # r ⊙ x travels; no row of the halo is kept, so neither its l nor its y is needed
        scaled = csr.with_halo(right.to(x.dtype).unsqueeze(1) * x)
        factors = left.new_ones(scaled.size(0)), right.new_ones(scaled.size(0))
        factors[0][: x.size(0)] = left
        out = neighbour_sums(
            factors[0], scaled, factors[1], csr.local, self_loops, backend=backend
        )[: x.size(0)]
        return out if mixed_in is None else torch.lerp(out, mixed_in, share)
    share = share if mixed_in is not None else 0.0
    return _neighbours(
        left, x, right, mixed_in, *csr[:4], self_loops, share, backend or choose(x.device)
    )


def per_node(x: Tensor, *_: Any) -> Tensor:
    """One sum per row of the first argument."""
    return x.new_empty(x.size(0), dtype=accumulate_dtype(x))


@operator("eamp::squared_differences", per_node)
def _squared(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    backend: str,
) -> Tensor:
    return load(backend).squared_differences(widen(x), pack(rowptr, col, reverse, edge_weight))


@operator("eamp::inner_differences", per_node)
def _inner(
    x: Tensor,
    y: Tensor,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    backend: str,
) -> Tensor:
    return load(backend).inner_differences(
        widen(x), widen(y), pack(rowptr, col, reverse, edge_weight)
    )


@operator("eamp::weighted_differences", like_second)
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


@operator("eamp::mixed_neighbour_sums", like_second)
def _neighbours(
    left: Tensor,
    x: Tensor,
    right: Tensor,
    mixed_in: Tensor | None,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    self_loops: bool,
    share: float,
    backend: str,
) -> Tensor:
    wide, csr, sums = widen(x), pack(rowptr, col, reverse, edge_weight), load(backend)
    left, right = left.to(wide.dtype), right.to(wide.dtype)
    if backend == "numba":
        from eamp.ops.backends.numba_cpu.launch import mixed_neighbour_sums as on_cpu

        return on_cpu(
            left, wide, right, None if mixed_in is None else widen(mixed_in), csr, self_loops, share
        ).to(x.dtype)
    out = sums.neighbour_sums((1 - share) * left, wide, right, csr, self_loops)
    return (out if mixed_in is None else out.add_(widen(mixed_in), alpha=share)).to(x.dtype)


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
    left, _, right, _, *csr, ctx.self_loops, ctx.share, ctx.backend = inputs
    ctx.save_for_backward(left, right, *csr)


def _neighbours_backward(ctx: Any, grad: Tensor) -> Gradients:
    left, right, *csr = ctx.saved_tensors
    needed = ctx.needs_input_grad
    wrt_x = (
        _neighbours(right, grad, left, None, *csr, ctx.self_loops, ctx.share, ctx.backend)
        if needed[1]
        else None
    )
    return None, wrt_x, None, ctx.share * grad if needed[3] else None, *(None,) * 7


_squared.differentiated(_squared_backward, _save)
_inner.differentiated(_inner_backward, _save)
_weighted.differentiated(_weighted_backward, _save)
_neighbours.differentiated(_neighbours_backward, _save_neighbours)
