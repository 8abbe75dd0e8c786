"""Neighbour lists of an edge list by counting sort.

Every edge is put into the list of its column, and then, column after column, into the list of its
row. That leaves the columns of a row in ascending order. Beside the edge list itself it takes
8 bytes per entry and a few numbers per node; sorting 64-bit keys takes about fifty bytes per entry.
"""

from typing import Any, TypeAlias

import numpy as np
from numba import njit

from eamp.graph.compiled_code import KEPT

Indices: TypeAlias = np.ndarray[Any, Any]
OPTIONS: dict[str, Any] = {"cache": KEPT, "nogil": True}


def neighbour_lists(
    row: Indices, col: Indices, num_nodes: int, symmetrize: bool, index_type: Any
) -> tuple[Indices, Indices, Indices] | None:
    """Return ``rowptr``, ``col`` and ``reverse`` of a :class:`eamp.graph.CSR`.

    Self-loops and duplicates are left out. Indices must lie between 0 and ``num_nodes - 1``, which
    is not checked here.

    Returns:
        The three arrays, or ``None`` if the graph is directed.

    Example:
        >>> row, col = np.array([1, 0, 2, 1]), np.array([0, 1, 1, 2])
        >>> rowptr, col, reverse = neighbour_lists(row, col, 3, False, np.int32)
        >>> col
        array([1, 0, 2, 1], dtype=int32)
    """
    start = np.zeros(num_nodes + 1, index_type)
    count_columns(row, col, symmetrize, start)
    members = np.empty(start[-1], index_type)
    put_under_columns(row, col, symmetrize, start[:-1].copy(), members)
    rowptr = np.zeros(num_nodes + 1, index_type)
    count_rows(start, members, np.full(num_nodes, -1, index_type), rowptr)
    col = np.empty(rowptr[-1], index_type)
    put_under_rows(start, members, rowptr, rowptr[:-1].copy(), col)
    del start, members  # before the last array is made
    reverse = np.empty(col.size, index_type)
    undirected = find_opposites(rowptr, col, rowptr[:-1].copy(), reverse)
    return (rowptr, col, reverse) if undirected else None


@njit(**OPTIONS)
def add_up(counts):
    """Turn the counts of rows into the places where rows end, in place."""
    for i in range(1, counts.size):
        counts[i] += counts[i - 1]


@njit(**OPTIONS)
def mix_long(z):
    """Mix the bits of a 64-bit number, one to one, as SplitMix64 does (Steele et al., 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(**OPTIONS)
def count_columns(row, col, symmetrize, start):
    """Compute where the members of every column begin."""
    for e in range(row.size):
        if row[e] != col[e]:
            start[col[e] + 1] += 1
            if symmetrize:
                start[row[e] + 1] += 1
    add_up(start)


@njit(**OPTIONS)
def put_under_columns(row, col, symmetrize, place, members):
    """List the rows of every column, in any order."""
    for e in range(row.size):
        i, j = row[e], col[e]
        if i != j:
            members[place[j]] = i
            place[j] += 1
            if symmetrize:
                members[place[i]] = j
                place[i] += 1


@njit(**OPTIONS)
def count_rows(start, members, last, rowptr):
    """Compute where every row begins if it lists each column once.

    ``last`` holds the column that a row met last.
    """
    for j in range(start.size - 1):
        for p in range(start[j], start[j + 1]):
            i = members[p]
            if last[i] != j:
                last[i] = j
                rowptr[i + 1] += 1
    add_up(rowptr)


@njit(**OPTIONS)
def put_under_rows(start, members, rowptr, place, out):
    """List the columns of every row, ascending because columns are visited in order."""
    for j in range(start.size - 1):
        for p in range(start[j], start[j + 1]):
            i = members[p]
            if place[i] == rowptr[i] or out[place[i] - 1] != j:
                out[place[i]] = j
                place[i] += 1


@njit(**OPTIONS)
def find_opposites(rowptr, col, place, reverse):
    """Find the entry (j, i) of every entry (i, j); return whether each has one.

    Rows are visited in order, so they meet the entries of row j in the order in which they lie
    there.
    """
    for i in range(rowptr.size - 1):
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            p = place[j]
            if p == rowptr[j + 1] or col[p] != i:
                return False
            reverse[e] = p
            place[j] = p + 1
    return True
