"""An adapter with which a PyG layer takes an :class:`eamp.Graph` in place of ``edge_index``."""

import inspect
from typing import Any

from torch import Tensor
from torch.nn import Module

from eamp.graph import Adjacency, Graph, check_features
from eamp.nn.conv.gcn_conv import MessagePassingLayer


def with_weights(conv: Module, graph: Graph, options: dict[str, Any]) -> dict[str, Any]:
    """Return ``options`` with the edge weights of ``graph`` added.

    They are added only if the graph has weights, the layer takes an ``edge_weight``, and none is
    among the options yet.
    """
    takes_weights = "edge_weight" in inspect.signature(conv.forward).parameters
    if not takes_weights or options.get("edge_weight") is not None or graph.edge_weight is None:
        return options
    return {**options, "edge_weight": graph.edge_weight}


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
        check_edge_index(self.conv, edge_index)
        if isinstance(edge_index, Graph):
            options = with_weights(self.conv, edge_index, options)
            return self.conv(x, edge_index.edge_index, **options)
        return self.conv(x, edge_index, **options)

    def __repr__(self) -> str:
        return repr(self.conv)
