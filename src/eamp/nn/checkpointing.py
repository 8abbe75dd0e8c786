"""Activation checkpointing: backpropagation through many layers in little memory."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext
from functools import reduce
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.modules.batchnorm import _NormBase
from torch.utils.checkpoint import checkpoint

from eamp.ops.backends import backend, forced
from eamp.ops.memory import Heap

Item = TypeVar("Item")
Layer: TypeAlias = Callable[[Tensor, Item], Tensor]
MOST_SEGMENTS = 32  # per level: two levels, with one extra forward pass, are enough for 1024 layers


def in_segments(
    layer: Layer[Item], items: Iterable[Item], x: Tensor, keep_little: bool = True
) -> Tensor:
    """Apply ``x = layer(x, item)`` for every item in turn, with checkpoints if ``keep_little``.

    Only the input of each segment of layers is stored for the backward pass, which computes the
    rest again, from the last segment to the first. *L* layers form √*L* segments of √*L* layers.
    Beyond 1024 layers, segments are cut into segments again, at most 32 each: the number of stored
    embeddings and the number of passes through a layer grow with the logarithm of the depth.

    The second computation draws the same random numbers and leaves the running means of batch
    normalisation as they are. Results are equal bit for bit, as long as the parameters and the
    training mode of the model do not change before the backward pass.

    Example:
        >>> import torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> in_segments(lambda x, factor: factor * x, [2.0] * 20, x).sum().backward()
        >>> x.grad
        tensor([1048576., 1048576.])
    """
    items = list(items)
    if not keep_little or not torch.is_grad_enabled():
        return reduce(layer, items, x)
    levels = 2
    while MOST_SEGMENTS**levels < len(items):
        levels += 1
    return in_tree(layer, items, x, levels, None if torch.compiler.is_compiling() else Heap())


def in_tree(
    layer: Layer[Item], items: Sequence[Item], x: Tensor, levels: int, heap: Heap | None
) -> Tensor:
    """Apply the layers in nested segments; at level 1 the segments are single layers."""
    if heap is not None:
        heap.give_back()  # memory that other segments have freed
    if levels == 1 or not items:
        return reduce(layer, items, x)
    size = math.ceil(len(items) ** (1 - 1 / levels))
    last = (len(items) - 1) // size * size
    for start in range(0, last, size):
        segment = items[start : start + size]
        again: dict[str, Any] = {}
        if not torch.compiler.is_compiling():
            second = SecondTime(segment)
            again["context_fn"] = lambda second=second: (nullcontext(), second)
        given = (layer, segment, x, levels - 1, heap)
        x = checkpoint(in_tree, *given, use_reentrant=False, **again)
    # No checkpoint for the last segment: the backward pass begins with it, and would compute at
    # once what had just been dropped.
    return in_tree(layer, items[last:], x, levels - 1, heap)


class SecondTime:
    """A block in which a segment is computed once more, as it was the first time.

    The backend is that which was forced then: the second computation may be outside of its block,
    or in another thread. Running means have already moved. The block may be entered again, as the
    backward pass may be repeated.

    Args:
        items: the items of the segment, such as modules or tuples of modules.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        self.backend = forced()
        parts = (part for item in items for part in (item if isinstance(item, tuple) else (item,)))
        modules = (
            module for part in parts if isinstance(part, Module) for module in part.modules()
        )
        self.norms = [module for module in modules if isinstance(module, _NormBase)]

    def __enter__(self) -> None:
        with ExitStack() as stack:
            if self.backend is not None:
                stack.enter_context(backend(self.backend))
            for norm in self.norms:
                stack.callback(set_counters, norm, norm.momentum, norm.num_batches_tracked)
                set_counters(norm, 0.0, None)
            self.stack = stack.pop_all()

    def __exit__(self, *error: object) -> None:
        self.stack.close()


def set_counters(norm: _NormBase, momentum: float | None, batches: Tensor | None) -> None:
    """Set how far running means move, and the number of batches, which ``None`` does not count."""
    norm.momentum, norm.num_batches_tracked = momentum, batches
