"""Which machine gets which node: parts of equal size with few edges between them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from eamp.graph import Graph, GraphError


def metis(graph: Graph, parts: int, seed: int = 0) -> Tensor:
    """The part of every node, ``[n]`` in int64 on the CPU, by the multilevel method of METIS (Karypis & Kumar, 1998).

    Parts hold about equally many nodes and have few edges between them. The same graph, number and seed give the same parts, so
    that processes which all call this agree without a word. Small graphs in many parts may leave some of them empty.

    Args:
        graph: edge weights, where it has them, do not matter.
        parts: how many, at least 1.
        seed: of METIS' random choices.

    Example:
        >>> import torch, eamp
        >>> from eamp.scale.partition import metis
        >>> two_triangles = torch.tensor([[0, 1, 2, 3, 4, 5, 2], [1, 2, 0, 4, 5, 3, 3]])
        >>> part = metis(eamp.Graph(two_triangles, symmetrize=True), 2)
        >>> bool((part[:3] == part[0]).all() and (part[3:] == part[3]).all() and part[0] != part[3])
        True
    """
    if parts < 1:
        raise GraphError(f"a graph is cut into 1 part or more, but parts is {parts}.")
    if (
        parts == 1 or parts >= graph.num_nodes or graph.num_edges == 0
    ):  # any parts of equal size will do
        return torch.arange(graph.num_nodes) * parts // max(graph.num_nodes, 1)
    import pymetis  # loads only where a graph is cut

    whole = pymetis.zero_copy_dtype()
    if graph.csr.col.numel() > np.iinfo(whole).max:
        raise GraphError(
            f"this build of METIS counts to {np.iinfo(whole).max}, but the graph has {graph.csr.col.numel()} entries."
        )
    rowptr, col = (part.cpu().numpy().astype(whole) for part in (graph.csr.rowptr, graph.csr.col))
    found = pymetis.part_graph(
        parts, pymetis.CSRAdjacency(rowptr, col), options=pymetis.Options(seed=seed)
    )
    return torch.as_tensor(np.asarray(found.vertex_part, dtype=np.int64))
