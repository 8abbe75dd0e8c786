"""``TypedGraph``: nodes of several types, and one undirected graph for every relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from eamp.graph.edge_index_cache import check_features
from eamp.graph.errors import GraphError
from eamp.graph.graph import Graph
from eamp.graph.relation_graph import Edges, relation_graph, side_by_side
from eamp.graph.relations import (
    Chosen,
    EdgeType,
    Relations,
    chosen_relations,
    types_of,
    words,
)


class TypedGraph:
    r"""Nodes of several types, with one undirected :class:`eamp.Graph` for every relation.

    The graph of a relation between the types :math:`u` and :math:`v` has the nodes of :math:`u`,
    followed by those of :math:`v`; a relation between nodes of one type has these alone. The two
    types are compared after their means have been aligned, since an offset between the types is no
    difference between nodes. An edge
    type and its reverse are one relation: :math:`(v, \text{rev\_}r, u)` is the reverse of
    :math:`(u, r, v)`, and so is the only edge type from :math:`v` to :math:`u` if :math:`(u, r, v)`
    is the only one from :math:`u` to :math:`v`.

    All relations together are one batch of graphs, :attr:`graph`, over the rows of :meth:`stack`.
    So :math:`S = \sum_r S_r` is ``eamp.entropy(g.stack(x_dict), g.graph)``.

    Args:
        adjacency: a PyG ``HeteroData``, or its ``edge_index_dict``.
        num_nodes: number of nodes of every type; ``HeteroData`` knows it.
        edge_weight: ``[m]`` non-negative weights of an edge type; those of ``HeteroData`` are its
            ``edge_weight``. Where both directions have weights, they are averaged.
        relations: the relations to use, by default all. A mapping gives their weights
            :math:`w_r`; the others weigh 1.
        symmetrize: accept a directed relation between nodes of one type, and add the missing
            directions. Relations between two types are always made undirected.

    Raises:
        GraphError: if an edge type cannot be used.

    Example:
        >>> import torch, eamp
        >>> writes = torch.tensor([[0, 0, 1], [0, 1, 1]])
        >>> g = eamp.TypedGraph({("author", "writes", "paper"): writes}, {"author": 2, "paper": 3})
        >>> g
        TypedGraph({'author': 2, 'paper': 3}, relations=['author writes paper'])
        >>> relation = ("author", "writes", "paper")
        >>> g[relation]
        Graph(num_nodes=5, num_edges=3)
        >>> x = {"author": torch.zeros(2, 1), "paper": torch.tensor([[4.0], [5.0], [6.0]])}
        >>> eamp.dirichlet_energy(g.rows(x, relation), g[relation])    # papers differ by -1, 0, 1
        tensor([0.3536, 0.0000, 0.5000, 0.0000, 0.0000])
    """

    num_nodes: dict[str, int]
    """Number of nodes of every type."""
    relations: tuple[EdgeType, ...]
    """The relations, each under the name of one of its directions."""
    relation_weights: dict[EdgeType, float]
    """The weight of every relation."""
    graph: Graph
    """All relations as one batch of graphs, over the rows of :meth:`stack`."""

    def __init__(
        self,
        adjacency: Any,
        num_nodes: Mapping[str, int] | None = None,
        *,
        edge_weight: Mapping[EdgeType, Tensor] | None = None,
        relations: Relations = None,
        symmetrize: bool = False,
    ) -> None:
        if not isinstance(adjacency, Mapping) and hasattr(adjacency, "edge_types"):
            num_nodes = adjacency.num_nodes_dict if num_nodes is None else num_nodes
            if edge_weight is None:
                edge_weight = adjacency.collect("edge_weight", allow_empty=True)
            adjacency = adjacency.collect("edge_index", allow_empty=True)
        if not isinstance(adjacency, Mapping) or not isinstance(num_nodes, Mapping):
            raise GraphError(
                "a typed graph is a HeteroData, or an edge_index_dict and the number of nodes of "
                f"every type; got {type(adjacency).__name__} and {type(num_nodes).__name__}. "
                "Pass TypedGraph(data.edge_index_dict, data.num_nodes_dict)."
            )
        weights = edge_weight or {}
        if unknown := [each for each in weights if each not in adjacency]:
            raise GraphError(
                f"edge_weight names the edge type {unknown[0]}, which has no edge_index; there are "
                f"{', '.join(map(str, adjacency))}."
            )
        if unsized := [kind for kind, number in num_nodes.items() if number is None]:
            raise GraphError(
                f"the number of nodes of {unsized[0]!r} is unknown; give the type features, or "
                "set its num_nodes."
            )
        edges = {each: (edges, weights.get(each)) for each, edges in adjacency.items()}
        self._fill(edges, num_nodes, chosen_relations(edges, relations), symmetrize)

    @classmethod
    def _of(
        cls, edges: Edges, num_nodes: Mapping[str, int], chosen: Chosen, symmetrize: bool
    ) -> TypedGraph:
        """Make a typed graph of relations whose directions are known."""
        graph = object.__new__(cls)
        graph._fill(edges, num_nodes, chosen, symmetrize)
        return graph

    def _fill(
        self, edges: Edges, num_nodes: Mapping[str, int], chosen: Chosen, symmetrize: bool
    ) -> None:
        self.num_nodes = {str(name): int(count) for name, count in num_nodes.items()}
        self.relations = tuple(chosen)
        self.relation_weights = {relation: weight for relation, (_, weight) in chosen.items()}
        self._graphs = {
            relation: relation_graph(
                relation, {each: edges[each] for each in directions}, self.num_nodes, symmetrize
            )
            for relation, (directions, _) in chosen.items()
        }
        self.graph = side_by_side(list(self._graphs.values()))

    def __getitem__(self, relation: EdgeType) -> Graph:
        """Return the undirected graph of a relation."""
        if relation not in self._graphs:
            raise GraphError(
                f"there is no relation {relation!r}; there are {list(self.relations)}."
            )
        return self._graphs[relation]

    def rows(self, x: Mapping[str, Tensor], relation: EdgeType) -> Tensor:
        """Return the aligned features of a relation's nodes, ``[n, F]``, in its graph's order."""
        parts = [features_of(x, kind, relation) for kind in types_of(relation)]
        check_widths(relation, [part.size(1) for part in parts])
        for kind, part in zip(types_of(relation), parts, strict=True):
            if part.size(0) != self.num_nodes[kind]:
                raise GraphError(
                    f"{kind!r} has {part.size(0)} rows of features but {self.num_nodes[kind]} "
                    "nodes; they must be the same nodes in the same order."
                )
        return torch.cat(aligned(parts)) if len(parts) > 1 else parts[0]

    def stack(self, x: Mapping[str, Tensor]) -> Tensor:
        """Return the aligned features of all relations' nodes, ``[n, F]``, for :attr:`graph`.

        A node has one row for every relation that its type takes part in.
        """
        parts = [self.rows(x, relation) for relation in self.relations]
        for relation, part in zip(self.relations, parts, strict=True):
            if part.size(1) != parts[0].size(1):
                raise GraphError(
                    f"relations must share one width, but {words(self.relations[0])!r} has "
                    f"{parts[0].size(1)} features and {words(relation)!r} {part.size(1)}; choose "
                    "those of one width with relations=[...]."
                )
        return torch.cat(parts)

    def unstack(self, y: Tensor) -> dict[str, Tensor]:
        r"""Return :math:`\sum_r w_r y_r` for every type of nodes, the adjoint of :meth:`stack`.

        Args:
            y: one row for every row of :meth:`stack`.
        """
        totals: dict[str, Tensor] = {}
        sizes = [self.num_nodes[kind] for relation in self.relations for kind in types_of(relation)]
        parts = iter(y.split(sizes))
        for relation in self.relations:
            weight, kinds = self.relation_weights[relation], types_of(relation)
            own = [next(parts) for _ in kinds]
            for kind, part in zip(kinds, aligned(own) if len(own) > 1 else own, strict=True):
                part = part if weight == 1 else part * weight
                totals[kind] = totals[kind] + part if kind in totals else part
        return totals

    def __repr__(self) -> str:
        return f"TypedGraph({self.num_nodes}, relations={[words(r) for r in self.relations]})"


def aligned(parts: Sequence[Tensor]) -> list[Tensor]:
    """Move the mean of every type to the mean of all; a symmetric linear map, its own adjoint.

    Layers have weights and biases per type, so types lie apart. This offset is no difference
    between nodes: without it, nodes of one type that are all alike have no energy.
    """
    if any(part.size(0) == 0 for part in parts):
        return list(parts)
    mean = torch.cat(list(parts)).mean(0)
    return [part + (mean - part.mean(0)) for part in parts]


def features_of(x: Mapping[str, Tensor], kind: str, relation: EdgeType) -> Tensor:
    """Return the features of a type of nodes, after checking that they are a matrix."""
    features = x.get(kind)
    if features is None:
        raise GraphError(
            f"there are no features of {kind!r}, which the relation {words(relation)!r} needs: no "
            "layer sends messages to it, perhaps. Add the reverse edges with "
            "torch_geometric.transforms.ToUndirected(), or choose other relations."
        )
    check_features(features)
    return features


def check_widths(relation: EdgeType, widths: Sequence[int]) -> None:
    """Raise an error unless the types of a relation have features of one width."""
    if len(set(widths)) > 1:
        found = " and ".join(
            f"{width} features of {kind!r}"
            for kind, width in zip(types_of(relation), widths, strict=True)
        )
        raise GraphError(
            f"the relation {words(relation)!r} joins {found}; the energy compares neighbours, so "
            "both need one width. Give both types as many channels, or leave the relation out "
            "with relations=[...]."
        )
