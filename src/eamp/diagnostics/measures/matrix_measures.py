"""Measures of an embedding as a matrix, without its graph: ranks, norm, correlation, dead units.

All take features ``x``, ``[n, F]``, and return a 0-dimensional float64 tensor.
"""

from torch import Tensor

from eamp.diagnostics.measures.embedding import Embedding


def effective_rank(x: Tensor) -> Tensor:
    r"""Return the effective rank, the exponential of the entropy of the singular values.

    .. math:: \exp\Big(-\sum_k p_k \ln p_k\Big), \qquad p_k = \sigma_k / \sum_l \sigma_l

    It is the number of directions over which the embedding spreads, whatever its scale: F for an
    isotropic one, 1 if all rows are parallel. It is independent of the energies: an embedding may
    lose rank and keep its energy, and the reverse. NaN for zeros and for non-finite values.
    Reference: https://ieeexplore.ieee.org/document/7098875 (Roy & Vetterli, 2007); known for
    embeddings as RankMe, https://arxiv.org/abs/2210.02885.

    Example:
        >>> import torch
        >>> effective_rank(torch.diag(torch.tensor([5.0, 5.0, 5.0, 0.0])))
        tensor(3.0000, dtype=torch.float64)
    """
    return Embedding(x).effective_rank()


def numerical_rank(x: Tensor) -> Tensor:
    r"""Return the numerical or stable rank :math:`\lVert X \rVert_F^2 / \lVert X \rVert_2^2`.

    It is between 1, if all rows are parallel, and the rank. It tells how much of the squared norm
    lies outside the strongest direction, so it reacts first when rows become parallel. It cannot
    tell how the rest is spread: an offset that all nodes share keeps it near 1, however many other
    directions there are. NaN for zeros and for non-finite values.
    Reference: https://arxiv.org/abs/math/0503442 (Rudelson & Vershynin, 2007).

    Args:
        x: features, ``[n, F]``.

    Example:
        >>> import torch
        >>> numerical_rank(torch.diag(torch.tensor([2.0, 1.0, 1.0])))  # (4 + 1 + 1) / 4
        tensor(1.5000, dtype=torch.float64)
    """
    return Embedding(x).numerical_rank()


def rank_one_distance(x: Tensor) -> Tensor:
    r"""Return the distance to the nearest matrix of rank one, as a share of the nuclear norm.

    .. math:: 1 - \sigma_1 / \sum_k \sigma_k

    0 means that all rows are parallel, the limit that Roth & Liebig (2023) show for any
    aggregation. It tells how far an embedding is from that limit, whatever its scale and whether
    neighbours are alike. It cannot tell one remaining direction from several.
    NaN for zeros and for non-finite values. Reference: https://arxiv.org/abs/2308.16800.

    Example:
        >>> import torch
        >>> rank_one_distance(torch.diag(torch.tensor([3.0, 1.0])))  # 1 − 3/4
        tensor(0.2500, dtype=torch.float64)
    """
    return Embedding(x).rank_one_distance()


def matrix_rank(x: Tensor, tolerance: float | None = None) -> Tensor:
    r"""Return the number of singular values above ``tolerance`` times the largest.

    A weak direction counts as much as the strongest one, so it falls long after
    :func:`effective_rank`. NaN for non-finite values.

    Args:
        x: features, ``[n, F]``.
        tolerance: by default max(n, F) times the machine epsilon of float32, in which most models
            run, whatever the type of ``x``: NumPy's and PyTorch's rule for ``matrix_rank``. The
            singular values computed here are too inexact for tolerances below 1e-7.

    Example:
        >>> import torch
        >>> matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]))
        tensor(1., dtype=torch.float64)
    """
    return Embedding(x).matrix_rank(tolerance)


def column_correlation(x: Tensor) -> Tensor:
    r"""Return the mean absolute Pearson correlation between two columns (DeCorr's Corr).

    0 means that units are unrelated, 1 that each is a linear function of any other. It tells
    whether units repeat each other, also where an offset that all nodes share hides it from the
    ranks. It cannot tell how large differences are: it is blind to the scale and offset of a unit.
    Constant units are left out; NaN with fewer than two others, and for non-finite values.
    Reference: https://arxiv.org/abs/2206.07743 (Jin et al., 2022).

    Example:
        >>> import torch
        >>> column_correlation(torch.tensor([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]]))
        tensor(1.0000, dtype=torch.float64)
    """
    return Embedding(x).column_correlation()


def norm(x: Tensor) -> Tensor:
    r"""Return the root mean square of the entries, :math:`\lVert X \rVert_F / \sqrt{nF}`.

    It is the scale of the embedding, comparable between widths and graphs. It shows whether
    signals vanish or explode from layer to layer.

    Example:
        >>> import torch
        >>> norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor(2.5000, dtype=torch.float64)
    """
    return Embedding(x).norm()


def dead_units(x: Tensor) -> Tensor:
    r"""Return the share of units (columns) that are exactly zero at every node.

    Behind an activation these are the ReLUs that fire at no node. When all nodes are alike, a ReLU
    is on at all of them or off at all of them, so about half of the units are dead in any network
    that has oversmoothed.

    Example:
        >>> import torch
        >>> dead_units(torch.tensor([[1.0, 0.0], [2.0, 0.0]]))
        tensor(0.5000, dtype=torch.float64)
    """
    return Embedding(x).dead_units()
