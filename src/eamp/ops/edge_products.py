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
import torch.nn.functional as F
from torch import Tensor

from eamp.graph import CSR, Graph
from eamp.graph.csr import rows_of_entries, unpadded
from eamp.ops.backends import Backend, choose
from eamp.ops.operator import graph_operator, like_second
from eamp.ops.precision import accumulate_dtype, in_dtype
from eamp.ops.sums import Gradients, _save

BLOCK = 16  # features gathered at a time: the largest tensor of P is [edges × BLOCK]


def attended_sums(a: Tensor, x: Tensor, graph: Graph) -> Tensor:
    """Return A(a, x)_i = Σ_j a_ij x_j with weights ``[m]`` that need not be symmetric."""
    if a.size(0) != graph.csr.col.size(0):  # those of another graph
        raise ValueError(
            f"there are {a.size(0)} weights, but the graph has {graph.csr.col.size(0)} edges, "
            "counted in both directions: compute the weights on the graph that they are used on."
        )
    return _attended(a, x, *graph.csr, choose(x.device))


def edge_products(x: Tensor, y: Tensor, graph: Graph) -> Tensor:
    """Return P(x, y)_ij = x_i · y_j, one number per edge, ``[m]``."""
    return _products(x, y, *graph.csr, choose(x.device))


@graph_operator("eamp::attention_sums", "Tensor a, Tensor x", like_second)
def _attended(a: Tensor, x: Tensor, backend: Backend, csr: CSR) -> Tensor:
    csr, dtype = unpadded(csr), accumulate_dtype(x)
    ones = torch.ones(x.size(0), dtype=dtype, device=x.device)
    weighted = csr._replace(edge_weight=a[: csr.col.numel()].to(dtype))
    return in_dtype(backend.neighbour_sums(ones, x.to(dtype), ones, weighted, False), x.dtype)


def per_edge(x: Tensor, y: Tensor, rowptr: Tensor, col: Tensor, *_: Any) -> Tensor:
    """Return an empty tensor with one number per edge."""
    return x.new_empty(col.numel())


@graph_operator("eamp::products_per_edge", "Tensor x, Tensor y", per_edge)
def _products(x: Tensor, y: Tensor, backend: Backend, csr: CSR) -> Tensor:
    whole, dtype = unpadded(csr), accumulate_dtype(x)
    row, neighbour = rows_of_entries(whole), whole.col.long()
    out = torch.zeros(row.numel(), dtype=dtype, device=x.device)
    for left, right in zip(x.to(dtype).split(BLOCK, 1), y.to(dtype).split(BLOCK, 1), strict=True):
        out = out + (left[row] * right[neighbour]).sum(1)
    return F.pad(out, (0, csr.col.numel() - row.numel())).to(x.dtype)


def _attended_backward(ctx: Any, grad: Tensor) -> Gradients:
    a, x, *csr = ctx.saved_tensors
    where, opposite = (*csr, ctx.backend), csr[2].long()
    wrt_a = _products(grad, x, *where).to(a.dtype) if ctx.needs_input_grad[0] else None
    wrt_x = _attended(a[opposite], grad, *where) if ctx.needs_input_grad[1] else None
    return wrt_a, wrt_x, *(None,) * 5


def _products_backward(ctx: Any, grad: Tensor) -> Gradients:
    x, y, *csr = ctx.saved_tensors
    where, opposite = (*csr, ctx.backend), csr[2].long()
    wrt_x = _attended(grad, y, *where) if ctx.needs_input_grad[0] else None
    wrt_y = _attended(grad[opposite], x, *where) if ctx.needs_input_grad[1] else None
    return wrt_x, wrt_y, *(None,) * 5


_attended.differentiated(_attended_backward, _save)
_products.differentiated(_products_backward, _save)
