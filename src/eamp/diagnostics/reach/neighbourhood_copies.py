"""Differentiate the outputs of many nodes at once, side by side on copies of their neighbourhoods.

This is possible where a model sees a few steps far only, which is tried out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from eamp.diagnostics.reach.jacobian_norms import Derivative, Outputs
from eamp.diagnostics.reach.receptive_field import (
    UNREACHED,
    Array,
    Edges,
    Neighbourhood,
    Outer,
    copies,
    distances_to,
    neighbourhood,
)
from eamp.graph import GraphError
from eamp.nn.wrapping import message_passing_layers

LARGEST_PART = 0.5  # of the graph: a node that depends on more is run on the whole graph
TRIED = 2  # nodes on which it is tried how far the model sees

Part = tuple[int, Neighbourhood]
"""A node and its neighbourhood."""


def small_parts(derivative: Derivative, data: Any, chosen: Array, edges: Edges) -> Iterator[Part]:
    """Yield every chosen node whose neighbourhood is small and gives the same output."""
    if isinstance(data, tuple | list) and (len(data) > 2 or not isinstance(data[1], Tensor)):
        return  # nobody knows which rows of the other arguments belong to which nodes
    layers = sum(1 for _ in message_passing_layers(derivative.model))
    for radius in range(max(layers, 1), edges.num_nodes):
        tried = nodes_with_more_around(chosen, edges, radius)
        if neighbourhood(tried[0], edges, radius, "both").size > LARGEST_PART * edges.size:
            return
        # More of the graph, and another node's part beside it, must not change the outputs.
        expected = outputs_on_parts(derivative, data, [*tried, chosen[-1]], edges, radius + 1)
        for outer in get_args(Outer):
            seen = outputs_on_parts(derivative, data, tried, edges, radius, outer)
            if expected is None or seen is None or not same(seen, expected[: len(tried)]):
                continue
            for node in chosen.tolist():
                part = neighbourhood(node, edges, radius, outer)
                if part.size <= LARGEST_PART * edges.size:
                    yield node, part
            return


def nodes_with_more_around(chosen: Array, edges: Edges, radius: int) -> list[int]:
    """Return up to :data:`TRIED` nodes that have others further away, or any if none has."""
    tried: list[int] = []
    for node in chosen.tolist():
        if distances_to(node, edges, radius + 1).max() > radius:
            tried.append(node)
        if len(tried) == TRIED:
            break
    return tried or chosen[:TRIED].tolist()


def outputs_on_parts(
    derivative: Derivative,
    data: Any,
    nodes: Sequence[int],
    edges: Edges,
    radius: int,
    outer: Outer = "both",
) -> Tensor | None:
    """Return the outputs at nodes, computed on their neighbourhoods; ``None`` if that fails."""
    group = [(int(node), neighbourhood(int(node), edges, radius, outer)) for node in nodes]
    try:
        with torch.no_grad():
            return forward_on_copies(derivative, data, group).out
    except (RuntimeError, IndexError, ValueError):  # a model for graphs of one size only
        return None


def same(a: Tensor, b: Tensor) -> bool:
    """Return whether outputs differ by no more than rounding."""
    tolerance = math.sqrt(torch.finfo(a.dtype).eps) * b.abs().amax()
    return bool(((a - b).abs() <= tolerance).all())


def side_by_side(parts: Iterable[Part], most: int) -> Iterator[list[Part]]:
    """Yield groups of parts that together have at most ``most`` nodes and edges."""
    size, group = 0, list[Part]()
    for part in parts:
        if group and size + part[1].size > most:
            yield group
            size, group = 0, []
        size, group = size + part[1].size, [*group, part]
    if group:
        yield group


def forward_on_copies(derivative: Derivative, data: Any, group: Sequence[Part]) -> Outputs:
    """Return the outputs at the nodes of a group, each computed on its neighbourhood."""
    parts = [part for _, part in group]
    firsts = np.cumsum([0, *(part.nodes.size for part in parts)])
    seeds = [
        int(first + np.searchsorted(part.nodes[part.distance != UNREACHED], node))
        for first, (node, part) in zip(firsts, group, strict=False)
    ]
    rows = torch.from_numpy(np.concatenate([part.nodes for part in parts]))
    x = features_and_edges(data)[0].detach()
    x = x[rows.to(x.device)].requires_grad_()
    return derivative.forward(copies(data, x, parts), x, torch.tensor(seeds))


def on_copies(
    derivative: Derivative, data: Any, group: Sequence[Part]
) -> dict[int, tuple[Array, Array]]:
    """Return influences and distances for every node of a group."""
    outputs = forward_on_copies(derivative, data, group)
    influences = derivative.absolute(outputs, range(len(group)))
    cuts = np.cumsum([part.nodes.size for _, part in group])[:-1]
    by_node = zip(group, np.split(influences, cuts), strict=True)
    return {node: (values, part.distance) for (node, part), values in by_node}


def features_and_edges(data: Any) -> tuple[Tensor, Any]:
    """Return the features, as a leaf to differentiate in, and the adjacency."""
    pair = isinstance(data, tuple | list)
    if pair and len(data) >= 2:
        x, adjacency = data[0], data[1]
    else:
        x, adjacency = getattr(data, "x", None), getattr(data, "edge_index", None)
        adjacency = getattr(data, "adj_t", None) if adjacency is None else adjacency
    if not isinstance(x, Tensor) or not x.is_floating_point() or x.layout != torch.strided:
        raise GraphError("influence differentiates in data.x, which must be a dense float tensor.")
    if adjacency is None:
        raise GraphError("influence needs the edges: data.edge_index, or (x, edge_index).")
    return x.detach().requires_grad_(), adjacency
