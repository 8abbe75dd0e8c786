"""The CPU kernels that write a row of features for every node.

Neighbours are taken four at a time, so that the row of sums is read and written once for all of
them. Those that do not make up four come first, together with the value that the row starts from:
most rows of a sparse graph are then written once or twice.
"""

from typing import Any

import numpy as np
from numba import carray

from eamp.ops.backends.numba_cpu.block import (
    BASE,
    BIAS,
    COL,
    EDGES,
    FACTOR,
    FEATURES,
    FLAG,
    NODES,
    OUT,
    PARTS,
    PER_NODE,
    ROWPTR,
    SLOTS,
    UNIT,
    WEIGHT,
    Q,
    R,
    X,
    Y,
)
from eamp.ops.backends.numba_cpu.rows import edge_factor, first_row, neighbour_factor
from eamp.ops.backends.numba_cpu.threads import draw_ticket, pointer


def row_kernels(real: Any, index: Any) -> dict[str, Any]:
    """Return the tasks that write rows, for one type of features and one of indices."""

    def enter(block):
        """Set out_i = u_i x_i and per_node_i = ‖x_i‖², with u in unit."""
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

    def weighted(block):
        """Set out_i = Σ_j a_ij (q_i + q_j)(x_i − x_j).

        If base is given, the result is base_i + u_i out_i, with u in unit, or 1.
        """
        slots = carray(block, SLOTS, np.int64)
        parts, n, features, m = slots[PARTS], slots[NODES], slots[FEATURES], slots[EDGES]
        rowptr = carray(pointer(slots[ROWPTR]), n + 1, index)
        col = carray(pointer(slots[COL]), m, index)
        weighted = slots[WEIGHT] != 0
        weight = carray(pointer(slots[WEIGHT]), m, real)
        q, u = carray(pointer(slots[Q]), n, real), carray(pointer(slots[UNIT]), n, real)
        x = carray(pointer(slots[X]), (n, features), real)
        out = carray(pointer(slots[OUT]), (n, features), real)
        base = carray(pointer(slots[BASE]), (n, features), real)
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                e, end = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
                odd = (end - e) % 4
                if odd == 0:
                    for f in range(features):
                        out[i, f] = 0
                else:
                    j0, w0 = col[e], edge_factor(q, weight, weighted, i, col[e], e)
                    if odd == 1:
                        for f in range(features):
                            out[i, f] = w0 * (x[i, f] - x[j0, f])
                    else:
                        e1 = e + 1
                        j1, w1 = col[e1], edge_factor(q, weight, weighted, i, col[e1], e1)
                        if odd == 2:
                            for f in range(features):
                                near = w0 * (x[i, f] - x[j0, f])
                                out[i, f] = near + w1 * (x[i, f] - x[j1, f])
                        else:
                            e2 = e + 2
                            j2, w2 = col[e2], edge_factor(q, weight, weighted, i, col[e2], e2)
                            for f in range(features):
                                near = w0 * (x[i, f] - x[j0, f]) + w1 * (x[i, f] - x[j1, f])
                                out[i, f] = near + w2 * (x[i, f] - x[j2, f])
                e += odd
                while e < end:
                    j0, j1, j2, j3 = col[e], col[e + 1], col[e + 2], col[e + 3]
                    w0 = edge_factor(q, weight, weighted, i, j0, e)
                    w1 = edge_factor(q, weight, weighted, i, j1, e + 1)
                    w2 = edge_factor(q, weight, weighted, i, j2, e + 2)
                    w3 = edge_factor(q, weight, weighted, i, j3, e + 3)
                    for f in range(features):
                        near = w0 * (x[i, f] - x[j0, f]) + w1 * (x[i, f] - x[j1, f])
                        out[i, f] += near + w2 * (x[i, f] - x[j2, f]) + w3 * (x[i, f] - x[j3, f])
                    e += 4
                if slots[BASE] != 0:
                    scale = u[i] if slots[UNIT] != 0 else real(1)
                    for f in range(features):
                        out[i, f] = base[i, f] + scale * out[i, f]
            part = draw_ticket(block)

    def weighted_pair(block):
        """Set out_i = Σ_j a_ij ((q_i + q_j)(x_i − x_j) + (r_i + r_j)(y_i − y_j))."""
        slots = carray(block, SLOTS, np.int64)
        parts, n, features, m = slots[PARTS], slots[NODES], slots[FEATURES], slots[EDGES]
        rowptr = carray(pointer(slots[ROWPTR]), n + 1, index)
        col = carray(pointer(slots[COL]), m, index)
        weighted = slots[WEIGHT] != 0
        weight = carray(pointer(slots[WEIGHT]), m, real)
        q, r = carray(pointer(slots[Q]), n, real), carray(pointer(slots[R]), n, real)
        x = carray(pointer(slots[X]), (n, features), real)
        y = carray(pointer(slots[Y]), (n, features), real)
        out = carray(pointer(slots[OUT]), (n, features), real)
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                e, end = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
                odd = (end - e) % 2
                if odd == 0:
                    for f in range(features):
                        out[i, f] = 0
                else:
                    j0 = col[e]
                    w0 = edge_factor(q, weight, weighted, i, j0, e)
                    v0 = edge_factor(r, weight, weighted, i, j0, e)
                    for f in range(features):
                        out[i, f] = w0 * (x[i, f] - x[j0, f]) + v0 * (y[i, f] - y[j0, f])
                e += odd
                while e < end:
                    j0, j1 = col[e], col[e + 1]
                    w0 = edge_factor(q, weight, weighted, i, j0, e)
                    v0 = edge_factor(r, weight, weighted, i, j0, e)
                    w1 = edge_factor(q, weight, weighted, i, j1, e + 1)
                    v1 = edge_factor(r, weight, weighted, i, j1, e + 1)
                    for f in range(features):
                        near = w0 * (x[i, f] - x[j0, f]) + v0 * (y[i, f] - y[j0, f])
                        out[i, f] += near + w1 * (x[i, f] - x[j1, f]) + v1 * (y[i, f] - y[j1, f])
                    e += 2
            part = draw_ticket(block)

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
        x = carray(pointer(slots[X]), (n, features), real)
        y = carray(pointer(slots[Y]), (n, features), real)
        out = carray(pointer(slots[OUT]), (n, features), real)
        bias = carray(pointer(slots[BIAS]), features, real)
        share = real(reals[FACTOR])
        part = draw_ticket(block)
        while part < parts:
            for i in range(first_row(rowptr, part, parts), first_row(rowptr, part + 1, parts)):
                left = (real(1) - share) * q[i]
                e, end = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
                if slots[FLAG] == 0 and e == end:
                    for f in range(features):
                        out[i, f] = 0
                else:
                    # The row starts from w x_s: its own features, or those of its first neighbour.
                    s, w = i, left * r[i]
                    if slots[FLAG] == 0:
                        s = col[e]
                        w = left * neighbour_factor(r, weight, weighted, col[e], e)
                        e += 1
                    odd = (end - e) % 4
                    if odd == 0:
                        for f in range(features):
                            out[i, f] = w * x[s, f]
                    else:
                        j0, w0 = col[e], left * neighbour_factor(r, weight, weighted, col[e], e)
                        if odd == 1:
                            for f in range(features):
                                out[i, f] = w * x[s, f] + w0 * x[j0, f]
                        else:
                            j1 = col[e + 1]
                            w1 = left * neighbour_factor(r, weight, weighted, j1, e + 1)
                            if odd == 2:
                                for f in range(features):
                                    out[i, f] = w * x[s, f] + w0 * x[j0, f] + w1 * x[j1, f]
                            else:
                                j2 = col[e + 2]
                                w2 = left * neighbour_factor(r, weight, weighted, j2, e + 2)
                                for f in range(features):
                                    near = w * x[s, f] + w0 * x[j0, f]
                                    out[i, f] = near + w1 * x[j1, f] + w2 * x[j2, f]
                    e += odd
                    while e < end:
                        j0, j1, j2, j3 = col[e], col[e + 1], col[e + 2], col[e + 3]
                        w0 = left * neighbour_factor(r, weight, weighted, j0, e)
                        w1 = left * neighbour_factor(r, weight, weighted, j1, e + 1)
                        w2 = left * neighbour_factor(r, weight, weighted, j2, e + 2)
                        w3 = left * neighbour_factor(r, weight, weighted, j3, e + 3)
                        for f in range(features):
                            near = w0 * x[j0, f] + w1 * x[j1, f]
                            out[i, f] += near + w2 * x[j2, f] + w3 * x[j3, f]
                        e += 4
                if slots[Y] != 0:
                    for f in range(features):
                        out[i, f] += share * y[i, f]
                if slots[BIAS] != 0:
                    for f in range(features):
                        out[i, f] += bias[f]
            part = draw_ticket(block)

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

    return {
        task.__name__: task
        for task in (enter, weighted, weighted_pair, neighbours, channel_products)
    }
