"""Measures of an embedding as a matrix, without its graph: rank, norm and dead units.

All take features ``x``, ``[n, F]``, and return a 0-dimensional float64 tensor.
"""

import torch
from torch import Tensor

from eamp.diagnostics.energies import rescaled


def effective_rank(x: Tensor) -> Tensor:
    r"""Return the effective rank, the exponential of the entropy of the singular values.

    .. math:: \exp\Big(-\sum_k p_k \ln p_k\Big), \qquad p_k = \sigma_k / \sum_l \sigma_l

    It is the number of directions over which the embedding spreads, whatever its scale: F for an
    isotropic one, 1 if all rows are parallel. It is independent of the energies: an embedding may
    lose rank and keep its energy, and the reverse. NaN for zeros and for non-finite values.
    Reference: https://ieeexplore.ieee.org/document/7098875 (Roy & Vetterli, 2007); known for
    embeddings as RankMe, https://arxiv.org/abs/2210.02885.

    Example:
        >>> effective_rank(torch.diag(torch.tensor([5.0, 5.0, 5.0, 0.0])))
        tensor(3.0000, dtype=torch.float64)
    """
    values = singular_values(x)
    share = values / values.sum()
    return torch.special.entr(share).sum().exp()


def numerical_rank(x: Tensor, tolerance: float | None = None) -> Tensor:
    r"""Return the number of singular values above ``tolerance`` times the largest.

    A weak direction counts as much as the strongest one, so it falls long after
    :func:`effective_rank`. NaN for non-finite values.

    Args:
        x: features, ``[n, F]``.
        tolerance: by default max(n, F) times the machine epsilon of float32, in which most models
            run, whatever the type of ``x``: NumPy's and PyTorch's rule for ``matrix_rank``. The
            singular values computed here are too inexact for tolerances below 1e-7.

    Example:
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
    r"""Return the root mean square of the entries, :math:`\lVert X \rVert_F / \sqrt{nF}`.

    It is the scale of the embedding, comparable between widths and graphs. It shows whether
    signals vanish or explode from layer to layer.

    Example:
        >>> norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor(2.5000, dtype=torch.float64)
    """
    x = x.double()
    scale = x.detach().abs().amax()
    if not bool((scale > 0) & scale.isfinite()):
        return scale
    return scale * (x / scale).square().mean().sqrt()


def dead_units(x: Tensor) -> Tensor:
    r"""Return the share of units (columns) that are exactly zero at every node.

    Behind an activation these are the ReLUs that fire at no node. When all nodes are alike, a ReLU
    is on at all of them or off at all of them, so about half of the units are dead in any network
    that has oversmoothed.

    Example:
        >>> dead_units(torch.tensor([[1.0, 0.0], [2.0, 0.0]]))
        tensor(0.5000, dtype=torch.float64)
    """
    return (x == 0).all(0).double().mean()


def singular_values(x: Tensor) -> Tensor:
    """Return the singular values of ``x``, up to a common factor, from the smaller Gram matrix.

    They are exact to 1e-8 of the largest, and cost much less than a decomposition of ``x`` itself.
    """
    x = rescaled(x)
    gram = x.T @ x if x.size(0) > x.size(1) else x @ x.T
    if not bool(gram.isfinite().all()):
        return gram.new_full(gram.shape[:1], torch.nan)
    return torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()
