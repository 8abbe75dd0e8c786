"""The CPU kernels over edges: energies, and what the entropy step makes of them.

Differences are taken before anything is summed, so the result is exact however far the embedding
has collapsed. Each product of differences belongs to both ends of its edge: it is computed at the
end of the lower number and carried to the other through ``reverse``, which saves half the reading.
Neighbours of higher numbers are the last of a row, so that the processor predicts every branch.
"""

from typing import Any

import numpy as np
from numba import carray

from eamp.ops.backends.numba_cpu.block import (
    COL,
    EDGES,
    ENERGY,
    FACTOR,
    FEATURES,
    NODES,
    PARTS,
    PER_EDGE,
    PER_NODE,
    REVERSE,
    ROWPTR,
    SCALE,
    SLOTS,
    TEMPERATURE,
    WEIGHT,
    Q,
    R,
    X,
    Y,
)
from eamp.ops.backends.numba_cpu.rows import edge_term, first_row, over_temperature
from eamp.ops.backends.numba_cpu.threads import draw_ticket, pointer


def edge_kernels(real: Any, index: Any) -> dict[str, Any]:
    """Return the tasks that read edges, for one type of features and one of indices."""

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
                    total += edge_term(per_edge, weight, weighted, e)
                out[i] = total
            part = draw_ticket(block)

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
                    total += edge_term(per_edge, weight, weighted, e)
                energy[i] = c[i] * (total * real(0.5))
                ratio = over_temperature(energy[i], temperature)
                q[i] = factor * c[i] * np.exp(-ratio) * (real(1) - ratio)
            part = draw_ticket(block)

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
                    grad_q += edge_term(per_edge, weight, weighted, e)
                ratio = over_temperature(energy[i], temperature)
                cp = factor * c[i] * np.exp(-ratio)
                # 0 where p is, however large the products of differences are.
                slope = grad_q * cp * (real(2) - ratio) / temperature if cp != 0 else real(0)
                q[i] = cp * (real(1) - ratio)
                r[i] = c[i] * (per_node[i] - slope)
                per_node[i] = slope * ratio
            part = draw_ticket(block)

    return {task.__name__: task for task in (squared, inner, row_sums, drive, drive_backward)}
