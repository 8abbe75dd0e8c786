"""The CPU kernels, compiled by Numba: tasks that share out the rows of a CSR graph.

Differences are taken before anything is summed, so the result is exact however far the embedding
has collapsed. Each product of differences belongs to both ends of its edge: it is computed at the
end of the lower number and carried to the other through ``reverse``, which saves half the reading.
Neighbours of higher numbers are the last of a row, so that the processor predicts every branch.
"""

import functools
from typing import Any

import numpy as np
from numba import carray, cfunc

from eamp.ops.backends.numba_cpu.rows import (
    OPTIONS,
    add_differences,
    first_row,
    neighbour_factor,
    over_temperature,
    set_differences,
    set_neighbours,
)
from eamp.ops.backends.numba_cpu.threads import draw_ticket, pointer

# The block of 64-bit numbers that a task reads: counts, addresses (0 if not given), a flag, reals.
TICKET, PARTS, NODES, FEATURES, EDGES, *_addresses = range(25)
ROWPTR, COL, REVERSE, WEIGHT, Q, R, X, Y, PER_EDGE, *_more = _addresses
PER_NODE, SCALE, ENERGY, OUT, BASE, UNIT, BIAS, FLAG, TEMPERATURE, FACTOR, SLOTS = _more


@functools.cache
def tasks(real: Any, index: Any) -> dict[str, Any]:
    """Return the tasks, compiled for one type of features and one of indices."""

    @cfunc("void(voidptr)", **OPTIONS)
    def squared(block):
        """Set per_edge[e] = ‖x_i − x_j‖²."""
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
        """Set per_edge[e] = (x_i − x_j)·(y_i − y_j)."""
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
        """Set per_node_i = Σ_e a_e per_edge[e] over the edges of row i."""
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
        """Set E_i = C_i/2 Σ_e a_e per_edge[e] and q_i = γ C_i e^{−E_i/T} (1 − E_i/T).

        C is read from scale, and E is written to per_node.
        """
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
                ratio = over_temperature(energy[i], temperature)
                q[i] = factor * c[i] * np.exp(-ratio) * (real(1) - ratio)
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def drive_backward(block):
        """Set the q and r of ∂x = W(q, G) + W(r, x), and each node's share of ∂T.

        The products I(x, G) are read from per_edge and ∂/∂E from per_node, which the shares of ∂T
        replace. The README of ``ops`` derives the formulas.
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
                ratio = over_temperature(energy[i], temperature)
                cp = factor * c[i] * np.exp(-ratio)
                # 0 where p is, however large the products of differences are.
                slope = grad_q * cp * (real(2) - ratio) / temperature if cp != 0 else real(0)
                q[i] = cp * (real(1) - ratio)
                r[i] = c[i] * (per_node[i] - slope)
                per_node[i] = slope * ratio
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def enter(block):
        """Set out_i = u_i x_i and per_node_i = ‖x_i‖², with u in unit."""
        slots = carray(block, SLOTS, np.int64)
        parts, n, features = slots[PARTS], slots[NODES], slots[FEATURES]
        x = carray(pointer(slots[X]), (n, features), real)
        out = carray(pointer(slots[OUT]), (n, features), real)
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
        """Set out_i = Σ_j a_ij ((q_i + q_j)(x_i − x_j) + (r_i + r_j)(y_i − y_j)).

        The second summand is there if y is given. If base is given, the result is base_i + u_i
        out_i, with u in unit, or 1.
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
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def neighbours(block):
        """Set out_i = (1 − γ) q_i (r_i x_i + Σ_j a_ij r_j x_j) + γ y_i + b.

        r_i x_i is there if the flag is set, y and the bias b if they are given.
        """
        slots, reals = carray(block, SLOTS, np.int64), carray(block, SLOTS, np.float64)
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
            part = draw_ticket(block)

    @cfunc("void(voidptr)", **OPTIONS)
    def channel_products(block):
        """Set out_i = Σ_j a_ij (x_i − x_j) ⊙ (y_i ± y_j), with a plus if the flag is set."""
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

    per_row = (row_sums, drive, drive_backward, enter, weighted, neighbours, channel_products)
    return {task.__name__: task for task in (squared, inner, *per_row)}
