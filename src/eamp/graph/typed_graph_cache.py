"""The cache of typed graphs: a dictionary of ``edge_index`` tensors is converted once.

The typed graph belongs to the first tensor. It is used as long as every tensor is the same object
and holds the same contents, which the cache of single tensors finds out.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from eamp.graph.edge_index_cache import entry_of
from eamp.graph.relations import Chosen, EdgeType, Relations, chosen_relations
from eamp.graph.typed_graph import TypedGraph


def typed_graph_for(
    x: Mapping[str, Tensor],
    edge_index: Mapping[EdgeType, Any],
    edge_types: Iterable[EdgeType] | None = None,
    relations: Relations = None,
    symmetrize: bool = False,
) -> TypedGraph | None:
    """Return the typed graph of an ``edge_index_dict``, or ``None`` if no relation has edges.

    Args:
        x: features of every type, or ``None`` for a type that has none.
        edge_index: the edges. Edge types without edges, and those left out, are the same: their
            relations have no energy.
        edge_types: the edge types that a layer knows, by default all of ``edge_index``. They
            decide which edge types are two directions of one relation.
        relations: see :class:`TypedGraph`.
        symmetrize: see :class:`TypedGraph`.
    """
    chosen = chosen_relations(edge_index if edge_types is None else edge_types, relations)
    present: Chosen = {}
    for relation, (directions, weight) in chosen.items():
        if found := tuple(each for each in directions if has_edges(edge_index.get(each))):
            present[relation] = (found, weight)
    if not present:
        return None
    edges = [edge_index[each] for found, _ in present.values() for each in found]
    num_nodes = {kind: features.size(0) for kind, features in x.items() if features is not None}

    def converted() -> TypedGraph:
        named = {each: (edges, None) for each, edges in edge_index.items()}
        return TypedGraph._of(named, num_nodes, present, symmetrize)

    if not all(isinstance(each, Tensor) for each in edges):
        return converted()
    entries = [entry_of(each) for each in edges]
    graphs = entries[0].typed_graphs
    key = (*present.items(), *num_nodes.items(), symmetrize)
    contents, graph = graphs.get(key, (None, None))
    now = [entry.contents for entry in entries]
    if contents is None or any(old is not new for old, new in zip(contents, now, strict=True)):
        graph = converted()
        graphs[key] = (now, graph)
    return graph


def has_edges(edge_index: Any) -> bool:
    """Return whether an edge type is there and not empty."""
    return edge_index is not None and not (
        isinstance(edge_index, Tensor) and edge_index.numel() == 0
    )
