"""Backpropagation through very many layers without keeping what every one of them computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor
from torch.utils.checkpoint import checkpoint

SEGMENT = 16


def in_segments(layers: Sequence[Callable[[Tensor], Tensor]], x: Tensor, keep_little: bool = True) -> Tensor:
    """Every layer applied to ``x`` in turn. With ``keep_little``, as a tree of segments whose insides are computed again when needed.

    At most 16 embeddings are kept per level of the tree, so their number grows with the logarithm of the depth: 32 to 256 layers, 48 to
    4096. What is random is drawn the same way again.

    Example:
        >>> import torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> in_segments([lambda x: 2 * x] * 20, x).sum().backward()
        >>> x.grad
        tensor([1048576., 1048576.])
    """
    if not keep_little or len(layers) <= SEGMENT:
        for layer in layers:
            x = layer(x)
        return x
    size = SEGMENT
    while size * SEGMENT < len(layers):
        size *= SEGMENT
    for start in range(0, len(layers), size):
        # not in a closure over `start`, which would have moved on by the backward pass
        x = checkpoint(in_segments, layers[start : start + size], x, use_reentrant=False)
    return x
