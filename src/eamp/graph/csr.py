"""CSR building: sort, merge and check an edge list of an undirected graph."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eamp.graph.errors import GraphError

INT32_MAX = 2**31 - 1


class CSR(NamedTuple):
    """The arrays that the kernels read, as a plain tuple that ``torch.compile`` sees through.

    Attributes:
        rowptr: ``[n + 1]``; the neighbours of ``i`` are ``col[rowptr[i]:rowptr[i + 1]]``,
            ascending.
        col: ``[m]``, both directions of every edge.
        reverse: ``[m]``; entry ``reverse[e]`` is the other direction of entry ``e``.
        edge_weight: ``[m]``, or ``None`` if every weight is 1.

    In compiled code the last three may end in padding, past ``rowptr[-1]``: see :func:`unpadded`.
    """

    rowptr: Tensor
    col: Tensor
    reverse: Tensor
    edge_weight: Tensor | None


def build_csr(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int, symmetrize: bool = False
) -> CSR:
    """Sort, merge and check a ``[2, m]`` edge list."""
    check_range(edge_index, num_nodes)
    if edge_weight is None and edge_index.device.type == "cpu":
        csr = count_entries(edge_index, num_nodes, symmetrize)
        if csr is not None:
            return csr
    return sort_entries(edge_index, edge_weight, num_nodes, symmetrize)


def count_entries(edge_index: Tensor, num_nodes: int, symmetrize: bool) -> CSR | None:
    """Return the CSR of an unweighted edge list in little memory, or ``None`` if it is directed."""
    # Imported when a graph is built: Numba takes half a second to load.
    from eamp.graph.neighbour_lists import neighbour_lists

    row, col = (ends.contiguous().numpy() for ends in edge_index)
    index_type = index_type_of(edge_index.size(1) * (2 if symmetrize else 1), num_nodes)
    numpy_type = np.int32 if index_type is torch.int32 else np.int64
    lists = neighbour_lists(row, col, num_nodes, symmetrize, numpy_type)
    if lists is None:
        return None
    rowptr, neighbours, reverse = map(torch.from_numpy, lists)
    return CSR(rowptr, neighbours, reverse, None)


def index_type_of(entries: int, num_nodes: int) -> torch.dtype:
    """Return int32 where it can number all entries and nodes, else int64."""
    return torch.int32 if max(entries, num_nodes) <= INT32_MAX else torch.int64


def unpadded(csr: CSR) -> CSR:
    """Return the arrays without the padding past ``rowptr[-1]`` that compiled code has."""
    m = int(csr.rowptr[-1])
    if m == csr.col.numel():
        return csr
    weight = None if csr.edge_weight is None else csr.edge_weight[:m]
    return CSR(csr.rowptr, csr.col[:m], csr.reverse[:m], weight)


def rows_of_entries(csr: CSR) -> Tensor:
    """Return the row of every entry, ``[m]`` in int64, and n for padding."""
    ends = torch.cat([csr.rowptr, csr.rowptr.new_full((1,), csr.col.numel())])
    rows = torch.arange(csr.rowptr.numel(), device=csr.rowptr.device)
    return rows.repeat_interleave(ends.diff().long(), output_size=csr.col.numel())


def degrees(csr: CSR) -> Tensor:
    """Return k_i = Σ_j a_ij, ``[n]`` in float64."""
    if csr.edge_weight is None:
        return csr.rowptr.diff().double()
    zeros = csr.edge_weight.new_zeros(csr.rowptr.numel() - 1, dtype=torch.float64)
    return zeros.index_add_(0, rows_of_entries(csr), csr.edge_weight.double())


def sort_entries(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int, symmetrize: bool
) -> CSR:
    """Return the CSR of any edge list by sorting keys.

    Unlike :func:`count_entries` it takes weights and runs on any device, and its error says what
    is wrong with a directed graph.
    """
    row, col = edge_index.long()
    keep = row != col
    if not bool(keep.all()):
        row, col = row[keep], col[keep]
        edge_weight = None if edge_weight is None else edge_weight[keep]
    key, weight = merge(row * num_nodes + col, edge_weight, "sum")
    if symmetrize:
        mirrored = (key % max(num_nodes, 1)) * num_nodes + key // max(num_nodes, 1)
        weight = None if weight is None else torch.cat([weight, weight])
        key, weight = merge(torch.cat([key, mirrored]), weight, "mean")
    row, col = key // max(num_nodes, 1), key % max(num_nodes, 1)

    # Entry (i, j) sits where (j, i) would be looked up; where it does not, (j, i) is missing.
    wanted = col * num_nodes + row
    reverse = torch.searchsorted(key, wanted).clamp_(max=max(key.numel() - 1, 0))
    one_way = key[reverse] != wanted
    if bool(one_way.any()):
        first = int(one_way.nonzero()[0])
        i, j = int(row[first]), int(col[first])
        raise GraphError(
            f"the graph is directed: {int(one_way.sum())} of {key.numel()} edges have no opposite, "
            f"the first is {i} -> {j}. The energy is defined on undirected graphs: add the missing "
            "directions, or let eamp do it with Graph(edge_index, symmetrize=True) or "
            "EntropyAware(conv, symmetrize=True); data by name with undirected:<name>."
        )
    if weight is not None:
        weight = symmetric_weight(weight, reverse, row, col)
    counts = torch.bincount(row, minlength=num_nodes)
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    index_type = index_type_of(key.numel(), num_nodes)
    return CSR(rowptr.to(index_type), col.to(index_type), reverse.to(index_type), weight)


def merge(key: Tensor, weight: Tensor | None, reduce: str) -> tuple[Tensor, Tensor | None]:
    """Sort ``key`` and merge duplicates, adding or averaging their weights."""
    if key.numel() < 2 or bool((key[1:] > key[:-1]).all()):
        return key, weight  # already sorted and unique, as PyG's datasets come
    if weight is None:
        return torch.unique(key), None
    unique, position = torch.unique(key, return_inverse=True)
    merged = weight.new_zeros(unique.numel()).scatter_reduce_(
        0, position, weight, reduce, include_self=False
    )
    return unique, merged


def check_range(edge_index: Tensor, num_nodes: int) -> None:
    """Raise an error unless every end of an edge is a node."""
    if edge_index.numel() == 0:
        return
    lowest, highest = (int(bound) for bound in edge_index.aminmax())
    if lowest < 0:
        wrong, complaint, remedy = edge_index < 0, "negative", "node indices start at 0"
    elif highest >= num_nodes:
        wrong, complaint = edge_index >= num_nodes, f">= num_nodes = {num_nodes}"
        remedy = "pass the right num_nodes, or features with a row per node"
    else:
        return
    wrong = wrong.any(0)
    e = int(wrong.nonzero()[0])
    raise GraphError(
        f"edge_index has {int(wrong.sum())} of {edge_index.size(1)} edges with an index "
        f"{complaint}; the first is edge {e}, ({int(edge_index[0, e])}, {int(edge_index[1, e])}): "
        f"{remedy}."
    )


def symmetric_weight(weight: Tensor, reverse: Tensor, row: Tensor, col: Tensor) -> Tensor:
    """Check that weights are finite, non-negative and symmetric, and average their rounding."""
    bad = ~torch.isfinite(weight) | (weight < 0)
    if bool(bad.any()):
        e = int(bad.nonzero()[0])
        raise GraphError(
            f"edge weights must be finite and >= 0, but {int(bad.sum())} are not; the first is "
            f"{float(weight[e])} on edge {int(row[e])} -> {int(col[e])}."
        )
    opposite = weight[reverse]
    # 1e-5 is 80 times the rounding of float32: two directions computed in another order agree.
    unequal = ~torch.isclose(weight, opposite, rtol=1e-5, atol=0.0)
    if bool(unequal.any()):
        e = int(unequal.nonzero()[0])
        i, j = int(row[e]), int(col[e])
        raise GraphError(
            f"edge weights must be symmetric, but {i} -> {j} weighs {float(weight[e])} and "
            f"{j} -> {i} weighs {float(opposite[e])}. Graph(..., symmetrize=True) takes their mean."
        )
    return (weight + opposite) / 2


def check_batch(batch: Tensor | None, csr: CSR, num_nodes: int) -> int:
    """Return the number of graphs in a batch, after checking that its vector fits the graph."""
    if batch is None:
        return 1
    whole = batch.dtype in (torch.int32, torch.int64)
    if batch.dim() != 1 or batch.numel() != num_nodes or not whole:
        raise GraphError(
            f"batch must hold one integer per node, shape [{num_nodes}]; got {list(batch.shape)} "
            f"of {batch.dtype}."
        )
    if batch.numel() == 0:
        return 0
    if int(batch.min()) < 0:
        raise GraphError(
            f"batch must not be negative; the first such node is {int((batch < 0).nonzero()[0])}."
        )
    row = rows_of_entries(csr)
    across = batch[row] != batch[csr.col.long()]
    if bool(across.any()):
        e = int(across.nonzero()[0])
        i, j = int(row[e]), int(csr.col[e])
        raise GraphError(
            f"edge {i} -> {j} joins graphs {int(batch[i])} and {int(batch[j])} of the batch; "
            "graphs in a batch share no edges."
        )
    return int(batch.max()) + 1
