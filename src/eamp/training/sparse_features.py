"""Input features of which few are not zero, such as bags of words, as a sparse matrix."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

WORTHWHILE = 0.05  # of the elements; the first layer's two products are several times faster at 1 %, and no slower here


def sparse_features(x: Tensor) -> Tensor:
    """``x`` as a CSR tensor where at most one element in twenty is not zero; as it is otherwise, and off the CPU.

    The models of :mod:`eamp.nn` that have ``takes_sparse_features`` accept both. A value that a layer would drop is dropped there, too.

    Example:
        >>> import torch
        >>> sparse_features(torch.eye(64)).layout
        torch.sparse_csr
        >>> sparse_features(torch.ones(64, 64)).layout
        torch.strided
    """
    if x.layout != torch.strided or x.device.type != "cpu" or x.requires_grad or x.dim() != 2:
        return x
    if torch.count_nonzero(x) > WORTHWHILE * x.numel():
        return x
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore",
            "Sparse (CSR tensor support is in beta|invariant checks are implicitly disabled)",
        )
        return x.to_sparse_csr()
