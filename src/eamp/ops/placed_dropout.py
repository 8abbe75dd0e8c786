"""Dropout of some rows of a larger matrix: every element is dropped where it would be dropped there.

A process that holds a part of a graph has some rows of an embedding. The mask of :mod:`eamp.ops.dropout` is a function of a seed and of
an element's place; with the place that the element has in the whole embedding, training on parts drops what training in one process drops.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray, cfunc
from torch import Tensor

from eamp.ops import part
from eamp.ops.backends.numba_cpu.threads import draw_ticket, pointer, run
from eamp.ops.dropout import PIECE, hashed, seeds_of
from eamp.ops.memory import large_empty_like
from eamp.ops.operator import like_first, operator

ROWS = 64  # that a thread takes at a time
TICKET, SIZE, ENTRIES, SEED, THRESHOLD, X, OUT, START, OFFSET, SCALE, SLOTS = range(11)


class Places(NamedTuple):
    """Where rows come from.

    Attributes:
        nodes: ``[n]``, their numbers in the whole embedding.
        entries: ``[n]``, where their entries begin among all of the whole's sparse features, if those are sparse.
    """

    nodes: Tensor
    entries: Tensor | None = None


@contextmanager
def placed(places: Places) -> Iterator[None]:
    """Take what is dropped inside for rows at ``places``."""
    previous, part.places = part.places, places
    try:
        yield
    finally:
        part.places = previous


def dropout_of_rows(x: Tensor, p: float, places: Places) -> Tensor:
    """:func:`eamp.ops.dropout.dropout` of rows of a larger matrix, dense or sparse."""
    if (
        x.dim() != 2
        or x.size(0) != places.nodes.numel()
        or x.dtype not in (torch.float32, torch.float64)
    ):
        raise part.not_for_parts(
            f"dropout of a tensor of shape {list(x.shape)} and type {x.dtype}, which is no embedding of the part,"
        )
    seed = torch.randint(2**62, ())
    if x.layout == torch.sparse_csr:
        if places.entries is None:
            raise part.not_for_parts("dropout of sparse features that came from elsewhere")
        values = _dropout_rows(x.values(), seed, p, places.entries, x.crow_indices().long())
        return torch.sparse_csr_tensor(
            x.crow_indices(), x.col_indices(), values, x.shape, check_invariants=False
        )
    offset = torch.arange(x.size(0) + 1) * x.size(1)
    return _dropout_rows(x, seed, p, places.nodes * x.size(1), offset)


@operator("eamp::dropout_rows", like_first)
def _dropout_rows(x: Tensor, seed: Tensor, p: float, start: Tensor, offset: Tensor) -> Tensor:
    x, start, offset, out = (
        x.contiguous(),
        start.contiguous(),
        offset.contiguous(),
        large_empty_like(x),
    )
    addresses = [tensor.data_ptr() for tensor in (x, out, start, offset)]
    block = np.array(
        [0, start.numel(), x.numel(), seed.item(), round(p * 2**32), *addresses, 0], np.int64
    )
    block.view(np.float64)[SCALE] = 1 / (1 - p)
    run(task(np.float64 if x.dtype == torch.float64 else np.float32), block)
    return out


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, seed, ctx.p, start, offset = inputs
    ctx.save_for_backward(seed, start, offset)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    seed, start, offset = ctx.saved_tensors
    return _dropout_rows(grad, seed, ctx.p, start, offset), None, None, None, None


_dropout_rows.differentiated(_backward, _save)


@functools.cache
def task(real: Any) -> Any:
    """Compiled for one type of features; threads share out the rows."""

    @cfunc("void(voidptr)", cache=True)
    def drop(block):  # type: ignore[no-untyped-def]  # the types of compiled functions are Numba's business
        slots = carray(block, SLOTS, np.int64)
        rows, threshold = slots[SIZE], np.uint32(slots[THRESHOLD])
        scale = real(carray(block, SLOTS, np.float64)[SCALE])
        x, out = (
            carray(pointer(slots[X]), slots[ENTRIES], real),
            carray(pointer(slots[OUT]), slots[ENTRIES], real),
        )
        start, offset = (
            carray(pointer(slots[START]), rows, np.int64),
            carray(pointer(slots[OFFSET]), rows + 1, np.int64),
        )
        group = draw_ticket(block)
        while group * ROWS < rows:
            for row in range(group * ROWS, min((group + 1) * ROWS, rows)):
                piece, first, second = np.int64(-1), np.uint32(0), np.uint32(0)
                for e in range(offset[row], offset[row + 1]):
                    place = start[row] + e - offset[row]
                    if place // PIECE != piece:
                        piece = place // PIECE
                        first, second = seeds_of(slots[SEED], piece)
                    out[e] = (
                        x[e] * scale
                        if hashed(place % PIECE, first, second) >= threshold
                        else real(0)
                    )
            group = draw_ticket(block)

    return drop
