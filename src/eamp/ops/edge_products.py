"""The two sums that learned edge weights need, without any [edges × features] tensor.

Each is the other's derivative, so autograd through them is exact at every order. The transpose of
a weight per edge is the weight of the opposite direction, which the graph knows, so no transposed
matrix is built.

    A(a, x)_i  = Σ_j a_ij x_j          ∂A: G ↦ P(G, x), A(aᵀ, G)
    P(x, y)_ij = x_i · y_j             ∂P: h ↦ A(h, y), A(hᵀ, x)

Weights per edge are in the order of the graph's CSR. Under ``torch.compile`` a CSR may end in
padding, whose entries of P are 0 and whose weights are not read.
"""

from typing import Any

import torch
from torch import Tensor

from eamp.graph import CSR, Graph
from eamp.ops.backends import choose, load
from eamp.ops.operator import like_second, operator
from eamp.ops.precision import accumulate_dtype

BLOCK = 16  # features gathered at a time: the largest tensor of P is [edges × BLOCK]


def attended_sums(a: Tensor, x: Tensor, graph: Graph) -> Tensor:
    """Return A(a, x)_i = Σ_j a_ij x_j with weights ``[m]`` that need not be symmetric."""
    return _attended(a, x, *graph.csr[:3], choose(x.device))


def edge_products(x: Tensor, y: Tensor, graph: Graph) -> Tensor:
    """Return P(x, y)_ij = x_i · y_j, one number per edge, ``[m]``."""
    return _products(x, y, *graph.csr[:3], choose(x.device))


@operator("eamp::attended_sums", like_second)
def _attended(
    a: Tensor, x: Tensor, rowptr: Tensor, col: Tensor, reverse: Tensor, backend: str
) -> Tensor:
    m = int(rowptr[-1])
    dtype = accumulate_dtype(x)
    ones = torch.ones(x.size(0), dtype=dtype, device=x.device)
    csr = CSR(rowptr, col[:m], reverse[:m], a[:m].to(dtype))
    return load(backend).neighbour_sums(ones, x.to(dtype), ones, csr, False).to(x.dtype)


def per_edge(x: Tensor, y: Tensor, rowptr: Tensor, col: Tensor, *_: Any) -> Tensor:
    """Return an empty tensor with one number per edge."""
    return x.new_empty(col.numel())


@operator("eamp::edge_products", per_edge)
def _products(
    x: Tensor, y: Tensor, rowptr: Tensor, col: Tensor, reverse: Tensor, backend: str
) -> Tensor:
    m, dtype = int(rowptr[-1]), accumulate_dtype(x)
    row = torch.arange(x.size(0), device=x.device).repeat_interleave(rowptr.diff().long())
    neighbour = col[:m].long()
    out = torch.zeros(col.numel(), dtype=dtype, device=x.device)
    for left, right in zip(x.to(dtype).split(BLOCK, 1), y.to(dtype).split(BLOCK, 1), strict=True):
        out[:m] += (left[row] * right[neighbour]).sum(1)
    return out.to(x.dtype)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.backend = inputs
    ctx.save_for_backward(*tensors)


def _attended_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    a, x, rowptr, col, reverse = ctx.saved_tensors
    csr = (rowptr, col, reverse, ctx.backend)
    wrt_a = _products(grad, x, *csr).to(a.dtype) if ctx.needs_input_grad[0] else None
    wrt_x = _attended(a[reverse.long()], grad, *csr) if ctx.needs_input_grad[1] else None
    return wrt_a, wrt_x, None, None, None, None


def _products_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, y, rowptr, col, reverse = ctx.saved_tensors
    csr = (rowptr, col, reverse, ctx.backend)
    wrt_x = _attended(grad, y, *csr) if ctx.needs_input_grad[0] else None
    wrt_y = _attended(grad[reverse.long()], x, *csr) if ctx.needs_input_grad[1] else None
    return wrt_x, wrt_y, None, None, None, None


_attended.differentiated(_attended_backward, _save)
_products.differentiated(_products_backward, _save)
