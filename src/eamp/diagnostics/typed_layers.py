"""The relations of a typed layer's call, each with the embedding of its nodes and its graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module

from eamp.graph import Graph, GraphError
from eamp.graph.relations import words
from eamp.graph.typed_graph_cache import typed_graph_for
from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.typed_layers import edge_types_of


class RelationOfCall(NamedTuple):
    """One relation of a layer's call.

    Attributes:
        name: the relation in words.
        given: the rows of its nodes in the layer's input; ``None`` if its types have other widths
            there.
        out: the rows of its nodes in the layer's output.
        graph: its undirected graph.
    """

    name: str
    given: Tensor | None
    out: Tensor
    graph: Graph


def is_typed(layer: Module) -> bool:
    """Return whether a layer, wrapped or not, is known to take dictionaries of features."""
    return edge_types_of(layer.conv if isinstance(layer, EntropyAware) else layer) is not None


def relations_of_call(
    layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Mapping[str, Tensor]
) -> Iterator[RelationOfCall]:
    """Yield the relations of a call that can be measured.

    These are the relations with edges whose types have an embedding of one width. Relations between
    nodes of one type are measured as undirected graphs.

    Raises:
        GraphError: if the call has no ``edge_index_dict``, or if it does not fit.
    """
    x = args[0] if args else kwargs.get("x_dict")
    edge_index = args[1] if len(args) > 1 else kwargs.get("edge_index_dict")
    if not isinstance(edge_index, Mapping):
        raise GraphError("there is no edge_index_dict among its arguments")
    conv = layer.conv if isinstance(layer, EntropyAware) else layer
    edge_types = edge_types_of(conv)
    known = {kind: each.detach() for kind, each in out.items() if isinstance(each, Tensor)}
    edges = {e: i for e, i in edge_index.items() if e[0] in known and e[2] in known}
    if edge_types is not None:
        edge_types = [e for e in edge_types if e[0] in known and e[2] in known]
    typed = typed_graph_for(known, edges, edge_types, symmetrize=True)
    for relation in () if typed is None else typed.relations:
        assert typed is not None
        try:
            rows = typed.rows(known, relation)
        except GraphError:  # its types have embeddings of two widths, and share no energy
            continue
        given = None
        if isinstance(x, Mapping):
            try:
                given = typed.rows(x, relation).detach()
            except GraphError:  # the inputs of a first layer have widths of their own
                given = None
        with torch.no_grad():
            yield RelationOfCall(words(relation), given, rows, typed[relation])
