"""Cutting a graph into parts of equal size with few edges between them."""

import numpy as np
import torch
from torch import Tensor

from eamp.graph import Graph, GraphError
from eamp.optional import extra


def metis(graph: Graph, parts: int, seed: int = 0) -> Tensor:
    """Return the part of every node by the multilevel method of METIS (Karypis & Kumar, 1998).

    Parts hold about equally many nodes and have few edges between them. Small graphs in many parts
    may leave some parts empty. The same graph, number of parts and seed give the same result.

    Args:
        graph: the graph; its edge weights are not used.
        parts: number of parts, at least 1.
        seed: seed of METIS.

    Returns:
        ``[n]`` in int64 on the CPU.

    Example:
        >>> import torch, eamp
        >>> from eamp.scale.partition import metis
        >>> two_triangles = torch.tensor([[0, 1, 2, 3, 4, 5, 2], [1, 2, 0, 4, 5, 3, 3]])
        >>> part = metis(eamp.Graph(two_triangles, symmetrize=True), 2)
        >>> bool((part[:3] == part[0]).all() and (part[3:] == part[3]).all() and part[0] != part[3])
        True
    """
    if parts < 1:
        raise GraphError(f"a graph can be cut into 1 part or more, but parts is {parts}.")
    if parts == 1 or parts >= graph.num_nodes or graph.num_edges == 0:
        return torch.arange(graph.num_nodes) * parts // max(graph.num_nodes, 1)
    with extra("scale"):
        import pymetis  # optional

    integer = pymetis.zero_copy_dtype()
    if graph.csr.col.numel() > np.iinfo(integer).max:
        raise GraphError(
            f"this build of METIS takes up to {np.iinfo(integer).max} entries, but the graph has "
            f"{graph.csr.col.numel()}; install one with 64-bit integers."
        )
    rowptr, col = (part.cpu().numpy().astype(integer) for part in graph.csr[:2])
    adjacency, options = pymetis.CSRAdjacency(rowptr, col), pymetis.Options(seed=seed)
    found = pymetis.part_graph(parts, adjacency, options=options)
    return torch.as_tensor(np.asarray(found.vertex_part, dtype=np.int64))


def check_parts(graph: Graph, part: Tensor, name: str = "part") -> None:
    """Raise an error unless ``part`` holds an integer for every node of one large graph."""
    if graph.batch is not None:
        raise GraphError(
            "only one large graph can be cut into parts, but this is a batch of graphs: give every "
            "process, or every mini-batch, some of the graphs."
        )
    if not isinstance(part, Tensor):
        raise TypeError(f"{name} must be a number or a tensor [num_nodes], but is {part!r}.")
    if part.shape != (graph.num_nodes,) or part.is_floating_point():
        raise GraphError(
            f"{name} must hold one integer per node, shape [{graph.num_nodes}]; got "
            f"{list(part.shape)} of {part.dtype}."
        )
