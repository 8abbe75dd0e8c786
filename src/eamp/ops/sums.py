"""The sums over edges as torch operators: opaque to ``torch.compile``, exactly differentiable.

The derivatives of these sums are again sums of this kind, so autograd through them is exact at
every order, and never needs the transposed graph:

    D(x)_i    = Σ_j a_ij ‖x_i − x_j‖²                  ∂D: g ↦ 2 W(g, x)
    I(x, y)_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j)       ∂I: g ↦ W(g, y), W(g, x)
    W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j)        ∂W: G ↦ I(x, G), W(q, G)
    N(l, x, r)_i = l_i Σ_j a_ij r_j x_j                ∂N: G ↦ N(r, G, l), with l and r constants

Half-precision features are summed in float32, and the sums D and I stay in float32.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from eamp.graph import CSR, Graph
from eamp.ops.backends import Backend, choose
from eamp.ops.operator import graph_operator, like_second
from eamp.ops.precision import accumulate_dtype, in_dtype, widen

Gradients = tuple[Tensor | None, ...]


def squared_differences(x: Tensor, graph: Graph) -> Tensor:
    """Return D(x)_i = Σ_j a_ij ‖x_i − x_j‖², ``[n]``."""
    return graph.own_rows(_squared(graph.with_halo(x), *graph.local_csr, choose(x.device)))


def inner_differences(x: Tensor, y: Tensor, graph: Graph) -> Tensor:
    """Return I(x, y)_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j), ``[n]``."""
    x, y = graph.with_halo(x), graph.with_halo(y)
    return graph.own_rows(_inner(x, y, *graph.local_csr, choose(x.device)))


def weighted_differences(q: Tensor, x: Tensor, graph: Graph) -> Tensor:
    """Return W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j), in the shape of ``x``."""
    q, x = graph.with_halo(q), graph.with_halo(x)
    return graph.own_rows(_weighted(q, x, None, None, *graph.local_csr, choose(x.device)))


def weighted_by_squares(x: Tensor, graph: Graph, q: Callable[[Tensor], Tensor]) -> Tensor:
    """Return W(q(D(x)), x); the features travel to the halo once for both sums."""
    both, backend = graph.with_halo(x), choose(x.device)
    squares = graph.own_rows(_squared(both, *graph.local_csr, backend))
    factors = graph.with_halo(q(squares))
    return graph.own_rows(_weighted(factors, both, None, None, *graph.local_csr, backend))


def neighbour_sums(
    left: Tensor,
    x: Tensor,
    right: Tensor,
    graph: Graph,
    self_loops: bool = False,
    mixed_in: Tensor | None = None,
    share: float = 0.0,
    bias: Tensor | None = None,
) -> Tensor:
    """Return N(l, x, r)_i = l_i (r_i x_i + Σ_j a_ij r_j x_j), in the shape of ``x``.

    Args:
        left: l ``[n]``, a constant.
        x: features ``[n, F]``.
        right: r ``[n]``, a constant.
        graph: the graph.
        self_loops: whether the first summand is there.
        mixed_in: y ``[n, F]``; the result is (1 − ``share``) N(l, x, r) + ``share`` y.
        share: the share of y.
        bias: ``[F]``, added to every row.
    """
    share = share if mixed_in is not None else 0.0
    where = (*graph.local_csr, choose(x.device))
    if graph.in_one_piece:
        return _neighbours(left, x, right, mixed_in, bias, self_loops, share, *where)
    # r ⊙ x goes to the halo; rows of the halo are dropped, so neither their l nor their y is
    # needed.
    scaled = graph.with_halo(right.to(x.dtype).unsqueeze(1) * x)
    ones = torch.ones(scaled.size(0), dtype=left.dtype, device=left.device)
    out = _neighbours(ones, scaled, ones, None, None, self_loops, 0.0, *where)
    out = left.to(x.dtype).unsqueeze(1) * graph.own_rows(out)
    out = out if mixed_in is None else torch.lerp(out, mixed_in, share)
    return out if bias is None else out + bias


def per_node(x: Tensor, *_: Any) -> Tensor:
    """Return an empty tensor with one sum per row of the first argument."""
    return x.new_empty(x.size(0), dtype=accumulate_dtype(x))


@graph_operator("eamp::squared_differences", "Tensor x", per_node)
def _squared(x: Tensor, backend: Backend, csr: CSR) -> Tensor:
    return backend.squared_differences(widen(x), csr)


@graph_operator("eamp::inner_differences", "Tensor x, Tensor y", per_node)
def _inner(x: Tensor, y: Tensor, backend: Backend, csr: CSR) -> Tensor:
    return backend.inner_differences(widen(x), widen(y), csr)


@graph_operator(
    "eamp::weighted_differences", "Tensor q, Tensor x, Tensor? r, Tensor? y", like_second
)
def _weighted(
    q: Tensor, x: Tensor, r: Tensor | None, y: Tensor | None, backend: Backend, csr: CSR
) -> Tensor:
    second = (None, None) if r is None or y is None else (widen(r), widen(y))
    return in_dtype(backend.weighted_differences(widen(q), widen(x), csr, *second), x.dtype)


@graph_operator(
    "eamp::mixed_neighbours",
    "Tensor left, Tensor x, Tensor right, Tensor? mixed_in, Tensor? bias, bool self_loops, "
    "float share",
    like_second,
    constants=2,
)
def _neighbours(
    left: Tensor,
    x: Tensor,
    right: Tensor,
    mixed_in: Tensor | None,
    bias: Tensor | None,
    self_loops: bool,
    share: float,
    backend: Backend,
    csr: CSR,
) -> Tensor:
    wide = widen(x)
    left, right = in_dtype(left, wide.dtype), in_dtype(right, wide.dtype)
    mixed_in = None if mixed_in is None else widen(mixed_in)
    bias = None if bias is None else in_dtype(bias, wide.dtype)
    given = (left, wide, right, csr, self_loops, mixed_in, share, bias)
    return in_dtype(backend.mixed_neighbour_sums(*given), x.dtype)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.backend = inputs
    ctx.save_for_backward(*tensors)


def _squared_backward(ctx: Any, grad: Tensor) -> Gradients:
    x, *csr = ctx.saved_tensors
    return _weighted(2 * grad, x, None, None, *csr, ctx.backend), *(None,) * 5


def _inner_backward(ctx: Any, grad: Tensor) -> Gradients:
    x, y, *csr = ctx.saved_tensors
    of_x, of_y, *_ = ctx.needs_input_grad
    wrt_x = _weighted(grad, y, None, None, *csr, ctx.backend) if of_x else None
    wrt_y = _weighted(grad, x, None, None, *csr, ctx.backend) if of_y else None
    return wrt_x, wrt_y, None, None, None, None, None


def _weighted_backward(ctx: Any, grad: Tensor) -> Gradients:
    q, x, r, y, *csr = ctx.saved_tensors
    of_q, of_x, of_r, of_y, *_ = ctx.needs_input_grad
    wrt_q = _inner(x, grad, *csr, ctx.backend).to(q.dtype) if of_q else None
    wrt_x = _weighted(q, grad, None, None, *csr, ctx.backend) if of_x else None
    wrt_r = _inner(y, grad, *csr, ctx.backend).to(r.dtype) if of_r else None
    wrt_y = _weighted(r, grad, None, None, *csr, ctx.backend) if of_y else None
    return wrt_q, wrt_x, wrt_r, wrt_y, *(None,) * 5


def _save_neighbours(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    left, _, right, _, bias, ctx.self_loops, ctx.share, *csr, ctx.backend = inputs
    ctx.bias_dtype = None if bias is None else bias.dtype
    ctx.save_for_backward(left, right, *csr)


def _neighbours_backward(ctx: Any, grad: Tensor) -> Gradients:
    left, right, *csr = ctx.saved_tensors
    _, of_x, _, of_mixed_in, of_bias, *_ = ctx.needs_input_grad
    where = (ctx.self_loops, ctx.share, *csr, ctx.backend)
    wrt_x = _neighbours(right, grad, left, None, None, *where) if of_x else None
    wrt_mixed_in = ctx.share * grad if of_mixed_in else None
    wrt_bias = grad.sum(0, dtype=ctx.bias_dtype) if of_bias else None
    return None, wrt_x, None, wrt_mixed_in, wrt_bias, *(None,) * 7


_squared.differentiated(_squared_backward, _save)
_inner.differentiated(_inner_backward, _save)
_weighted.differentiated(_weighted_backward, _save)
_neighbours.differentiated(_neighbours_backward, _save_neighbours)
