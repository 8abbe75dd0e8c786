"""The CPU kernels, compiled by Numba: tasks that share out the rows of a CSR graph, without an [edges × features] tensor.

Differences are taken before anything is summed, so the result is exact however far the embedding has collapsed. Each
product of differences belongs to both ends of its edge: it is computed once, at the end of the lower number, and carried to the other
through ``reverse`` as a single number per edge, which saves half the reading of that pass. The neighbours of higher numbers are the last of
a row, so that there is nothing to guess for the processor, and two of them share the reading of the row.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import carray, cfunc, njit

from eamp.ops.backends.numba_cpu.threads import draw_ticket, pointer

# Sums may be reordered and contracted into fused multiply-adds, which is what lets them vectorise; NaN and infinity
# keep their meaning, and so does division by zero (nobody would catch an exception). Compiled code is kept on disk.
OPTIONS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}

# The block of 64-bit numbers that a task reads: counts, then addresses (0 where a task has no use for one), then two reals.
TICKET, PARTS, NODES, FEATURES, EDGES, *_addresses = range(26)
(
    ROWPTR,
    COL,
    REVERSE,
    WEIGHT,
    Q,
    R,
    X,
    Y,
    PER_EDGE,
    PER_NODE,
    SCALE,
    ENERGY,
    OUT,
    BASE,
    UNIT,
    BIAS,
    *_options,
) = _addresses
FLAG, CUT, TEMPERATURE, FACTOR, SLOTS = _options


@njit(**OPTIONS)
def first_row(rowptr, part, parts):
    """Where part ``part`` of ``parts`` begins, if rows are split evenly by edges plus rows."""
    n = len(rowptr) - 1
    target = (rowptr[n] + n) * part // parts
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if rowptr[middle] + middle < target:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**OPTIONS)
def edge_factor(q, weight, weighted, i, j, e):
    """a_ij (q_i + q_j)"""
    return (q[i] + q[j]) * weight[e] if weighted else q[i] + q[j]


@njit(**OPTIONS)
def neighbour_factor(r, weight, weighted, j, e):
    """a_ij r_j"""
    return r[j] * weight[e] if weighted else r[j]


# Neighbours are taken four at a time, so that the row of sums is read and written once for all of them. Those that do not make up four come
# first, together with what the row starts from: most rows of a sparse graph are then written once or twice. All of this is inlined: a call
# would cost more than the row of a sparse graph.


@njit(inline="always", **OPTIONS)
def set_differences(out, q, x, col, weight, weighted, i, e, end):
    """out_i = Σ_j a_ij (q_i + q_j)(x_i − x_j) over the entries from e to end"""
    features, odd = x.shape[1], (end - e) % 4
    if odd == 0:
        for f in range(features):
            out[i, f] = 0
    elif odd == 1:
        j0, w0 = col[e], edge_factor(q, weight, weighted, i, col[e], e)
        for f in range(features):
            out[i, f] = w0 * (x[i, f] - x[j0, f])
    else:
        j0, w0 = col[e], edge_factor(q, weight, weighted, i, col[e], e)
        j1, w1 = col[e + 1], edge_factor(q, weight, weighted, i, col[e + 1], e + 1)
        if odd == 2:
            for f in range(features):
                out[i, f] = w0 * (x[i, f] - x[j0, f]) + w1 * (x[i, f] - x[j1, f])
        else:
            j2, w2 = col[e + 2], edge_factor(q, weight, weighted, i, col[e + 2], e + 2)
            for f in range(features):
                out[i, f] = (
                    w0 * (x[i, f] - x[j0, f])
                    + w1 * (x[i, f] - x[j1, f])
                    + w2 * (x[i, f] - x[j2, f])
                )
    add_differences(out, q, x, col, weight, weighted, i, e + odd, end)


@njit(inline="always", **OPTIONS)
def add_differences(out, q, x, col, weight, weighted, i, e, end):
    """out_i += Σ_j a_ij (q_i + q_j)(x_i − x_j) over the entries from e to end"""
    features = x.shape[1]
    while e + 4 <= end:
        j0, j1, j2, j3 = col[e], col[e + 1], col[e + 2], col[e + 3]
        w0, w1 = (
            edge_factor(q, weight, weighted, i, j0, e),
            edge_factor(q, weight, weighted, i, j1, e + 1),
        )
        w2, w3 = (
            edge_factor(q, weight, weighted, i, j2, e + 2),
            edge_factor(q, weight, weighted, i, j3, e + 3),
        )
        for f in range(features):
            near = w0 * (x[i, f] - x[j0, f]) + w1 * (x[i, f] - x[j1, f])
            out[i, f] += near + w2 * (x[i, f] - x[j2, f]) + w3 * (x[i, f] - x[j3, f])
        e += 4
    while e < end:
        j0, w0 = col[e], edge_factor(q, weight, weighted, i, col[e], e)
        for f in range(features):
            out[i, f] += w0 * (x[i, f] - x[j0, f])
        e += 1


@njit(inline="always", **OPTIONS)
def set_neighbours(out, left, r, x, col, weight, weighted, s, w, i, e, end):
    """out_i = w x_s + l_i Σ_j a_ij r_j x_j over the entries from e to end"""
    features, odd = x.shape[1], (end - e) % 4
    if odd == 0:
        for f in range(features):
            out[i, f] = w * x[s, f]
    elif odd == 1:
        j0, w0 = col[e], left * neighbour_factor(r, weight, weighted, col[e], e)
        for f in range(features):
            out[i, f] = w * x[s, f] + w0 * x[j0, f]
    else:
        j0, w0 = col[e], left * neighbour_factor(r, weight, weighted, col[e], e)
        j1, w1 = col[e + 1], left * neighbour_factor(r, weight, weighted, col[e + 1], e + 1)
        if odd == 2:
            for f in range(features):
                out[i, f] = w * x[s, f] + w0 * x[j0, f] + w1 * x[j1, f]
        else:
            j2, w2 = col[e + 2], left * neighbour_factor(r, weight, weighted, col[e + 2], e + 2)
            for f in range(features):
                out[i, f] = w * x[s, f] + w0 * x[j0, f] + w1 * x[j1, f] + w2 * x[j2, f]
    e += odd
    while e < end:
        j0, j1, j2, j3 = col[e], col[e + 1], col[e + 2], col[e + 3]
        w0, w1 = (
            left * neighbour_factor(r, weight, weighted, j0, e),
            left * neighbour_factor(r, weight, weighted, j1, e + 1),
        )
        w2, w3 = (
            left * neighbour_factor(r, weight, weighted, j2, e + 2),
            left * neighbour_factor(r, weight, weighted, j3, e + 3),
        )
        for f in range(features):
            out[i, f] += w0 * x[j0, f] + w1 * x[j1, f] + w2 * x[j2, f] + w3 * x[j3, f]
        e += 4


@njit(inline="always", **OPTIONS)
def cut_off(out, i):
    """The positive part of a row; what is no number stays none."""
    for f in range(out.shape[1]):
        out[i, f] = 0 if out[i, f] < 0 else out[i, f]


@functools.cache
def tasks(real: Any, index: Any) -> dict[str, Any]:
    """The tasks, compiled for one type of features and one of indices."""

    @cfunc("void(voidptr)", **OPTIONS)
    def squared(block):
        """per_edge[e] = ‖x_i − x_j‖²"""
        slots = carray(block, SLOTS, np.int64)
        parts, n, features, m = slots[PARTS], slots[NODES], slots[FEATURES], slots[EDGES]
        rowptr = carray(pointer(slots[ROWPTR]), n + 1, index)
        col = carray(pointer(slots[COL]), m, index)
        reverse = carray(pointer(slots[REVERSE]), m, index)
        x = carray(pointer(slots[X]), (n, features), real)
        per_edge = carray(pointer(slots[PER_EDGE]), m, real)
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                first, e = rowptr[i], rowptr[i + 1] - 1
                while e > first and col[e - 1] > i:
                    j0, j1 = col[e], col[e - 1]
                    total0, total1 = real(0), real(0)
                    for f in range(features):
                        d0, d1 = x[i, f] - x[j0, f], x[i, f] - x[j1, f]
                        total0 += d0 * d0
                        total1 += d1 * d1
                    per_edge[e], per_edge[e - 1] = total0, total1
                    per_edge[reverse[e]], per_edge[reverse[e - 1]] = total0, total1
                    e -= 2
                if e >= first and col[e] > i:
                    j0 = col[e]
                    total0 = real(0)
                    for f in range(features):
                        d0 = x[i, f] - x[j0, f]
                        total0 += d0 * d0
                    per_edge[e] = per_edge[reverse[e]] = total0
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def inner(block):
        """per_edge[e] = (x_i − x_j)·(y_i − y_j)"""
        slots = carray(block, SLOTS, np.int64)
        parts, n, features, m = slots[PARTS], slots[NODES], slots[FEATURES], slots[EDGES]
        rowptr = carray(pointer(slots[ROWPTR]), n + 1, index)
        col = carray(pointer(slots[COL]), m, index)
        reverse = carray(pointer(slots[REVERSE]), m, index)
        x = carray(pointer(slots[X]), (n, features), real)
        y = carray(pointer(slots[Y]), (n, features), real)
        per_edge = carray(pointer(slots[PER_EDGE]), m, real)
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                first, e = rowptr[i], rowptr[i + 1] - 1
                while e > first and col[e - 1] > i:
                    j0, j1 = col[e], col[e - 1]
                    total0, total1 = real(0), real(0)
                    for f in range(features):
                        total0 += (x[i, f] - x[j0, f]) * (y[i, f] - y[j0, f])
                        total1 += (x[i, f] - x[j1, f]) * (y[i, f] - y[j1, f])
                    per_edge[e], per_edge[e - 1] = total0, total1
                    per_edge[reverse[e]], per_edge[reverse[e - 1]] = total0, total1
                    e -= 2
                if e >= first and col[e] > i:
                    j0 = col[e]
                    total0 = real(0)
                    for f in range(features):
                        total0 += (x[i, f] - x[j0, f]) * (y[i, f] - y[j0, f])
                    per_edge[e] = per_edge[reverse[e]] = total0
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def row_sums(block):
        """out_i = Σ_e a_e per_edge[e] over the edges of row i"""
        slots = carray(block, SLOTS, np.int64)
        parts, n, m = slots[PARTS], slots[NODES], slots[EDGES]
        rowptr = carray(pointer(slots[ROWPTR]), n + 1, index)
        weighted = slots[WEIGHT] != 0
        weight = carray(pointer(slots[WEIGHT]), m, real)
        per_edge = carray(pointer(slots[PER_EDGE]), m, real)
        out = carray(pointer(slots[PER_NODE]), n, real)
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                total = real(0)
                for e in range(rowptr[i], rowptr[i + 1]):
                    total += weight[e] * per_edge[e] if weighted else per_edge[e]
                out[i] = total
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def drive(block):
        """E_i = C_i/2 Σ_e a_e per_edge[e], into per_node, and q_i = γ C_i e^{−E_i/T} (1 − E_i/T), with C_i in scale"""
        slots, reals = carray(block, SLOTS, np.int64), carray(block, SLOTS, np.float64)
        temperature, factor = real(reals[TEMPERATURE]), real(reals[FACTOR])
        parts, n, m = slots[PARTS], slots[NODES], slots[EDGES]
        rowptr = carray(pointer(slots[ROWPTR]), n + 1, index)
        weighted = slots[WEIGHT] != 0
        weight = carray(pointer(slots[WEIGHT]), m, real)
        per_edge = carray(pointer(slots[PER_EDGE]), m, real)
        c, q = carray(pointer(slots[SCALE]), n, real), carray(pointer(slots[Q]), n, real)
        energy = carray(pointer(slots[PER_NODE]), n, real)
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                total = real(0)
                for e in range(rowptr[i], rowptr[i + 1]):
                    total += weight[e] * per_edge[e] if weighted else per_edge[e]
                energy[i] = c[i] * (total * real(0.5))
                ratio = energy[i] / temperature
                q[i] = factor * c[i] * np.exp(-ratio) * (real(1) - ratio)
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def drive_backward(block):
        """From the inner products I(x, G) in per_edge and ∂/∂E in per_node, the q and r of ∂x = W(q, G) + W(r, x), and into per_node
        what each node adds to ∂T; the formulas are in the README beside this file
        """
        slots, reals = carray(block, SLOTS, np.int64), carray(block, SLOTS, np.float64)
        temperature, factor = real(reals[TEMPERATURE]), real(reals[FACTOR])
        parts, n, m = slots[PARTS], slots[NODES], slots[EDGES]
        rowptr = carray(pointer(slots[ROWPTR]), n + 1, index)
        weighted = slots[WEIGHT] != 0
        weight = carray(pointer(slots[WEIGHT]), m, real)
        per_edge = carray(pointer(slots[PER_EDGE]), m, real)
        q, r = carray(pointer(slots[Q]), n, real), carray(pointer(slots[R]), n, real)
        c, energy = carray(pointer(slots[SCALE]), n, real), carray(pointer(slots[ENERGY]), n, real)
        per_node = carray(pointer(slots[PER_NODE]), n, real)
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                grad_q = real(0)
                for e in range(rowptr[i], rowptr[i + 1]):
                    grad_q += weight[e] * per_edge[e] if weighted else per_edge[e]
                ratio = energy[i] / temperature
                cp = factor * c[i] * np.exp(-ratio)
                slope = grad_q * cp * (real(2) - ratio) / temperature
                q[i] = cp * (real(1) - ratio)
                r[i] = c[i] * (per_node[i] - slope)
                per_node[i] = slope * ratio
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def enter(block):
        """out_i = u_i x_i and per_node_i = ‖x_i‖², with u in unit"""
        slots = carray(block, SLOTS, np.int64)
        parts, n, features = slots[PARTS], slots[NODES], slots[FEATURES]
        x, out = (
            carray(pointer(slots[X]), (n, features), real),
            carray(pointer(slots[OUT]), (n, features), real),
        )
        u, square = carray(pointer(slots[UNIT]), n, real), carray(pointer(slots[PER_NODE]), n, real)
        part = draw_ticket(block)
        while part < parts:
            for i in range(n * part // parts, n * (part + 1) // parts):
                total = real(0)
                for f in range(features):
                    total += x[i, f] * x[i, f]
                    out[i, f] = u[i] * x[i, f]
                square[i] = total
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def weighted(block):
        """out_i = Σ_j a_ij ((q_i + q_j)(x_i − x_j) + (r_i + r_j)(y_i − y_j)), the second summand only where there is a y.

        Where there is a base, base_i + u_i out_i, with u in unit where there is one; of that the positive part, if cut.
        """
        slots = carray(block, SLOTS, np.int64)
        parts, n, features, m = slots[PARTS], slots[NODES], slots[FEATURES], slots[EDGES]
        rowptr = carray(pointer(slots[ROWPTR]), n + 1, index)
        col = carray(pointer(slots[COL]), m, index)
        weighted = slots[WEIGHT] != 0
        weight = carray(pointer(slots[WEIGHT]), m, real)
        q, r = carray(pointer(slots[Q]), n, real), carray(pointer(slots[R]), n, real)
        x, y = (
            carray(pointer(slots[X]), (n, features), real),
            carray(pointer(slots[Y]), (n, features), real),
        )
        out, base = (
            carray(pointer(slots[OUT]), (n, features), real),
            carray(pointer(slots[BASE]), (n, features), real),
        )
        u = carray(pointer(slots[UNIT]), n, real)
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                set_differences(out, q, x, col, weight, weighted, i, rowptr[i], rowptr[i + 1])
                if slots[Y] != 0:
                    add_differences(out, r, y, col, weight, weighted, i, rowptr[i], rowptr[i + 1])
                if slots[BASE] != 0:
                    scale = u[i] if slots[UNIT] != 0 else real(1)
                    for f in range(features):
                        out[i, f] = base[i, f] + scale * out[i, f]
                    if slots[CUT] != 0:
                        cut_off(out, i)
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def neighbours(block):
        """out_i = (1 − γ) q_i (r_i x_i + Σ_j a_ij r_j x_j) + γ y_i + b, r_i x_i only with self-loops, y_i and the bias b only
        where there is one; of that the positive part, if cut
        """
        slots, reals = carray(block, SLOTS, np.int64), carray(block, SLOTS, np.float64)
        parts, n, features, m = slots[PARTS], slots[NODES], slots[FEATURES], slots[EDGES]
        rowptr = carray(pointer(slots[ROWPTR]), n + 1, index)
        col = carray(pointer(slots[COL]), m, index)
        weighted = slots[WEIGHT] != 0
        weight = carray(pointer(slots[WEIGHT]), m, real)
        q = carray(pointer(slots[Q]), n, real)
        r = carray(pointer(slots[R]), n, real)
        x, y = (
            carray(pointer(slots[X]), (n, features), real),
            carray(pointer(slots[Y]), (n, features), real),
        )
        out = carray(pointer(slots[OUT]), (n, features), real)
        bias = carray(pointer(slots[BIAS]), features, real)
        share = real(reals[FACTOR])
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                left, e, end = (real(1) - share) * q[i], rowptr[i], rowptr[i + 1]
                if slots[FLAG] != 0:
                    set_neighbours(
                        out, left, r, x, col, weight, weighted, i, left * r[i], i, e, end
                    )
                elif e < end:
                    w = left * neighbour_factor(r, weight, weighted, col[e], e)
                    set_neighbours(out, left, r, x, col, weight, weighted, col[e], w, i, e + 1, end)
                else:
                    for f in range(features):
                        out[i, f] = 0
                if slots[Y] != 0:
                    for f in range(features):
                        out[i, f] += share * y[i, f]
                if slots[BIAS] != 0:
                    for f in range(features):
                        out[i, f] += bias[f]
                if slots[CUT] != 0:
                    cut_off(out, i)
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def channel_products(block):
        """out_i = Σ_j a_ij (x_i − x_j) ⊙ (y_i ± y_j), with a plus where there is a flag"""
        slots = carray(block, SLOTS, np.int64)
        parts, n, features, m = slots[PARTS], slots[NODES], slots[FEATURES], slots[EDGES]
        rowptr = carray(pointer(slots[ROWPTR]), n + 1, index)
        col = carray(pointer(slots[COL]), m, index)
        weighted = slots[WEIGHT] != 0
        weight = carray(pointer(slots[WEIGHT]), m, real)
        x, y = (
            carray(pointer(slots[X]), (n, features), real),
            carray(pointer(slots[Y]), (n, features), real),
        )
        out = carray(pointer(slots[OUT]), (n, features), real)
        sign = real(1) if slots[FLAG] != 0 else real(-1)
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                for f in range(features):
                    out[i, f] = 0
                for e in range(rowptr[i], rowptr[i + 1]):
                    j, a = col[e], weight[e] if weighted else real(1)
                    for f in range(features):
                        out[i, f] += a * (x[i, f] - x[j, f]) * (y[i, f] + sign * y[j, f])
            part = draw_ticket(block)

    return {
        "squared": squared,
        "inner": inner,
        "row_sums": row_sums,
        "drive": drive,
        "enter": enter,
        "drive_backward": drive_backward,
        "weighted": weighted,
        "neighbours": neighbours,
        "channel_products": channel_products,
    }
