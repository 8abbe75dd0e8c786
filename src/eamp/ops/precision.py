"""The precision in which sums over edges are accumulated."""

import torch
from torch import Tensor

TINY = 1e-30
"""Mean squares below this count as zero: float32 cannot hold the squares of such features."""


def accumulate_dtype(x: Tensor) -> torch.dtype:
    """Return float32 for half precision, and the dtype itself otherwise."""
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype


def widen(x: Tensor) -> Tensor:
    """Return ``x`` in the dtype that its sums are accumulated in."""
    return in_dtype(x, accumulate_dtype(x))


def in_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``x`` in ``dtype``, without the microsecond that ``to`` costs for nothing."""
    return x if x.dtype is dtype else x.to(dtype)
