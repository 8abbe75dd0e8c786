"""Dropout whose mask is a function of a seed and of the place, computed where it is needed and never stored.

torch draws its mask on one thread, one number after the other, and keeps it for the backward pass; for a deep network of small width that
is half an epoch's time. Here every element hashes its place with a seed drawn from torch's generator: the same under
:func:`torch.manual_seed`, on any number of threads, and a second time in the backward pass.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numba import carray, cfunc, njit
from torch import Tensor

from eamp.ops import part
from eamp.ops.backends.numba_cpu.threads import draw_ticket, pointer, run
from eamp.ops.memory import large_empty_like
from eamp.ops.operator import like_first, operator

PIECE = 4096  # elements that share a pair of seeds
TICKET, SIZE, SEED, THRESHOLD, X, OUT, SCALE, SLOTS = range(8)


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """``x`` with every element set to 0 with probability ``p``, the others divided by ``1 - p``; ``x`` itself outside training.

    ``x`` may be a sparse CSR tensor.
    As :func:`torch.nn.functional.dropout`, which does it where this has no kernel: off the CPU, and in half precision.

    Example:
        >>> import torch
        >>> _ = torch.manual_seed(0)
        >>> dropout(torch.ones(8), 0.5)
        tensor([0., 2., 0., 2., 0., 2., 2., 0.])
    """
    if not 0 <= p <= 1:
        raise ValueError(
            f"the probability of dropping an element must lie between 0 and 1, but is {p}."
        )
    if not training or p == 0:
        return x
    if part.places is not None and x.device.type == "cpu" and p < 1:
        from eamp.ops.placed_dropout import dropout_of_rows  # which is made of this

        return dropout_of_rows(x, p, part.places)
    if x.layout == torch.sparse_csr:  # what is zero stays so, dropped or not
        return torch.sparse_csr_tensor(
            x.crow_indices(),
            x.col_indices(),
            dropout(x.values(), p),
            x.shape,
            check_invariants=False,
        )
    if p == 1 or x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
        return F.dropout(x, p, training)
    return _dropout(x, torch.randint(2**62, ()), p)


@operator("eamp::dropout", like_first)
def _dropout(x: Tensor, seed: Tensor, p: float) -> Tensor:
    x, out = x.contiguous(), large_empty_like(x)
    block = np.array(
        [0, x.numel(), seed.item(), round(p * 2**32), x.data_ptr(), out.data_ptr(), 0], np.int64
    )
    block.view(np.float64)[SCALE] = 1 / (1 - p)
    run(task(np.float64 if x.dtype == torch.float64 else np.float32), block)
    return out


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, seed, ctx.p = inputs
    ctx.save_for_backward(seed)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return _dropout(grad, *ctx.saved_tensors, ctx.p), None, None


_dropout.differentiated(_backward, _save)


@njit(inline="always")
def mix(h):
    """A bijection of 32-bit numbers that leaves no trace of their order: two rounds of multiply and shift."""
    h ^= h >> np.uint32(16)
    h = np.uint32(h * np.uint32(0x7FEB352D))
    h ^= h >> np.uint32(15)
    h = np.uint32(h * np.uint32(0x846CA68B))
    return h ^ (h >> np.uint32(16))


@njit
def mix_long(z):
    """The same of 64-bit numbers."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(inline="always")
def seeds_of(seed, piece):
    """The pair of seeds of a piece."""
    seeds = mix_long(np.uint64(seed) + np.uint64(piece + 1) * np.uint64(0x9E3779B97F4A7C15))
    return np.uint32(seeds), np.uint32(seeds >> np.uint64(32))


@njit(inline="always")
def hashed(place, first, second):
    """The number that decides about an element, from its place in a piece."""
    return mix(np.uint32(mix(np.uint32(np.uint32(place) + first)) + second))


@functools.cache
def task(real: Any) -> Any:
    """Compiled for one type of features; threads share out the pieces."""

    @cfunc("void(voidptr)", cache=True)
    def drop(block):
        slots = carray(block, SLOTS, np.int64)
        size, threshold = slots[SIZE], np.uint32(slots[THRESHOLD])
        scale = real(carray(block, SLOTS, np.float64)[SCALE])
        x, out = carray(pointer(slots[X]), size, real), carray(pointer(slots[OUT]), size, real)
        piece = draw_ticket(block)
        while piece * PIECE < size:
            source, target = (
                x[piece * PIECE : (piece + 1) * PIECE],
                out[piece * PIECE : (piece + 1) * PIECE],
            )
            first, second = seeds_of(slots[SEED], piece)
            for k in range(len(source)):
                target[k] = source[k] * scale if hashed(k, first, second) >= threshold else real(0)
            piece = draw_ticket(block)

    return drop
