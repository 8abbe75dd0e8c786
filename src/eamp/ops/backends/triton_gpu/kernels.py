"""The GPU kernels in Triton: one program for each row of a graph and each block of features.

A program goes over the edges of its row with a tile of ``EDGES × FEATURES`` numbers, adds up in
every place of the tile by itself, and adds the places together at the end. So nothing is written by
two programs, no atomic addition is needed, and the same sum comes out each time. Differences are
taken before anything is summed, in the type of the output, whatever the types of the operands.

An operand that is not given is ``None``, which Triton knows when it compiles. Numbers of rows and
edges are 64 bits wide here: a row's number times the features, or an edge's plus a tile, may be
past what the graph's own type of indices can hold.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def features_here(features, FEATURES: tl.constexpr):
    """Return the features of this program, ``[1, FEATURES]``, and a mask of those that exist."""
    f = (tl.program_id(1) * FEATURES + tl.arange(0, FEATURES))[None, :]
    return f, f < features


@triton.jit
def row_bounds(rowptr, i):
    """Return where the edges of row i begin and end."""
    return tl.load(rowptr + i).to(tl.int64), tl.load(rowptr + i + 1).to(tl.int64)


@triton.jit
def read(x, place, mask, real: tl.constexpr):
    """Return x at some places, and 0 where the mask is false."""
    return tl.load(x + place, mask=mask, other=0.0).to(real)


@triton.jit
def edges_from(first, end, col, weight, real: tl.constexpr, EDGES: tl.constexpr):
    """Return mask, other ends and weights of a tile's edges, each ``[EDGES, 1]``."""
    e = (first + tl.arange(0, EDGES))[:, None]
    there = e < end
    j = tl.load(col + e, mask=there, other=0).to(tl.int64)
    a = tl.full([EDGES, 1], 1.0, real) if weight is None else read(weight, e, there, real)
    return there & (a != 0), j, a  # an edge of weight 0 is no edge


@triton.jit
def inner(rowptr, col, weight, x, y, out, features, EDGES: tl.constexpr, FEATURES: tl.constexpr):
    """Set out_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j), with y = x if it is not given."""
    real: tl.constexpr = out.dtype.element_ty
    i = tl.program_id(0).to(tl.int64)
    begin, end = row_bounds(rowptr, i)
    total = tl.zeros([EDGES, FEATURES], real)
    for block in range(0, features, FEATURES):
        f = (block + tl.arange(0, FEATURES))[None, :]
        inside = f < features
        x_i = read(x, i * features + f, inside, real)
        if y is not None:
            y_i = read(y, i * features + f, inside, real)
        for first in range(begin, end, EDGES):
            there, j, a = edges_from(first, end, col, weight, real, EDGES)
            mask = there & inside
            d = x_i - read(x, j * features + f, mask, real)
            product = d * d if y is None else d * (y_i - read(y, j * features + f, mask, real))
            total += tl.where(mask, a * product, 0.0)
    tl.store(out + i, tl.sum(tl.sum(total, axis=1), axis=0))


@triton.jit
def weighted(
    rowptr, col, weight, q, x, r, y, out, features, EDGES: tl.constexpr, FEATURES: tl.constexpr
):
    """Set out_i = Σ_j a_ij (q_i + q_j)(x_i − x_j), plus the same of r and y if given."""
    real: tl.constexpr = out.dtype.element_ty
    i = tl.program_id(0).to(tl.int64)
    f, inside = features_here(features, FEATURES)
    x_i, q_i = read(x, i * features + f, inside, real), tl.load(q + i).to(real)
    if y is not None:
        y_i, r_i = read(y, i * features + f, inside, real), tl.load(r + i).to(real)
    begin, end = row_bounds(rowptr, i)
    total = tl.zeros([EDGES, FEATURES], real)
    for first in range(begin, end, EDGES):
        there, j, a = edges_from(first, end, col, weight, real, EDGES)
        mask = there & inside
        term = (q_i + read(q, j, there, real)) * (x_i - read(x, j * features + f, mask, real))
        if y is not None:
            term += (r_i + read(r, j, there, real)) * (y_i - read(y, j * features + f, mask, real))
        total += tl.where(mask, a * term, 0.0)
    tl.store(out + i * features + f, tl.sum(total, axis=0)[None, :], mask=inside)


@triton.jit
def neighbours(
    rowptr,
    col,
    weight,
    left,
    x,
    right,
    out,
    features,
    SELF_LOOPS: tl.constexpr,
    EDGES: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Set out_i = l_i (r_i x_i + Σ_j a_ij r_j x_j), r_i x_i only with SELF_LOOPS."""
    real: tl.constexpr = out.dtype.element_ty
    i = tl.program_id(0).to(tl.int64)
    f, inside = features_here(features, FEATURES)
    begin, end = row_bounds(rowptr, i)
    total = tl.zeros([EDGES, FEATURES], real)
    for first in range(begin, end, EDGES):
        there, j, a = edges_from(first, end, col, weight, real, EDGES)
        mask = there & inside
        total += tl.where(
            mask, a * read(right, j, there, real) * read(x, j * features + f, mask, real), 0.0
        )
    row = tl.sum(total, axis=0)[None, :]
    if SELF_LOOPS:
        row += tl.load(right + i).to(real) * read(x, i * features + f, inside, real)
    tl.store(out + i * features + f, tl.load(left + i).to(real) * row, mask=inside)


@triton.jit
def channels(
    rowptr,
    col,
    weight,
    x,
    y,
    out,
    features,
    ADD: tl.constexpr,
    EDGES: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Set out_i = Σ_j a_ij (x_i − x_j) ⊙ (y_i ± y_j), plus with ADD, y = x if not given."""
    real: tl.constexpr = out.dtype.element_ty
    i = tl.program_id(0).to(tl.int64)
    f, inside = features_here(features, FEATURES)
    x_i = read(x, i * features + f, inside, real)
    if y is not None:
        y_i = read(y, i * features + f, inside, real)
    begin, end = row_bounds(rowptr, i)
    total = tl.zeros([EDGES, FEATURES], real)
    for first in range(begin, end, EDGES):
        there, j, a = edges_from(first, end, col, weight, real, EDGES)
        mask = there & inside
        d = x_i - read(x, j * features + f, mask, real)
        if y is None:
            product = d * d
        else:
            y_j = read(y, j * features + f, mask, real)
            product = d * (y_i + y_j if ADD else y_i - y_j)
        total += tl.where(mask, a * product, 0.0)
    tl.store(out + i * features + f, tl.sum(total, axis=0)[None, :], mask=inside)
