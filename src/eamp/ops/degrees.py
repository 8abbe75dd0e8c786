"""What the sums and the step need of a graph's degrees, in the precision of the features: computed once per graph, not once per layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary

from eamp.graph import CSR

_known: WeakIdKeyDictionary = (
    WeakTensorKeyDictionary()
)  # of a graph's degrees, which live and die with it and never change


def once(degrees: Tensor, key: Hashable, compute: Callable[[], Tensor]) -> Tensor:
    """What ``compute`` returns, remembered under ``key`` as long as ``degrees`` live."""
    if torch.compiler.is_compiling():
        return compute()
    known: dict[Any, Tensor] | None = _known.get(degrees)
    if known is None:
        known = _known[degrees] = {}
    if key not in known:
        with torch.inference_mode(False):  # a later call may want to differentiate
            known[key] = compute()
    return known[key]


def rsqrt_degree_with_loop(csr: CSR, dtype: torch.dtype) -> Tensor:
    """1 / sqrt(k_i + 1), ``[n]``: the degree counts a self-loop, so no node is without."""
    return once(csr.degree, dtype, lambda: (csr.degree + 1).rsqrt().to(dtype))


def normaliser(x: Tensor, rsqrt_degree: Tensor) -> Tensor:
    """C_i = 1 / sqrt(k_i F), in the dtype that sums over ``x`` have; 0 for an isolated node."""
    dtype, width = accumulate_dtype(x), x.size(1)
    return once(
        rsqrt_degree,
        (dtype, width),
        lambda: rsqrt_degree.to(dtype) * (1 / math.sqrt(max(width, 1))),
    )


def without_degrees(csr: CSR) -> CSR:
    """The graph with a normaliser 1 / sqrt(F) that is the same for all nodes."""
    return csr._replace(
        rsqrt_degree=once(csr.degree, "ones", lambda: torch.ones_like(csr.rsqrt_degree))
    )


def accumulate_dtype(x: Tensor) -> torch.dtype:
    """float32 for half precision, the dtype itself otherwise."""
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
