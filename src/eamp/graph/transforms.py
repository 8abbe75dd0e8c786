"""Transforms of torch: ``torch.func`` (``grad``, ``vmap``, ``jvp``, ...) and forward-mode AD.

Beside them stand the batched gradients of ``torch.autograd``, which map over gradients alone.

Inside a transform every tensor is wrapped, even one that is computed from constants. A graph is a
constant that outlives the transform, so it is made and kept outside.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active, _DisableFuncTorch
from torch._C._functorch import (
    get_unwrapped,
    is_functorch_wrapped_tensor,
    is_legacy_batchedtensor,
)
from torch.autograd import forward_ad

from eamp.graph.errors import GraphError

outside_transforms = _DisableFuncTorch
"""A context in which tensors are not wrapped."""


def transformed() -> bool:
    """Return whether a transform of ``torch.func``, or forward-mode AD, is active.

    Under ``torch.compile`` it is ``False``.
    """
    return not torch.compiler.is_compiling() and (
        _are_functorch_transforms_active() or forward_ad._current_level >= 0
    )


def batched(values: Iterable[Any]) -> bool:
    """Return whether some of the values are tensors of gradients that autograd computes at once.

    ``torch.autograd.grad(..., is_grads_batched=True)`` and ``jacobian(..., vectorize=True)`` wrap
    them in a ``vmap`` of autograd's own, which :func:`transformed` does not know. Under
    ``torch.compile`` it is ``False``.
    """
    return not torch.compiler.is_compiling() and any(
        isinstance(value, Tensor) and is_legacy_batchedtensor(value) for value in values
    )


def unwrapped(tensor: Tensor) -> Tensor:
    """Return the tensor inside the wrappers; that of ``vmap`` has one more dimension."""
    while is_functorch_wrapped_tensor(tensor):
        tensor = get_unwrapped(tensor)
    return tensor


def unmapped(adjacency: Tensor) -> Tensor:
    """Return the tensor inside the wrappers, after checking that ``vmap`` does not map over it."""
    whole = unwrapped(adjacency)
    if whole.dim() != adjacency.dim():
        raise GraphError(
            "torch.func.vmap cannot map over graphs, only over features and parameters; pass "
            "in_dims=None for the adjacency, or make one Graph with batch=... of all graphs."
        )
    return whole
