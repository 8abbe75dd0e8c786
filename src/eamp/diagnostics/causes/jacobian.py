"""The largest singular value of a Jacobian, from the graph of derivatives of a forward pass."""

import math

import torch
from torch import Tensor

ITERATIONS = 20
SEED = 0  # of the vector at which the iteration starts


def largest_singular_value(out: Tensor, x: Tensor, iterations: int = ITERATIONS) -> float:
    r"""Return the largest singular value of :math:`\partial` ``out`` / :math:`\partial` ``x``.

    It is how much the part of a network between the two can lengthen a small change of ``x``, and a
    gradient on its way back. Power iteration multiplies with the Jacobian and its transpose, which
    are never built. The result is a lower bound, which rises with the number of iterations.

    Args:
        out: a tensor that autograd has recorded, computed from ``x``.
        x: a tensor that requires gradients.
        iterations: the number of products with each of the two matrices.

    Returns:
        The singular value; NaN if ``out`` does not depend on ``x``.

    Example:
        >>> x = torch.tensor([[1.0, 2.0]], requires_grad=True)
        >>> y = x @ torch.tensor([[0.0, 3.0], [0.5, 0.0]])
        >>> round(largest_singular_value(y, x), 6)
        3.0
    """
    # The product with the transpose is linear in `back`. Its derivative by `back` is the Jacobian.
    back = torch.zeros_like(out, requires_grad=True)
    (product,) = torch.autograd.grad(out, x, back, create_graph=True, allow_unused=True)
    if product is None or not product.requires_grad:
        return math.nan
    generator = torch.Generator().manual_seed(SEED)
    v = torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x)
    size = math.nan
    for _ in range(iterations):
        length = v.norm()
        if not bool(length > 0):
            return float(length)  # zero: the Jacobian is zero; NaN: it is not finite
        (u,) = torch.autograd.grad(product, back, v / length, retain_graph=True)
        size = float(u.double().norm())
        (v,) = torch.autograd.grad(out, x, u, retain_graph=True)
    return size
