"""Some nodes of a large graph as a graph of their own that knows the degrees in the large one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import select

from eamp.graph.graph import CSR, Graph, build_csr


def subgraph(graph: Graph, nodes: Tensor) -> Graph:
    """All edges among ``nodes`` (ascending), with the degrees of the whole graph: :math:`C_i` and :math:`k_i` are the true ones.

    Example:
        >>> import torch, eamp
        >>> path = eamp.Graph(torch.tensor([[0, 1, 2], [1, 2, 3]]), symmetrize=True)
        >>> part = subgraph(path, torch.tensor([0, 1]))
        >>> part, part.degree
        (Graph(num_nodes=2, num_edges=1), tensor([1., 2.], dtype=torch.float64))
    """
    row, col, weight = rows_of(graph.csr, nodes)
    place = torch.full((graph.num_nodes,), -1, dtype=torch.long, device=graph.device)
    place[nodes] = torch.arange(nodes.numel(), device=graph.device)
    inside = place[col] >= 0
    edges = torch.stack([place[row[inside]], place[col[inside]]])
    csr = build_csr(
        edges, None if weight is None else weight[inside], nodes.numel(), symmetrize=False
    )
    made: Graph = object.__new__(Graph)
    made._fill(
        csr._replace(degree=graph.csr.degree[nodes], rsqrt_degree=graph.csr.rsqrt_degree[nodes]),
        nodes.numel(),
        None,
        1,
    )
    return made


def with_neighbours(graph: Graph, inside: Tensor) -> Tensor:
    """A mask of nodes ``[n]``, grown by one hop."""
    _, col, _ = rows_of(graph.csr, inside.nonzero().squeeze(1))
    grown = inside.clone()
    grown[col] = True
    return grown


def rows_of_data(data: Data, nodes: Tensor) -> Data:
    """What ``data`` holds for ``nodes``; what it holds for edges is left out, what belongs to neither is kept."""
    rows = Data()
    for name in data.keys():  # noqa: SIM118  # PyG's data is not a mapping
        if data.is_node_attr(name):
            sparse = isinstance(data[name], Tensor) and data[name].layout == torch.sparse_csr
            rows[name] = (
                take_rows(data[name], nodes)
                if sparse
                else select(data[name], nodes, data.__cat_dim__(name, data[name]))
            )
        elif not data.is_edge_attr(name):
            rows[name] = data[name]
    return rows


def rows_of(csr: CSR, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """Row, column and weight of every entry in the rows of ``nodes``."""
    size, entry = entries_of(csr.rowptr, nodes)
    return (
        nodes.repeat_interleave(size),
        csr.col[entry].long(),
        None if csr.edge_weight is None else csr.edge_weight[entry],
    )


def entries_of(rowptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """How many entries each of some rows has, and where they lie, row after row."""
    start, size = rowptr[rows].long(), rowptr.diff()[rows].long()
    first = size.cumsum(0) - size
    return size, torch.arange(int(size.sum()), device=rows.device) + (
        start - first
    ).repeat_interleave(size)


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Some rows of dense or sparse CSR features."""
    if x.layout == torch.strided:
        return x[rows]
    size, entry = entries_of(x.crow_indices(), rows)
    rowptr = torch.cat([size.new_zeros(1), size.cumsum(0)])
    column, value = x.col_indices()[entry].long(), x.values()[entry]
    return torch.sparse_csr_tensor(
        rowptr, column, value, (rows.numel(), x.size(1)), check_invariants=False
    )
