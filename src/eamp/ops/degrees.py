"""What propagation needs of a graph's degrees, in the precision of the features: computed once per graph, not once per layer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary

from eamp.graph import CSR

_known: WeakIdKeyDictionary = WeakTensorKeyDictionary()  # of a graph's degrees, which live and die with it and never change


def rsqrt_degree_with_loop(csr: CSR, dtype: torch.dtype) -> Tensor:
    """1 / sqrt(k_i + 1), ``[n]``: the degree counts a self-loop, so no node is without."""
    if torch.compiler.is_compiling():
        return (csr.degree + 1).rsqrt().to(dtype)
    by_dtype = _known.get(csr.degree)
    if by_dtype is None:
        by_dtype = _known[csr.degree] = {}
    if dtype not in by_dtype:
        by_dtype[dtype] = (csr.degree + 1).rsqrt().to(dtype)
    found: Tensor = by_dtype[dtype]
    return found
