"""The kernels of :mod:`eamp.ops.dropout`: masks by hashing the places of elements."""

import functools
from typing import Any

import numpy as np
import torch
from numba import carray, njit
from torch import Tensor

from eamp.graph.compiled_code import KEPT
from eamp.graph.neighbour_lists import mix_long
from eamp.ops.backends.numba_cpu.compiling import compiled
from eamp.ops.backends.numba_cpu.threads import draw_ticket, pointer, run
from eamp.ops.memory import large_empty_like

PIECE = 4096  # elements that share a pair of seeds
ROWS = 64  # rows that a thread takes at a time
TICKET, SIZE, ENTRIES, SEED, THRESHOLD, X, OUT, START, OFFSET, SCALE, SLOTS = range(11)


def drop(x: Tensor, seed: int, p: float) -> Tensor:
    """Drop elements of a whole tensor."""
    return launch("drop", x, x.numel(), seed, p)


def drop_rows(x: Tensor, seed: int, p: float, start: Tensor, offset: Tensor) -> Tensor:
    """Drop elements of some rows of a larger tensor.

    Args:
        x: the elements, row after row.
        seed: of the mask.
        p: the probability.
        start: the place of every row's first element in the larger tensor.
        offset: the place of every row's first element in ``x``, and the end of the last row.
    """
    return launch("drop_rows", x, start.numel(), seed, p, start.contiguous(), offset.contiguous())


def launch(name: str, x: Tensor, size: int, seed: int, p: float, *places: Tensor) -> Tensor:
    """Run a task on torch's threads."""
    x, out = x.contiguous(), large_empty_like(x)
    addresses = [t.data_ptr() for t in (x, out, *places)] + [0] * (2 - len(places))
    block = np.array([0, size, x.numel(), seed, round(p * 2**32), *addresses, 0], np.int64)
    block.view(np.float64)[SCALE] = 1 / (1 - p)
    run(task(name, np.float64 if x.dtype == torch.float64 else np.float32), block)
    return out


@njit(inline="always")
def mix(h):
    """Mix the bits of a 32-bit number, one to one.

    Two rounds of xor-shift and multiply with the constants of "lowbias32" from Chris Wellons'
    hash prospector, a search for multipliers of low bias.
    """
    h ^= h >> np.uint32(16)
    h = np.uint32(h * np.uint32(0x7FEB352D))
    h ^= h >> np.uint32(15)
    h = np.uint32(h * np.uint32(0x846CA68B))
    return h ^ (h >> np.uint32(16))


@njit(inline="always")
def seeds_of(seed, piece):
    """Return the pair of seeds of a piece, by one step of SplitMix64."""
    seeds = mix_long(np.uint64(seed) + np.uint64(piece + 1) * np.uint64(0x9E3779B97F4A7C15))
    return np.uint32(seeds), np.uint32(seeds >> np.uint64(32))


@njit(inline="always")
def hashed(place, first, second):
    """Return the number that decides about an element, from its place in a piece."""
    return mix(np.uint32(mix(np.uint32(np.uint32(place) + first)) + second))


@functools.cache
def task(name: str, real: Any) -> Any:
    """Return one task, compiled for one type of features."""
    return compiled(kernels(real)[name], cache=KEPT)


def kernels(real: Any) -> dict[str, Any]:
    """Return the tasks for one type of features."""

    def drop(block):
        slots = carray(block, SLOTS, np.int64)
        size, threshold = slots[SIZE], np.uint32(slots[THRESHOLD])
        scale = real(carray(block, SLOTS, np.float64)[SCALE])
        x, out = carray(pointer(slots[X]), size, real), carray(pointer(slots[OUT]), size, real)
        piece = draw_ticket(block)
        while piece * PIECE < size:
            source = x[piece * PIECE : (piece + 1) * PIECE]
            target = out[piece * PIECE : (piece + 1) * PIECE]
            first, second = seeds_of(slots[SEED], piece)
            for k in range(len(source)):
                kept = hashed(k, first, second) >= threshold
                target[k] = source[k] * scale if kept else real(0)
            piece = draw_ticket(block)

    def drop_rows(block):
        slots = carray(block, SLOTS, np.int64)
        rows, threshold = slots[SIZE], np.uint32(slots[THRESHOLD])
        scale = real(carray(block, SLOTS, np.float64)[SCALE])
        x = carray(pointer(slots[X]), slots[ENTRIES], real)
        out = carray(pointer(slots[OUT]), slots[ENTRIES], real)
        start = carray(pointer(slots[START]), rows, np.int64)
        offset = carray(pointer(slots[OFFSET]), rows + 1, np.int64)
        group = draw_ticket(block)
        while group * ROWS < rows:
            for row in range(group * ROWS, min((group + 1) * ROWS, rows)):
                piece, first, second = np.int64(-1), np.uint32(0), np.uint32(0)
                for e in range(offset[row], offset[row + 1]):
                    place = start[row] + e - offset[row]
                    if place // PIECE != piece:
                        piece = place // PIECE
                        first, second = seeds_of(slots[SEED], piece)
                    kept = hashed(place % PIECE, first, second) >= threshold
                    out[e] = x[e] * scale if kept else real(0)
            group = draw_ticket(block)

    return {"drop": drop, "drop_rows": drop_rows}
