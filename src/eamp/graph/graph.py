"""The one door: any adjacency becomes a validated, frozen CSR graph, and every graph error is raised here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch_geometric.data import Data

INT32_MAX = 2**31 - 1


class GraphError(ValueError):
    """An adjacency, or features beside one, that cannot be used; the message says how to mend it."""


class CSR(NamedTuple):
    """What the kernels read. A plain tuple of tensors, so that ``torch.compile`` sees through it.

    Attributes:
        rowptr: ``[n + 1]``; the neighbours of ``i`` are ``col[rowptr[i]:rowptr[i + 1]]``, ascending.
        col: ``[m]``, both directions of every edge.
        reverse: ``[m]``; entry ``reverse[e]`` is the other direction of entry ``e``.
        edge_weight: ``[m]`` or ``None`` for all ones.
        degree: ``[n]`` in float64, k_i = Σ_j a_ij.
        rsqrt_degree: ``[n]`` in float64, 1/sqrt(k_i), and 0 for a node without neighbours.
    """

    rowptr: Tensor
    col: Tensor
    reverse: Tensor
    edge_weight: Tensor | None
    degree: Tensor
    rsqrt_degree: Tensor


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Graph:
    r"""An undirected graph without self-loops, made once and used everywhere.

    Args:
        adjacency: a ``[2, m]`` ``edge_index`` (tensor, NumPy array or PyG ``EdgeIndex``), a torch sparse tensor
            (CSR, CSC or COO), a ``torch_sparse.SparseTensor``, a SciPy sparse matrix, a networkx graph, or a PyG ``Data``.
        num_nodes: number of nodes; read off the adjacency when left out.
        edge_weight: ``[m]`` non-negative, symmetric weights for an ``edge_index``. Sparse matrices bring their own
            (values that are all 1 mean an unweighted graph), networkx graphs the attribute ``weight``, ``Data`` its ``edge_weight``.
        batch: ``[n]``, which graph of a mini-batch each node belongs to.
        symmetrize: take a directed graph and add the missing directions. Where both are present their weights are averaged.

    Self-loops are dropped (they add nothing to the energy and must not count in the degree), duplicates are merged (their
    weights added up), isolated nodes are fine.

    Example:
        >>> import torch, eamp
        >>> g = eamp.Graph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> g
        Graph(num_nodes=3, num_edges=2)
        >>> g.degree
        tensor([1., 2., 1.], dtype=torch.float64)
    """

    csr: CSR
    num_nodes: int
    batch: Tensor | None
    num_graphs: int

    def __init__(
        self,
        adjacency: Adjacency,
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        symmetrize: bool = False,
    ) -> None:
        from eamp.graph.formats import (
            read,
        )  # readers of optional libraries load only when a graph is made

        entries = read(adjacency, num_nodes, edge_weight, batch)
        csr = build_csr(entries.edge_index, entries.edge_weight, entries.num_nodes, symmetrize)
        num_graphs = check_batch(entries.batch, csr, entries.num_nodes)
        self._fill(csr, entries.num_nodes, entries.batch, num_graphs)

    def _fill(self, csr: CSR, num_nodes: int, batch: Tensor | None, num_graphs: int) -> None:
        for name, value in (
            ("csr", csr),
            ("num_nodes", num_nodes),
            ("batch", batch),
            ("num_graphs", num_graphs),
        ):
            object.__setattr__(self, name, value)

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return self.csr.col.numel() // 2

    @property
    def degree(self) -> Tensor:
        """``[n]`` in float64, the sum of the weights of a node's edges."""
        return self.csr.degree

    @property
    def device(self) -> torch.device:
        """Where the graph lies."""
        return self.csr.col.device

    @property
    def edge_weight(self) -> Tensor | None:
        """Weights in the order of :attr:`edge_index`, or ``None``."""
        return self.csr.edge_weight

    @property
    def edge_index(self) -> Tensor:
        """``[2, 2 · num_edges]`` in int64, sorted, both directions, as PyG's layers take it."""
        rows = torch.arange(self.num_nodes, device=self.device)
        return torch.stack(
            [
                rows.repeat_interleave(
                    self.csr.rowptr.diff().long(), output_size=self.csr.col.numel()
                ),
                self.csr.col.long(),
            ]
        )

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Graph:
        """The same graph on ``device``."""
        if torch.device(device) == self.device:
            return self
        moved: Graph = object.__new__(Graph)
        csr = CSR(
            *(
                None if part is None else part.to(device, non_blocking=non_blocking)
                for part in self.csr
            )
        )  # type: ignore[arg-type]
        batch = None if self.batch is None else self.batch.to(device, non_blocking=non_blocking)
        moved._fill(csr, self.num_nodes, batch, self.num_graphs)
        return moved

    def __repr__(self) -> str:
        extras = "".join(
            [
                ", weighted=True" if self.edge_weight is not None else "",
                f", num_graphs={self.num_graphs}" if self.batch is not None else "",
                f", device={str(self.device)!r}" if self.device.type != "cpu" else "",
            ]
        )
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}{extras})"


