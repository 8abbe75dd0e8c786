"""Activation checkpointing: backpropagation through many layers in little memory."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext
from functools import reduce
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils.checkpoint import checkpoint

from eamp.ops.backends import backend, forced
from eamp.ops.memory import Heap

Item = TypeVar("Item")
Layer: TypeAlias = Callable[[Tensor, Item], Tensor]
MOST_SEGMENTS = 32  # per level: two levels, with one extra forward pass, are enough for 1024 layers


def in_segments(
    layer: Layer[Item],
    items: Iterable[Item],
    x: Tensor,
    keep_little: bool = True,
    model: Module | None = None,
) -> Tensor:
    """Apply ``x = layer(x, item)`` for every item in turn, with checkpoints if ``keep_little``.

    Only the input of each segment of layers is stored for the backward pass, which computes the
    rest again, from the last segment to the first. *L* layers form √*L* segments of √*L* layers.
    Beyond 1024 layers, segments are cut into segments again, at most 32 each: the number of stored
    embeddings and the number of passes through a layer grow with the logarithm of the depth.

    The second computation draws the same random numbers, and changes no buffer of the ``model``,
    such as the running means of batch normalisation. Results are equal bit for bit, as long as the
    parameters and the training mode of the model do not change before the backward pass.

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
    heap = None if torch.compiler.is_compiling() else Heap()
    return in_tree(layer, items, x, levels, heap, model)


def in_tree(
    layer: Layer[Item],
    items: Sequence[Item],
    x: Tensor,
    levels: int,
    heap: Heap | None,
    model: Module | None,
) -> Tensor:
    """Apply the layers in nested segments; at level 1 the segments are single layers."""
    if heap is not None:
        heap.give_back()  # memory that other segments have freed
    if levels == 1 or not items:
        return reduce(layer, items, x)
    size = math.ceil(len(items) ** (1 - 1 / levels))
    last = (len(items) - 1) // size * size
    for start in range(0, last, size):
        again: dict[str, Any] = {}
        if not torch.compiler.is_compiling():
            second = SecondTime(model)
            again["context_fn"] = lambda second=second: (nullcontext(), second)
        given = (layer, items[start : start + size], x, levels - 1, heap, model)
        x = checkpoint(in_tree, *given, use_reentrant=False, **again)
    # No checkpoint for the last segment: the backward pass begins with it, and would compute at
    # once what had just been dropped.
    return in_tree(layer, items[last:], x, levels - 1, heap, model)


class SecondTime:
    """A block in which a segment is computed once more, as it was the first time.

    The backend is that which was forced then: the second computation may be outside of its block,
    or in another thread. Buffers, such as running means, have the values that they had then, and
    afterwards those that they have now. The block may be entered again, as the backward pass may be
    repeated.

    Args:
        model: the module whose buffers the segment may change, or ``None``.
    """

    def __init__(self, model: Module | None) -> None:
        self.backend = forced()
        buffers = [] if model is None or not model.training else model.buffers()
        self.first = [(buffer, buffer.clone()) for buffer in buffers]

    def __enter__(self) -> None:
        with ExitStack() as stack:
            if self.backend is not None:
                stack.enter_context(backend(self.backend))
            for buffer, first in self.first:
                stack.callback(set_data, buffer, buffer.clone())
                set_data(buffer, first)
            self.stack = stack.pop_all()

    def __exit__(self, *error: object) -> None:
        self.stack.close()


def set_data(buffer: Tensor, value: Tensor) -> None:
    """Set a buffer without autograd, which may have kept it for the backward pass."""
    buffer.data.copy_(value)
