"""Numbering the nodes of a large graph such that neighbours are near in memory.

A pass over the edges reads the features of every neighbour. Where those lie anywhere in memory, it waits for them: on a mesh of a million
nodes in random order, seven times as long as on the same mesh in its own order. A breadth-first order restores that where there is any to
be found: in meshes, road networks and molecules in a row, not in graphs whose edges are random.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor
from torch_geometric.data import Data

from eamp.graph import Graph
from eamp.graph.subgraph import rows_of_data

LARGE = 100_000  # nodes; the features of fewer are in a cache
NEARER = 4  # times: what neighbours have to come nearer by to be worth a new order


def nearer(data: Data) -> Data:
    """The same nodes, edges, labels and masks in an order in which neighbours are near, or ``data`` itself where that is no use.

    :func:`eamp.training.train` does it by itself: what it returns does not depend on the order.

    Example:
        >>> import eamp
        >>> data = eamp.data.load("csbm:nodes=60,features=8")
        >>> nearer(data) is data                                   # too small
        True
    """
    if data.num_nodes < LARGE or data.edge_index.device.type != "cpu":
        return data
    order = near_order(Graph(data.edge_index, data.num_nodes, symmetrize=True))
    return data if order is None else in_order(data, order)


def near_order(graph: Graph) -> Tensor | None:
    """The nodes in such an order, by reverse Cuthill–McKee; ``None`` where it would not bring neighbours much nearer."""
    row, col = graph.edge_index
    entries = np.ones(col.numel(), np.int8)
    matrix = csr_matrix(
        (entries, graph.csr.col.numpy(), graph.csr.rowptr.numpy()),
        shape=(graph.num_nodes, graph.num_nodes),
    )
    order = torch.from_numpy(reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int64))
    place = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel()))
    return order if NEARER * distance(place[row], place[col]) < distance(row, col) else None


def distance(row: Tensor, col: Tensor) -> float:
    """How far apart in memory the ends of an edge are, on average."""
    return float((row - col).abs().double().mean()) if row.numel() else 0.0


def in_order(data: Data, order: Tensor) -> Data:
    """``data`` with its nodes in another order."""
    place = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel()))
    moved = rows_of_data(data, order)
    for name in data.keys():  # noqa: SIM118  # PyG's data is not a mapping
        if data.is_edge_attr(name):
            moved[name] = data[name]
    moved.edge_index = place[data.edge_index]
    return moved
