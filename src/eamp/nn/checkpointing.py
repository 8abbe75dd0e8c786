"""Backpropagation through very many layers without keeping what every one of them computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from eamp.ops.memory import Heap

Item = TypeVar("Item")
MOST_SEGMENTS = 32


def in_segments(
    layer: Callable[[Tensor, Item], Tensor],
    items: Iterable[Item],
    x: Tensor,
    keep_little: bool = True,
) -> Tensor:
    """``x = layer(x, item)`` for one item after the other, as :func:`functools.reduce` does it. With ``keep_little``, layers form segments
    of which only the input is kept for the backward pass; the rest is computed again, segment by segment, from the last to the first.

    *L* layers are √*L* segments of √*L* layers. Beyond 1024 layers segments are themselves cut into segments, at most 32 each: what is kept
    grows with the logarithm of the depth, and so does the time. What is random comes out the same a second time, and results are the same
    bit for bit, as long as the model stays as it is (its parameters, and its being in training) until the backward pass.

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
    layer: Callable[[Tensor, Item], Tensor],
    items: Sequence[Item],
    x: Tensor,
    levels: int,
    heap: Heap | None,
) -> Tensor:
    """Segments inside segments, down to layers at level 1."""
    if heap is not None:
        heap.give_back()  # what other segments have left behind
    if levels == 1 or not items:
        return reduce(layer, items, x)
    size = math.ceil(len(items) ** (1 - 1 / levels))
    last = (len(items) - 1) // size * size
    for start in range(0, last, size):
        x = checkpoint(
            in_tree, layer, items[start : start + size], x, levels - 1, heap, use_reentrant=False
        )
    # The backward pass begins with the last segment: what that computed would be dropped only to be computed again at once.
    return in_tree(layer, items[last:], x, levels - 1, heap)
