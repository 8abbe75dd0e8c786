"""Run a layer again without its graph, so that every node receives from itself alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import MessagePassing

from eamp.diagnostics.watched_layers import adjacency_of_call
from eamp.graph import Graph
from eamp.nn.conv.gcn_conv import MessagePassingLayer
from eamp.nn.entropy_aware import EntropyAware

# What a layer may raise that cannot do without its edges.
REFUSALS = (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError)


def without_aggregation(
    layer: Module, x: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], shape: torch.Size
) -> Tensor | None:
    """Return what the layer makes of ``x`` if every node is its own only neighbour.

    Aggregation is then the identity, and the weights of the layer remain, with any activation or
    norm inside it. An entropy step is left out, being a function of the graph.

    Args:
        layer: the layer.
        x: the features to give it.
        args: the positional arguments of the call to repeat, of which the first was the features.
        kwargs: the named arguments of that call.
        shape: the shape that the output must have.

    Returns:
        The output, or ``None`` for a layer that cannot be run so: one that keeps its graph, takes
        no graph, or gives an error or another shape without one.
    """
    adjacency = adjacency_of_call(layer, args, kwargs)
    inner = layer.conv if isinstance(layer, EntropyAware) else layer
    if adjacency is None or any(getattr(m, "cached", False) for m in layer.modules()):
        return None
    num_edges = edges_in(adjacency)
    loops = self_loops(inner, x)

    def replaced(value: Any) -> Any:
        if value is adjacency:
            return loops
        if isinstance(value, Tensor) and value.size(0) == num_edges != x.size(0):
            return for_loops(value, loops)
        return value

    try:
        # A layer may draw random numbers, which must not change those of the model.
        with torch.random.fork_rng(devices=[]):
            if args:
                out = inner.forward(x, *map(replaced, args[1:]), **map_values(replaced, kwargs))
            else:
                out = inner.forward(**map_values(replaced, kwargs) | {"x": x})
    except REFUSALS:
        return None
    out = out[0] if isinstance(out, tuple | list) else out
    return out if isinstance(out, Tensor) and out.shape == shape else None


def self_loops(layer: Module, x: Tensor) -> Tensor | Graph:
    """Return the adjacency with which each node receives itself, once."""
    none = torch.empty(2, 0, dtype=torch.long, device=x.device)
    convs = [m for m in layer.modules() if isinstance(m, MessagePassing)]
    if any(isinstance(m, MessagePassingLayer) for m in layer.modules()) and not convs:
        return Graph(none, num_nodes=x.size(0))  # our layers add the node itself
    if any(hasattr(conv, "eps") for conv in convs):  # GIN adds (1 + ε) x to the sum over edges
        return none
    return torch.arange(x.size(0), device=x.device).expand(2, -1).contiguous()


def edges_in(adjacency: Any) -> int:
    """Return the number of edges, by which their features are recognised; -1 if not given."""
    dense = isinstance(adjacency, Tensor) and adjacency.layout == torch.strided
    return adjacency.size(1) if dense else -1


def for_loops(values: Tensor, loops: Tensor | Graph) -> Tensor:
    """Return features of edges for self-loops: the mean ones, or weights of 1."""
    count = loops.size(1) if isinstance(loops, Tensor) else 0
    if values.dim() == 1:
        return values.new_ones(count)
    mean = values.mean(0, keepdim=True) if values.is_floating_point() else values[:1]
    return mean.expand(count, *values.shape[1:])


def map_values(function: Any, mapping: dict[str, Any]) -> dict[str, Any]:
    """Apply a function to every value."""
    return {name: function(value) for name, value in mapping.items()}
