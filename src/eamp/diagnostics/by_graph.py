"""``measure_by_graph``: a probe's table for every graph of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from eamp.diagnostics.measures.named_measures import MeasureSelection
from eamp.diagnostics.probing import Probe, Row
from eamp.diagnostics.running import evaluation_mode, run_model
from eamp.diagnostics.watched_layers import LayerCall, type_name
from eamp.graph import Graph
from eamp.graph.subgraph import subgraph
from eamp.nn.wrapping import Selection

if TYPE_CHECKING:
    import pandas as pd


def measure_by_graph(
    model: Module,
    data: Data,
    measures: MeasureSelection = None,
    *,
    layers: Selection = None,
    temperature: float = 10.0,
) -> pd.DataFrame:
    """Measure the output of every message-passing layer on every graph of a batch.

    A probe and a diagnosis measure a batch as one graph of several components, in which graphs that
    differ from each other hide that the nodes of each are alike. The model runs once, in evaluation
    mode.

    Args:
        model: the model, called with the attributes of ``data`` that its ``forward`` names.
        data: a PyG ``Batch``.
        measures: see :class:`Probe`.
        layers: see :class:`Probe`.
        temperature: temperature of the entropy.

    Returns:
        One row per layer and graph, with the columns of a probe's table and ``graph``, the number
        of the graph in the batch. ``table.groupby("layer").mean(numeric_only=True)`` is the mean
        over graphs.

    Raises:
        ValueError: if ``data`` has no ``batch``.

    Example:
        >>> import eamp
        >>> from torch_geometric.data import Batch
        >>> from torch_geometric.nn import GCN
        >>> batch = Batch.from_data_list(eamp.data.load("wiener:graphs=2").graphs)
        >>> measure_by_graph(GCN(4, 8, num_layers=2), batch, "energy")[["layer", "graph", "nodes"]]
           layer  graph  nodes
        0      1      0     29
        1      1      1     26
        2      2      0     29
        3      2      1     26
    """
    import pandas as pd  # slow to load, and needed for tables only

    batch = getattr(data, "batch", None)
    if batch is None:
        raise ValueError(
            "measure_by_graph needs a batch of graphs, but data has no batch; pass "
            "Batch.from_data_list([data]), or use eamp.probe for one graph."
        )
    probe = ProbeOfGraphs(model, batch, measures, layers=layers, temperature=temperature)
    with evaluation_mode(model), torch.no_grad(), probe:
        run_model(model, data)
    return pd.DataFrame(probe.by_graph)


class ProbeOfGraphs(Probe):
    """A probe that measures every graph of a batch as well."""

    def __init__(self, model: Module, batch: Tensor, *args: Any, **options: Any) -> None:
        super().__init__(model, *args, **options)
        self.batch = batch
        self.by_graph: list[Row] = []
        self.cuts: dict[Graph, list[tuple[Tensor, Graph]]] = {}

    def _also_measure(self, call: LayerCall) -> Row:
        if call.out.size(0) == self.batch.numel() and call.graph is not None:
            name = self.watched[call.layer]
            about = {"layer": len(self.rows) + 1, "name": name, "type": type_name(call.layer)}
            for number, (nodes, part) in enumerate(self._cuts_of(call.graph)):
                size = {"graph": number, "nodes": nodes.numel(), "width": call.out.size(1)}
                measured = self.measures.evaluate(call.out.detach()[nodes], part)
                self.by_graph.append({**about, **size, **measured})
        return {}

    def _cuts_of(self, graph: Graph) -> list[tuple[Tensor, Graph]]:
        """Return the nodes and the graph of every graph of the batch, cut out once."""
        if graph not in self.cuts:
            numbers = range(int(self.batch.max()) + 1)
            nodes = [(self.batch == number).nonzero().squeeze(1) for number in numbers]
            self.cuts[graph] = [(some, subgraph(graph, some)) for some in nodes]
        return self.cuts[graph]
