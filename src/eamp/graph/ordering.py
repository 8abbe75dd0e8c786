"""An order of the nodes of a large graph in which neighbours are near in memory.

A pass over the edges reads the features of every neighbour. On a mesh of a million nodes in random
order it takes seven times as long as on the same mesh in its own order, because it waits for
memory. A breadth-first order helps for meshes, road networks and batches of molecules, but not for
graphs with random edges.
"""

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor
from torch_geometric.data import Data

from eamp.graph import Graph
from eamp.graph.subgraph import rows_of_data

LARGE = 100_000  # nodes; the features of fewer nodes fit a cache of the processor
NEARER = 4  # a new order must bring neighbours nearer by this factor; docs/scale.md has the timings


def nearer(data: Data) -> Data:
    """Return ``data`` with its nodes in an order in which neighbours are near in memory.

    ``data`` itself is returned if it is small or not on the CPU, or if no such order is found.
    :func:`eamp.training.train` calls this function; its result does not depend on the order.

    Example:
        >>> import eamp
        >>> data = eamp.data.load("csbm:nodes=60,features=8")
        >>> nearer(data) is data                                   # small
        True
    """
    if data.num_nodes < LARGE or data.edge_index.device.type != "cpu":
        return data
    order = near_order(Graph(data.edge_index, data.num_nodes, symmetrize=True))
    return data if order is None else in_order(data, order)


def near_order(graph: Graph) -> Tensor | None:
    """Return the reverse Cuthill-McKee order, or ``None`` if neighbours come little nearer."""
    row, col = graph.edge_index
    entries = np.ones(col.numel(), np.int8), graph.csr.col.numpy(), graph.csr.rowptr.numpy()
    matrix = csr_matrix(entries, shape=(graph.num_nodes, graph.num_nodes))
    order = torch.from_numpy(reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int64))
    place = inverse_of(order)
    return order if NEARER * distance(place[row], place[col]) < distance(row, col) else None


def distance(row: Tensor, col: Tensor) -> float:
    """Return the mean difference between the numbers of an edge's ends."""
    return float((row - col).abs().double().mean()) if row.numel() else 0.0


def inverse_of(order: Tensor) -> Tensor:
    """Return the place of every node in an order of all nodes."""
    numbers = torch.arange(order.numel(), device=order.device)
    return torch.empty_like(order).scatter_(0, order, numbers)


def in_order(data: Data, order: Tensor) -> Data:
    """Return ``data`` with its nodes in another order."""
    place = inverse_of(order)
    moved = rows_of_data(data, order)
    for name in data.keys():  # noqa: SIM118  # PyG's data is not a mapping
        if data.is_edge_attr(name):
            moved[name] = data[name]
    moved.edge_index = place[data.edge_index]
    return moved