Adjacency: TypeAlias = "Tensor | Graph | Data | Any"
"""What :class:`Graph` can be made of."""


def build_csr(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int, symmetrize: bool
) -> CSR:
    """Sort, merge and check a ``[2, m]`` edge list."""
    check_range(edge_index, num_nodes)
    if edge_weight is None and edge_index.device.type == "cpu":
        csr = count_entries(edge_index, num_nodes, symmetrize)
        if csr is not None:
            return csr
    return sort_entries(
        edge_index[0].long(), edge_index[1].long(), edge_weight, num_nodes, symmetrize
    )


def count_entries(edge_index: Tensor, num_nodes: int, symmetrize: bool) -> CSR | None:
    """The CSR of an unweighted edge list in little memory; ``None`` if it is directed."""
    from eamp.graph.neighbour_lists import neighbour_lists  # which takes a moment to load

    if edge_index.dtype not in (torch.int32, torch.int64):
        edge_index = edge_index.long()
    row, col = (ends.contiguous().numpy() for ends in edge_index)
    index_type = index_type_of(edge_index.size(1) * (2 if symmetrize else 1), num_nodes)
    lists = neighbour_lists(
        row, col, num_nodes, symmetrize, torch.empty(0, dtype=index_type).numpy().dtype
    )
    if lists is None:
        return None
    rowptr, neighbours, reverse = map(torch.from_numpy, lists)
    return CSR(rowptr, neighbours, reverse, None, *degrees(rowptr.diff().double()))


def index_type_of(entries: int, num_nodes: int) -> torch.dtype:
    return torch.int32 if max(entries, num_nodes) <= INT32_MAX else torch.int64


def degrees(degree: Tensor) -> tuple[Tensor, Tensor]:
    """k_i and 1/sqrt(k_i), which is 0 for an isolated node."""
    return degree, torch.where(degree > 0, degree.rsqrt(), 0.0)


def sort_entries(
    row: Tensor, col: Tensor, edge_weight: Tensor | None, num_nodes: int, symmetrize: bool
) -> CSR:
    """The same on any device and with weights, by sorting keys; this one says what is wrong with a directed graph."""
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
            f"the graph is directed: {int(one_way.sum())} of {key.numel()} edges have no opposite, the first is {i} -> {j}. "
            "The energy is defined on undirected graphs: add the missing directions, or let eamp do it with "
            "Graph(edge_index, symmetrize=True) or EntropyAware(conv, symmetrize=True); data by name with undirected:<name>."
        )
    if weight is not None:
        weight = symmetric_weight(weight, reverse, row, col)

    counts = torch.bincount(row, minlength=num_nodes)
    degree = (
        counts.double()
        if weight is None
        else weight.new_zeros(num_nodes, dtype=torch.float64).index_add_(0, row, weight.double())
    )
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    index_type = index_type_of(key.numel(), num_nodes)
    return CSR(
        rowptr.to(index_type), col.to(index_type), reverse.to(index_type), weight, *degrees(degree)
    )


