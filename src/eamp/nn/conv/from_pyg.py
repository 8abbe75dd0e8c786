"""An adapter with which a PyG layer takes an :class:`eamp.Graph` in place of ``edge_index``."""

import inspect
from typing import Any

from torch import Tensor
from torch.nn import Module

from eamp.graph import Adjacency, Graph, check_features
from eamp.nn.conv.gcn_conv import MessagePassingLayer

EDGE_ARGUMENTS = {"edge_weight", "edge_attr", "edge_type"}  # of PyG's layers, with a row per edge


def with_weights(conv: Module, graph: Graph, options: dict[str, Any]) -> dict[str, Any]:
    """Return ``options`` with the edge weights of ``graph`` added.

    They are added only if the graph has weights, the layer takes an ``edge_weight``, and none is
    among the options yet.
    """
    if graph.edge_weight is None or options.get("edge_weight") is not None:
        return options
    if "edge_weight" not in inspect.signature(conv.forward).parameters:
        return options
    return {**options, "edge_weight": graph.edge_weight}


def refuse_rows_of_edges(
    conv: Module, place: int, args: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """Raise an error for tensors with a row per edge, whose order may not be that of a graph.

    The arguments are those of :func:`call_with_edges`.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if later := args[place + 1 :]:
        names = [*inspect.signature(conv.forward).parameters][place + 2 :]
        given |= dict(zip(names, later, strict=False))
    for name in given.keys() & EDGE_ARGUMENTS:
        if isinstance(given[name], Tensor):
            raise ValueError(
                f"{name} has a row per edge, and an eamp.Graph keeps its edges in an order of its "
                f"own; pass graph.edge_index instead of the graph, with the rows of {name} in the "
                "order of its columns."
            )


def call_with_edges(
    conv: Module, place: int, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Adjacency, tuple[Any, ...], dict[str, Any]]:
    """Return the adjacency among the arguments of a layer, and the arguments to call it with.

    A layer of PyG gets the edges of a :class:`eamp.Graph`, which are listed once per graph, and its
    weights, in place of the graph. A layer of eamp gets what is given.

    Args:
        conv: the layer.
        place: the place of ``edge_index`` in ``args``.
        args: the arguments behind the features.
        options: the arguments by name.
    """
    by_name = place >= len(args)
    adjacency = options.get("edge_index") if by_name else args[place]
    if adjacency is None or isinstance(conv, MessagePassingLayer):
        return adjacency, args, options
    check_edge_index(conv, adjacency)
    if not isinstance(adjacency, Graph):
        return adjacency, args, options
    refuse_rows_of_edges(conv, place, args, options)
    edges = adjacency.remember("edge_index", lambda: adjacency.edge_index)
    options = with_weights(conv, adjacency, options)
    if by_name:
        return adjacency, args, {**options, "edge_index": edges}
    return adjacency, (*args[:place], edges, *args[place + 1 :]), options


def check_edge_index(conv: Module, adjacency: Adjacency) -> None:
    """Raise an error for an adjacency of plain Python or NumPy, which PyG's layers do not take."""
    kind = type(adjacency)
    if kind.__module__ in ("builtins", "numpy"):
        raise TypeError(
            f"{type(conv).__name__} needs edge_index as a tensor [2, num_edges] or an eamp.Graph, "
            f"but got a {kind.__name__}; pass torch.as_tensor(edge_index)."
        )


class FromPyG(MessagePassingLayer):
    r"""A PyG layer that also takes an :class:`eamp.Graph`.

    The layer gets the edges of the graph, and their weights if it takes an ``edge_weight``.

    Args:
        conv: A layer that is called as ``conv(x, edge_index, ...)``.
    """

    def __init__(self, conv: Module) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, x: Tensor, edge_index: Adjacency, **options: Any) -> Tensor:
        """Run the layer."""
        if not isinstance(x, tuple):
            check_features(x)
        _, args, options = call_with_edges(self.conv, 0, (edge_index,), options)
        return self.conv(x, *args, **options)

    def __repr__(self) -> str:
        return repr(self.conv)
