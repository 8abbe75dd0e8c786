"""Functions of one row or edge, which LLVM inlines into the tasks."""

from typing import Any

from numba import njit

from eamp.graph.compiled_code import KEPT
from eamp.ops.boltzmann import VANISHED

# Sums may be reordered and contracted into fused multiply-adds, which lets them vectorise. NaN and
# infinity keep their meaning. Division by zero does not raise. Compiled code is kept on disk.
OPTIONS: dict[str, Any] = {
    "cache": KEPT,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
# These functions are called by compiled code alone.
INNER = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@njit(**INNER)
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


@njit(**INNER)
def over_temperature(energy, temperature):
    """Return E/T, at most :data:`eamp.ops.boltzmann.VANISHED` unless T is 0; NaN stays NaN."""
    ratio = energy / temperature
    return type(ratio)(VANISHED) if ratio > VANISHED and temperature > 0 else ratio


@njit(**INNER)
def edge_term(per_edge, weight, weighted, e):
    """Return a_ij v_ij, which is 0 for an edge of weight 0, however large v_ij is."""
    if not weighted:
        return per_edge[e]
    return weight[e] * per_edge[e] if weight[e] != 0 else weight[e]


@njit(**INNER)
def edge_factor(q, weight, weighted, i, j, e):
    """Return a_ij (q_i + q_j)."""
    return (q[i] + q[j]) * weight[e] if weighted else q[i] + q[j]


@njit(**INNER)
def neighbour_factor(r, weight, weighted, j, e):
    """Return a_ij r_j."""
    return r[j] * weight[e] if weighted else r[j]
