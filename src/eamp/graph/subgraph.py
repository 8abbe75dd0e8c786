"""Subgraphs with the degrees of the whole graph, and rows of features and PyG data."""

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import select

from eamp.graph.csr import CSR, build_csr
from eamp.graph.graph import Graph


def subgraph(graph: Graph, nodes: Tensor) -> Graph:
    """Return the graph of all edges among ``nodes`` (ascending), with the whole graph's degrees.

    So :math:`C_i` and :math:`k_i` are those of the whole graph.

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
    csr = build_csr(edges, None if weight is None else weight[inside], nodes.numel())
    return Graph._of(csr, graph.degree[nodes])


def with_neighbours(graph: Graph, inside: Tensor) -> Tensor:
    """Return a mask of nodes ``[n]`` grown by one hop."""
    _, col, _ = rows_of(graph.csr, inside.nonzero().squeeze(1))
    grown = inside.clone()
    grown[col] = True
    return grown


def rows_of(csr: CSR, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return row, column and weight of every entry in the rows of ``nodes``."""
    size, entry = entries_of(csr.rowptr, nodes)
    weight = None if csr.edge_weight is None else csr.edge_weight[entry]
    return nodes.repeat_interleave(size), csr.col[entry].long(), weight


def entries_of(rowptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of entries of each of ``rows``, and their places, row after row."""
    start, size = rowptr[rows].long(), rowptr.diff()[rows].long()
    first = size.cumsum(0) - size
    place = torch.arange(int(size.sum()), device=rows.device)
    return size, place + (start - first).repeat_interleave(size)


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Return some rows of dense or sparse CSR features."""
    if x.layout == torch.strided:
        return x[rows]
    size, entry = entries_of(x.crow_indices(), rows)
    rowptr = torch.cat([size.new_zeros(1), size.cumsum(0)])
    column, value, shape = (
        x.col_indices()[entry].long(),
        x.values()[entry],
        (rows.numel(), x.size(1)),
    )
    return torch.sparse_csr_tensor(rowptr, column, value, shape, check_invariants=False)


def rows_of_data(data: Data, nodes: Tensor) -> Data:
    """Return the attributes of ``nodes``; those of edges are left out, all others are kept."""
    rows = Data()
    for name in data.keys():  # noqa: SIM118  # PyG's data is not a mapping
        value = data[name]
        if not data.is_node_attr(name):
            if not data.is_edge_attr(name):
                rows[name] = value
        elif isinstance(value, Tensor) and value.layout == torch.sparse_csr:
            rows[name] = take_rows(value, nodes)
        else:
            rows[name] = select(value, nodes, data.__cat_dim__(name, value))
    return rows