def merge(key: Tensor, weight: Tensor | None, reduce: str) -> tuple[Tensor, Tensor | None]:
    """Sort ``key`` and merge duplicates, adding or averaging their weights."""
    if key.numel() < 2 or bool(
        (key[1:] > key[:-1]).all()
    ):  # already sorted and unique, as PyG's datasets come
        return key, weight
    if weight is None:
        return torch.unique(key), None
    unique, position = torch.unique(key, return_inverse=True)
    merged = weight.new_zeros(unique.numel()).scatter_reduce_(
        0, position, weight, reduce, include_self=False
    )
    return unique, merged


def check_range(edge_index: Tensor, num_nodes: int) -> None:
    """Every end of an edge must be a node."""
    if edge_index.numel() == 0:
        return
    lowest, highest = (int(bound) for bound in edge_index.aminmax())
    for found, complaint, remedy in (
        (lowest < 0, "negative", "node indices start at 0"),
        (
            highest >= num_nodes,
            f">= num_nodes = {num_nodes}",
            "pass the right num_nodes, or features with a row per node",
        ),
    ):
        if found:
            wrong = (
                (edge_index < 0) if complaint == "negative" else (edge_index >= num_nodes)
            ).any(0)
            e = int(wrong.nonzero()[0])
            raise GraphError(
                f"edge_index has {int(wrong.sum())} of {edge_index.size(1)} edges with an index {complaint}; the first is "
                f"edge {e}, ({int(edge_index[0, e])}, {int(edge_index[1, e])}): {remedy}."
            )


def symmetric_weight(weight: Tensor, reverse: Tensor, row: Tensor, col: Tensor) -> Tensor:
    """Check that weights are finite, non-negative and symmetric; rounding between the two directions is averaged away."""
    bad = ~torch.isfinite(weight) | (weight < 0)
    if bool(bad.any()):
        e = int(bad.nonzero()[0])
        raise GraphError(
            f"edge weights must be finite and >= 0, but {int(bad.sum())} are not; the first is {float(weight[e])} "
            f"on edge {int(row[e])} -> {int(col[e])}."
        )
    opposite = weight[reverse]
    unequal = ~torch.isclose(weight, opposite, rtol=1e-5, atol=0.0)
    if bool(unequal.any()):
        e = int(unequal.nonzero()[0])
        i, j = int(row[e]), int(col[e])
        raise GraphError(
            f"edge weights must be symmetric, but {i} -> {j} weighs {float(weight[e])} and {j} -> {i} weighs "
            f"{float(opposite[e])}. Graph(..., symmetrize=True) takes their mean."
        )
    return (weight + opposite) / 2


def check_batch(batch: Tensor | None, csr: CSR, num_nodes: int) -> int:
    """Number of graphs in the batch, once its vector is known to fit the graph."""
    if batch is None:
        return 1
    if batch.dim() != 1 or batch.numel() != num_nodes or batch.is_floating_point():
        raise GraphError(
            f"batch must hold one integer per node, shape [{num_nodes}]; got {list(batch.shape)} of {batch.dtype}."
        )
    if batch.numel() == 0:
        return 0
    if int(batch.min()) < 0:
        raise GraphError(
            f"batch must not be negative; the first such node is {int((batch < 0).nonzero()[0])}."
        )
    row = torch.arange(num_nodes, device=batch.device).repeat_interleave(csr.rowptr.diff().long())
    across = batch[row] != batch[csr.col.long()]
    if bool(across.any()):
        e = int(across.nonzero()[0])
        i, j = int(row[e]), int(csr.col[e])
        raise GraphError(
            f"edge {i} -> {j} joins graphs {int(batch[i])} and {int(batch[j])} of the batch; graphs in a batch share no edges."
        )
    return int(batch.max()) + 1
