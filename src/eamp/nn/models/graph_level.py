"""``GraphLevel``: any model of nodes, with a readout, as a model of graphs."""

import inspect
from contextlib import nullcontext
from typing import Literal

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.resolver import aggregation_resolver

from eamp.graph import Adjacency, Graph
from eamp.graph.batches import running_with, set_batch
from eamp.nn.checks import check_module
from eamp.nn.models.model_inside import ModelInside
from eamp.nn.wrapping import has_bare_layers

READOUTS = ("mean", "sum", "max")


class GraphLevel(ModelInside):
    r"""Any model of nodes, whose outputs are aggregated over the nodes of every graph.

    A model that takes a ``batch`` gets it.

    Args:
        model: A model of :mod:`eamp.nn` or of PyG, with an output per class or target.
        readout: ``"mean"``, ``"sum"`` or ``"max"`` over the nodes, by PyG's aggregations.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices
          :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`, and the graph of every node
          :math:`(|\mathcal{V}|)`; without the last, that of the :class:`eamp.Graph`.
        - **output:** :math:`(|\mathcal{G}|, F_{out})` for :math:`|\mathcal{G}|` graphs.

    Example:
        >>> import torch
        >>> from eamp.nn import GCN
        >>> model = GraphLevel(GCN(16, 64, 2, num_layers=2), readout="sum")
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> model(torch.randn(4, 16), edge_index, torch.tensor([0, 0, 1, 1])).shape
        torch.Size([2, 2])
    """

    def __init__(self, model: Module, readout: Literal["mean", "sum", "max"] = "mean") -> None:
        super().__init__()
        check_module(model, "GraphLevel")
        if readout not in READOUTS:
            expected = ", ".join(map(repr, READOUTS))
            raise ValueError(f"readout must be one of {expected}, but is {readout!r}.")
        self.model, self.readout = model, readout
        self.aggregation = aggregation_resolver(readout)
        self.takes_batch = "batch" in inspect.signature(model.forward).parameters

    def forward(self, x: Tensor, edge_index: Adjacency, batch: Tensor | None = None) -> Tensor:
        """Return the outputs of every graph."""
        graph = edge_index
        if not isinstance(graph, Graph) and not has_bare_layers(self.model):
            # So that the step and the norms of eamp know the graphs, too.
            graph = Graph(edge_index, x.size(0), batch=batch)
        if batch is None and isinstance(graph, Graph):
            batch = graph.batch
        compiled = torch.compiler.is_compiling()
        if isinstance(graph, Tensor) and not compiled:
            set_batch(graph, batch)  # for the layers that are called with edge_index alone
        with nullcontext() if compiled else running_with(batch):
            out = self.model(x, graph, batch=batch) if self.takes_batch else self.model(x, graph)
        graphs = graph.num_graphs if isinstance(graph, Graph) else None
        if batch is None:
            batch, graphs = x.new_zeros(x.size(0)).long(), 1
        return self.aggregation(out, batch, dim_size=graphs)

    def extra_repr(self) -> str:
        """Return the readout."""
        return f"readout={self.readout!r}"
