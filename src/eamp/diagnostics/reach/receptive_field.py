"""Distances to a node along the edges, and a small graph that gives the node's output."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from eamp.graph import Adjacency, Graph, GraphError

Array = np.ndarray[Any, Any]
UNREACHED = -1
Outer = Literal["none", "in", "both"]


class Edges(NamedTuple):
    """The edges of a graph; ``into[v]`` and ``out_of[v]`` are rows of their numbers."""

    edge_index: Array
    into: csr_array
    out_of: csr_array

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.into.shape[0])

    @property
    def size(self) -> int:
        """Number of nodes and edges together."""
        return self.num_nodes + self.edge_index.shape[1]


class Neighbourhood(NamedTuple):
    """The nodes, at their distances, and the edges that a node's output depends on.

    ``edges`` are numbers of edges of the whole graph, ``ends`` their ends among the nodes here.
    Nodes that stand for others further away have the distance :data:`UNREACHED`.
    """

    nodes: Array
    distance: Array
    edges: Array
    ends: Array

    @property
    def size(self) -> int:
        """Number of nodes and edges together."""
        return self.nodes.size + self.edges.size


def edges_of(adjacency: Adjacency, num_nodes: int) -> Edges:
    """Return the edges, both directions of an undirected graph, duplicates kept."""
    if not isinstance(adjacency, Tensor) or adjacency.layout != torch.strided:
        graph = adjacency if isinstance(adjacency, Graph) else Graph(adjacency, num_nodes)
        adjacency = graph.edge_index
    if adjacency.dim() != 2 or adjacency.size(0) != 2:
        raise GraphError(
            f"distances need an edge_index of shape [2, m], but got {list(adjacency.shape)}."
        )
    edge_index = adjacency.detach().cpu().numpy()

    def by(this: int) -> csr_array:
        order = np.argsort(edge_index[this], kind="stable")
        starts = np.cumsum([0, *np.bincount(edge_index[this], minlength=num_nodes)])
        others = edge_index[1 - this][order]
        return csr_array((order, others, starts), shape=(num_nodes, num_nodes))

    return Edges(edge_index, into=by(1), out_of=by(0))


def distances_to(
    node: int, edges: Edges, limit: int | None = None, needed: Array | None = None
) -> Array:
    """Return the number of steps from every node to ``node``, or :data:`UNREACHED`.

    The search ends after ``limit`` steps, or when it has found all nodes of the mask ``needed``.
    """
    distance = np.full(edges.num_nodes, UNREACHED)
    last = np.empty(edges.num_nodes, dtype=int)  # place of a node in the frontier
    frontier, steps = np.array([node]), 0
    missing = -1 if needed is None else int(needed.sum())
    while frontier.size:
        distance[frontier] = steps
        if needed is not None:
            missing -= int(needed[frontier].sum())
        if steps == limit or missing == 0:
            break
        sources = edges.into[frontier].indices
        found = sources[distance[sources] == UNREACHED]
        last[found] = np.arange(found.size)
        frontier, steps = found[last[found] == np.arange(found.size)], steps + 1  # each node once
    return distance


def neighbourhood(node: int, edges: Edges, radius: int, outer: Outer) -> Neighbourhood:
    """Return the nodes within ``radius`` steps, with the edges between them and ``outer`` ones.

    Layers such as GCN normalise by degrees, which the nodes at the radius would lose. So they may
    keep the edges from further nodes (``outer="in"``), or from and to them (``"both"``), which
    keeps an undirected graph undirected. Any node can stand at the far ends of these edges, so few
    nodes stand for all.
    """
    distance = distances_to(node, edges, limit=radius)
    inside = np.flatnonzero(distance != UNREACHED)
    into = edges.into[inside]
    from_inside = distance[into.indices] != UNREACHED
    numbers = into.data if outer != "none" else into.data[from_inside]
    crossing = ~from_inside if outer != "none" else np.zeros(numbers.size, dtype=bool)
    if outer == "both":
        out_of = edges.out_of[inside]
        leaving = out_of.data[distance[out_of.indices] == UNREACHED]
        numbers = np.concatenate([numbers, leaving])
        crossing = np.concatenate([crossing, np.ones(leaving.size, dtype=bool)])
    ends = np.searchsorted(inside, edges.edge_index[:, numbers])
    if not crossing.any():
        return Neighbourhood(inside, distance[inside], numbers, ends)
    source, target = edges.edge_index[:, numbers[crossing]]
    outward = distance[target] == UNREACHED
    inner, far = np.where(outward, (source, target), (target, source))
    # The k-th far neighbour of every inner node becomes the k-th far node.
    pairs, which = np.unique(inner * edges.num_nodes + far, return_inverse=True)
    inner, far = np.divmod(pairs, edges.num_nodes)
    rank = np.arange(pairs.size) - np.searchsorted(inner, inner)
    ends[outward.astype(int), np.flatnonzero(crossing)] = inside.size + rank[which]
    nodes = np.concatenate([inside, far[np.unique(rank, return_index=True)[1]]])
    return Neighbourhood(nodes, distance[nodes], numbers, ends)


def copies(data: Any, x: Tensor, parts: Sequence[Neighbourhood]) -> Any:
    """Return ``data`` with the parts side by side, as one graph with features ``x``."""
    nodes = torch.from_numpy(np.concatenate([part.nodes for part in parts]))
    edges = torch.from_numpy(np.concatenate([part.edges for part in parts]))
    firsts = np.cumsum([0, *(part.nodes.size for part in parts[:-1])])
    ends = [first + part.ends for first, part in zip(firsts, parts, strict=True)]
    edge_index = torch.from_numpy(np.concatenate(ends, axis=1)).to(x.device)
    if isinstance(data, tuple | list):
        return (x, edge_index)
    chosen = copy.copy(data)
    for key, value in data.to_dict().items():
        if isinstance(value, Tensor) and key not in ("x", "edge_index"):
            which = nodes if data.is_node_attr(key) else edges if data.is_edge_attr(key) else None
            chosen[key] = value if which is None else value[which.to(value.device)]
    chosen.x, chosen.edge_index = x, edge_index
    if "num_nodes" in chosen:
        chosen.num_nodes = nodes.numel()
    return chosen
