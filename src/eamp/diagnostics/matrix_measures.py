"""What an embedding is as a matrix, without its graph: its rank, its size, its dead units."""

from __future__ import annotations

import torch
from torch import Tensor

from eamp.diagnostics.energies import rescaled


def effective_rank(x: Tensor) -> Tensor:
    r"""Effective rank, :math:`\exp\big(-\sum_k p_k \ln p_k\big)` with the singular values as :math:`p_k = \sigma_k / \sum_l \sigma_l`,
    from `Roy & Vetterli (2007) <https://ieeexplore.ieee.org/document/7098875>`_; known for embeddings as
    `RankMe <https://arxiv.org/abs/2210.02885>`_.

    *Tells* over how many directions the embedding really spreads: F for an isotropic one, 1 when all rows are parallel, whatever its scale.
    *Cannot tell* whether those directions vary over the graph smoothly or not: an embedding may lose rank and keep
    its energy, and the other way round. NaN for zeros and for anything not finite.

    Args:
        x: features, ``[n, F]``.

    Example:
        >>> import torch
        >>> effective_rank(torch.diag(torch.tensor([5.0, 5.0, 5.0, 0.0])))
        tensor(3.0000, dtype=torch.float64)
    """
    values = singular_values(x)
    share = values / values.sum()
    return torch.special.entr(share).sum().exp()


def numerical_rank(x: Tensor, tolerance: float | None = None) -> Tensor:
    r"""Number of singular values above ``tolerance`` times the largest.

    *Tells* how many directions are there at all. *Cannot tell* how strong they are: one part in a hundred thousand counts as
    much as the largest, so it falls long after :func:`effective_rank` has. NaN for anything not finite.

    Args:
        x: features, ``[n, F]``.
        tolerance: by default max(n, F) times the rounding of float32, in which most models run, whatever the type of ``x``.
            Below 1e-7 it asks for more than is computed here.

    Example:
        >>> import torch
        >>> numerical_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]))
        tensor(1., dtype=torch.float64)
    """
    values = singular_values(x)
    if tolerance is None:
        tolerance = max(x.shape) * torch.finfo(torch.float32).eps
    largest = values.max()
    rank = (values > tolerance * largest).double().sum()
    return torch.where(largest.isnan(), largest, rank)


def norm(x: Tensor) -> Tensor:
    r"""Root mean square of the entries, :math:`\lVert X \rVert_F / \sqrt{nF}`.

    *Tells* the scale of the embedding, comparable between widths and graphs: whether signals vanish or explode from
    layer to layer. *Cannot tell* anything about differences between nodes.

    Example:
        >>> import torch
        >>> norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor(2.5000, dtype=torch.float64)
    """
    x = x.double()
    scale = x.detach().abs().amax()
    if not bool((scale > 0) & scale.isfinite()):
        return scale
    return scale * (x / scale).square().mean().sqrt()


def dead_units(x: Tensor) -> Tensor:
    r"""Share of the units (columns) that are exactly zero at every node.

    *Tells* how much of a layer's width is lost to ReLUs that never fire, when taken behind the activation.
    *Cannot tell* why: once all nodes are alike a ReLU is either on everywhere or off everywhere, so that about half of
    the units are dead in any network that has oversmoothed. Ahead of the activation nothing is exactly zero.

    Example:
        >>> import torch
        >>> dead_units(torch.tensor([[1.0, 0.0], [2.0, 0.0]]))
        tensor(0.5000, dtype=torch.float64)
    """
    return (x == 0).all(0).double().mean()


def singular_values(x: Tensor) -> Tensor:
    """Singular values of ``x`` rescaled to largest entry 1, from its smaller Gram matrix in float64.

    Resolves 1e-8 of the largest; costs one product of [F, n] by [n, F], where a decomposition of X itself costs many.
    """
    x = rescaled(x)
    gram = x.T @ x if x.size(0) > x.size(1) else x @ x.T
    if not bool(gram.isfinite().all()):
        return gram.new_full(gram.shape[:1], torch.nan)
    return torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()
