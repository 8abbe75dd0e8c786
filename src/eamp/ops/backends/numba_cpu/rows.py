"""Sums over the neighbours of one row, inlined into the tasks of :mod:`.kernels`.

Neighbours are taken four at a time, so that the row of sums is read and written once for all of
them. Those that do not make up four come first, together with the value that the row starts from:
most rows of a sparse graph are then written once or twice. All of it is inlined, because a call
would cost more than the row of a sparse graph.
"""

from typing import Any

from numba import njit

from eamp.ops.boltzmann import VANISHED

# Sums may be reordered and contracted into fused multiply-adds, which lets them vectorise. NaN and
# infinity keep their meaning. Division by zero does not raise. Compiled code is kept on disk.
OPTIONS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}


@njit(**OPTIONS)
def first_row(rowptr, part, parts):
    """Return the first row of part ``part`` of ``parts``, split evenly by edges plus rows."""
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
def over_temperature(energy, temperature):
    """Return E/T, at most :data:`eamp.ops.boltzmann.VANISHED` unless T is 0; NaN stays NaN."""
    ratio = energy / temperature
    return type(ratio)(VANISHED) if ratio > VANISHED and temperature > 0 else ratio


@njit(**OPTIONS)
def edge_factor(q, weight, weighted, i, j, e):
    """Return a_ij (q_i + q_j)."""
    return (q[i] + q[j]) * weight[e] if weighted else q[i] + q[j]


@njit(**OPTIONS)
def neighbour_factor(r, weight, weighted, j, e):
    """Return a_ij r_j."""
    return r[j] * weight[e] if weighted else r[j]


@njit(inline="always", **OPTIONS)
def set_differences(out, q, x, col, weight, weighted, i, e, end):
    """Set out_i = Σ_j a_ij (q_i + q_j)(x_i − x_j) over the entries from e to end."""
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
    """Add Σ_j a_ij (q_i + q_j)(x_i − x_j) over the entries from e to end to out_i."""
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
    """Set out_i = w x_s + l_i Σ_j a_ij r_j x_j over the entries from e to end."""
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
