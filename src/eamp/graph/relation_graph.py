"""The undirected graph of one relation, and the graphs of several relations as one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from eamp.graph.csr import CSR, index_type_of
from eamp.graph.errors import GraphError
from eamp.graph.formats import check_weight, read_edge_index
from eamp.graph.graph import Graph
from eamp.graph.relations import EdgeType, types_of, words

Edges: TypeAlias = Mapping[EdgeType, tuple[Any, Tensor | None]]
"""The ``edge_index`` and perhaps the edge weights of every edge type."""


def relation_graph(
    relation: EdgeType,
    edges: Edges,
    num_nodes: Mapping[str, int],
    symmetrize: bool,
) -> Graph:
    """Return the undirected graph of a relation from the edges of its directions.

    Every edge keeps its direction. So weights of repeated edges are added up, and those of opposite
    edges are averaged, as in :class:`Graph`. Where one direction alone has weights, its edges are
    those of the relation.
    """
    kinds = types_of(relation)
    if weighted := {kind: given for kind, given in edges.items() if given[1] is not None}:
        edges = weighted
    try:
        if missing := [kind for kind in kinds if kind not in num_nodes]:
            raise GraphError(f"the number of nodes of {missing[0]!r} is unknown.")
        first = dict(zip(kinds, (0, num_nodes[kinds[0]]), strict=False))  # the row of a type
        placed = []
        for (source, _, target), (edge_index, _) in edges.items():
            if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
                got = edge_index.layout if isinstance(edge_index, Tensor) else type(edge_index)
                raise GraphError(
                    f"expected an edge_index [2, num_edges]; got {got}. Leave out ToSparseTensor."
                )
            ends = read_edge_index(edge_index.as_subclass(Tensor))[0]
            rows = [
                check_ends(ends[k], kind, num_nodes[kind]) + first[kind]
                for k, kind in enumerate((source, target))
            ]
            placed.append(torch.stack(rows))
        edge_index = torch.cat(placed, dim=1)
        weights = [
            None if weight is None else check_weight(weight, placed[k])
            for k, (_, weight) in enumerate(edges.values())
        ]
        total = sum(num_nodes[kind] for kind in kinds)
        weight = together(weights, [part.size(1) for part in placed])
        undirected = symmetrize or len(kinds) == 2
        return Graph(edge_index, total, edge_weight=weight, symmetrize=undirected)
    except GraphError as error:
        raise GraphError(f"relation {words(relation)!r}: {error}") from error


def check_ends(ends: Tensor, kind: str, num_nodes: int) -> Tensor:
    """Return one end of every edge, after checking that it is a node of its type."""
    wrong = (ends < 0) | (ends >= num_nodes)
    if bool(wrong.any()):
        raise GraphError(
            f"edge_index names the node {int(ends[wrong][0])} of {kind!r}, which has {num_nodes}; "
            "pass the right num_nodes, or features with a row per node."
        )
    return ends


def together(parts: Sequence[Tensor | None], sizes: Sequence[int]) -> Tensor | None:
    """Return edge weights one after the other; those that are ``None`` are 1."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    ones = [known[0].new_ones(size) for size in sizes]
    return torch.cat([one if p is None else p for p, one in zip(parts, ones, strict=True)])


def side_by_side(graphs: Sequence[Graph]) -> Graph:
    """Return graphs as one batch, without sorting their edges again."""
    if not graphs:
        raise GraphError("a typed graph needs at least one relation, but has none.")
    entries, nodes, rowptr, col, reverse = 0, 0, [graphs[0].csr.rowptr[:1].long()], [], []
    for graph in graphs:
        csr = graph.csr
        rowptr.append(csr.rowptr[1:].long() + entries)
        col.append(csr.col.long() + nodes)
        reverse.append(csr.reverse.long() + entries)
        entries, nodes = entries + csr.col.numel(), nodes + graph.num_nodes
    index_type = index_type_of(entries, nodes)
    weight = together([g.csr.edge_weight for g in graphs], [g.csr.col.numel() for g in graphs])
    starts, ends, opposite = (torch.cat(p).to(index_type) for p in (rowptr, col, reverse))
    degree = torch.cat([graph.degree for graph in graphs])
    numbers = torch.arange(len(graphs), device=degree.device)
    sizes = torch.tensor([graph.num_nodes for graph in graphs], device=degree.device)
    batch = numbers.repeat_interleave(sizes)
    return Graph._of(CSR(starts, ends, opposite, weight), degree, batch, len(graphs))
