"""The connected components of a graph."""

import torch
from torch import Tensor

from eamp.graph.graph import Graph


def components(graph: Graph) -> Tensor:
    """Return the number of every node's connected component, ``[n]``, computed once per graph.

    Example:
        >>> components(Graph(torch.tensor([[0, 1, 3, 4], [1, 0, 4, 3]])))
        tensor([0, 0, 1, 2, 2])
    """
    return graph.remember(components, lambda: labels(graph))


def labels(graph: Graph) -> Tensor:
    """Compute what :func:`components` returns."""
    # slow to load, and needed here only
    import scipy.sparse
    from scipy.sparse.csgraph import connected_components

    source, target = graph.edge_index.cpu()
    ones, size = torch.ones(source.numel(), dtype=torch.bool), (graph.num_nodes, graph.num_nodes)
    matrix = scipy.sparse.coo_array((ones.numpy(), (source.numpy(), target.numpy())), size)
    _, number = connected_components(matrix, directed=False)
    return torch.as_tensor(number, device=graph.device).long()
