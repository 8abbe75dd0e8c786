"""Random numbers per node that a graph gets alone and in every batch."""

from collections.abc import Callable

import torch
from torch import Tensor

from eamp.graph.graph import Graph


def draw_by_graph(graph: Graph, draw: Callable[[int], Tensor]) -> Tensor:
    """Return ``draw(number of nodes)`` of every graph, row by row.

    Args:
        graph: a graph, a batch of graphs, or a part of a graph.
        draw: a function that returns the same numbers ``[size, ...]`` whenever it is called with
            the same size.

    Example:
        >>> import torch, eamp
        >>> edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> batch = eamp.Graph(edges, 5, batch=torch.tensor([0, 0, 1, 1, 1]))
        >>> draw_by_graph(batch, lambda size: 10 * size + torch.arange(size))
        tensor([20, 21, 30, 31, 32])
    """
    if graph.batch is None:
        drawn = draw(graph.total_nodes).to(graph.device)
        return drawn if graph.rows is None else drawn[graph.rows.nodes]
    order = graph.batch.argsort(stable=True)
    sizes = graph.batch.bincount(minlength=graph.num_graphs)
    number = torch.arange(order.numel(), device=graph.device)
    place = number - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)  # within the graph
    kinds, kind = sizes.unique(return_inverse=True)
    drawn = torch.cat([draw(int(size)) for size in kinds]).to(graph.device)
    start = (kinds.cumsum(0) - kinds)[kind].repeat_interleave(sizes)
    by_order = drawn[start + place]
    return torch.empty_like(by_order).index_copy_(0, order, by_order)
