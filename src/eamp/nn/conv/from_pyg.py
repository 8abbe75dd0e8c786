"""A PyG layer where an :class:`eamp.Graph` may come in place of ``edge_index``."""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor
from torch.nn import Module

from eamp.graph import Adjacency, Graph
from eamp.nn.conv.gcn_conv import MessagePassingLayer


def with_weights(conv: Module, graph: Graph, options: dict[str, Any]) -> dict[str, Any]:
    """``options`` with the weights of ``graph`` among them, if it has any, the layer has a use for them, and no others are given."""
    if graph.edge_weight is None or options.get("edge_weight") is not None:
        return options
    return (
        {**options, "edge_weight": graph.edge_weight}
        if "edge_weight" in inspect.signature(conv.forward).parameters
        else options
    )


class FromPyG(MessagePassingLayer):
    r"""A layer of PyG that also takes an :class:`eamp.Graph`, whose edges it hands on, and its weights to layers that take them.

    Args:
        conv: a layer called as ``conv(x, edge_index, ...)``.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`.
        - **output:** whatever ``conv`` returns.

    BibTeX key for ``eamp cite``: ``fey2019fast``.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GATConv
        >>> g = eamp.Graph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> FromPyG(GATConv(4, 2))(torch.randn(3, 4), g).shape
        torch.Size([3, 2])
    """

    def __init__(self, conv: Module) -> None:
        super().__init__()
        self.conv = conv

    def reset_parameters(self) -> None:
        """Reset the layer."""
        self.conv.reset_parameters()  # type: ignore[operator]  # torch types a module's attributes as tensors or modules

    def forward(self, x: Tensor, edge_index: Adjacency, **options: Any) -> Tensor:
        """Run the layer."""
        if isinstance(edge_index, Graph):
            return self.conv(
                x, edge_index.edge_index, **with_weights(self.conv, edge_index, options)
            )
        return self.conv(x, edge_index, **options)

    def __repr__(self) -> str:
        return repr(self.conv)
