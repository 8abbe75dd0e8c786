"""The sums over edges that keep channels apart, as torch operators.

Their derivatives are again sums of this kind:

    Q(x)_i    = Σ_j a_ij (x_i − x_j)²                    ∂Q: G ↦ 2 V(G, x)
    B(x, y)_i = Σ_j a_ij (x_i − x_j) ⊙ (y_i − y_j)       ∂B: G ↦ V(G, y), V(G, x)
    V(g, x)_i = Σ_j a_ij (g_i + g_j) ⊙ (x_i − x_j)       ∂V: G ↦ B(x, G), V(g, G)
"""

from typing import Any

from torch import Tensor

from eamp.graph import CSR, Graph
from eamp.ops.backends import Backend, choose
from eamp.ops.operator import graph_operator, like_first, like_second
from eamp.ops.precision import in_dtype, widen
from eamp.ops.sums import Gradients, _save


def channel_squares(x: Tensor, graph: Graph) -> Tensor:
    """Return Q(x)_i = Σ_j a_ij (x_i − x_j)² in every channel, in the shape of ``x``."""
    return graph.own_rows(_squares(graph.with_halo(x), *graph.local_csr, choose(x.device)))


@graph_operator("eamp::channel_squares", "Tensor x", like_first)
def _squares(x: Tensor, backend: Backend, csr: CSR) -> Tensor:
    wide = widen(x)
    return in_dtype(backend.channel_products(wide, wide, csr), x.dtype)


@graph_operator("eamp::channel_products", "Tensor x, Tensor y", like_first)
def _products(x: Tensor, y: Tensor, backend: Backend, csr: CSR) -> Tensor:
    return in_dtype(backend.channel_products(widen(x), widen(y), csr), x.dtype)


@graph_operator("eamp::channel_differences", "Tensor g, Tensor x", like_second)
def _differences(g: Tensor, x: Tensor, backend: Backend, csr: CSR) -> Tensor:
    return in_dtype(backend.channel_differences(widen(g), widen(x), csr), x.dtype)


def _squares_backward(ctx: Any, grad: Tensor) -> Gradients:
    x, *csr = ctx.saved_tensors
    return _differences(2 * grad, x, *csr, ctx.backend), *(None,) * 5


def _products_backward(ctx: Any, grad: Tensor) -> Gradients:
    x, y, *csr = ctx.saved_tensors
    wrt_x = _differences(grad, y, *csr, ctx.backend) if ctx.needs_input_grad[0] else None
    wrt_y = _differences(grad, x, *csr, ctx.backend) if ctx.needs_input_grad[1] else None
    return wrt_x, wrt_y, *(None,) * 5


def _differences_backward(ctx: Any, grad: Tensor) -> Gradients:
    g, x, *csr = ctx.saved_tensors
    wrt_g = _products(x, grad, *csr, ctx.backend) if ctx.needs_input_grad[0] else None
    wrt_x = _differences(g, grad, *csr, ctx.backend) if ctx.needs_input_grad[1] else None
    return wrt_g, wrt_x, *(None,) * 5


_squares.differentiated(_squares_backward, _save)
_products.differentiated(_products_backward, _save)
_differences.differentiated(_differences_backward, _save)
