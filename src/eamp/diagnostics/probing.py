"""``probe``: measure the output of every message-passing layer, without changing the model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch.utils.hooks import RemovableHandle

from eamp.diagnostics.measures.embedding import Embedding, embedding_of
from eamp.diagnostics.measures.named_measures import MeasureSelection, as_labels, select_measures
from eamp.diagnostics.rendering import html_summary, text_summary
from eamp.diagnostics.typed_layers import relations_of_call
from eamp.diagnostics.watched_layers import (
    LayerCall,
    adjacency_of_call,
    models_around,
    type_name,
    watched_layers,
)
from eamp.functional import check_temperature
from eamp.graph import Graph, GraphError, as_graph
from eamp.nn.wrapping import Selection

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

Row = dict[str, Any]


class Probe:
    """A context manager that measures the output of every message-passing layer of ``model``.

    It works on any model with PyG's layers, eamp's, or :class:`eamp.EntropyAware` ones, with and
    without gradients. The model's output, gradients and random numbers do not change. The probe
    keeps numbers, not embeddings. A directed graph is measured as an undirected one. A layer over
    several types of nodes has one row per relation, named in the column ``relation``.

    Afterwards ``table()`` is a pandas DataFrame with one row for every time a layer ran, ``plot()``
    an Altair chart, and every column of the table an attribute, as in ``p.energy``.

    Args:
        model: the model, or a single layer.
        measures: names of measures (see :mod:`eamp.diagnostics.measures`), by default all; or a
            mapping of names to functions of ``(x, graph)``.
        layers: names (as in ``model.named_modules()``) or types of the modules to measure, by
            default the outermost message-passing layers. A residual connection or a norm outside
            of a layer is seen only by measuring the module that holds both, for example with
            ``layers=DeepGCNLayer``.
        labels: classes ``[n]`` of the first layer's nodes, to measure how well each layer
            separates them; negative ones are unknown.
        temperature: temperature of the entropy.
        gradients: whether to record the norm of the loss gradient at every layer's output, if
            ``backward`` is called inside the block.
        history: whether to keep every forward pass instead of the last one; memory then grows
            with the number of passes.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GCN
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> with eamp.probe(GCN(16, 64, num_layers=4)) as p:
        ...     out = p.model(torch.randn(3, 16), edge_index)
        >>> p.table()[["layer", "name", "type"]]
           layer     name     type
        0      1  convs.0  GCNConv
        1      2  convs.1  GCNConv
        2      3  convs.2  GCNConv
        3      4  convs.3  GCNConv
        >>> p.energy.shape
        (4,)
    """

    def __init__(
        self,
        model: Module,
        measures: MeasureSelection = None,
        *,
        layers: Selection = None,
        labels: Tensor | None = None,
        temperature: float = 10.0,
        gradients: bool = False,
        history: bool = False,
    ) -> None:
        self.model, self.labels, self.gradients, self.history = model, labels, gradients, history
        self.measures = select_measures(measures, float(check_temperature(temperature)), labels)
        self.watched = watched_layers(model, layers)
        self.forwards: list[list[Row]] = []
        self._handles: list[RemovableHandle] = []
        self._depth = 0  # number of running modules that contain all watched layers
        self._adjacency: Any = None  # the last one seen, for modules that are called without
        self.relations: dict[str, Graph] = {}  # the graphs of a typed model, by relation

    def __enter__(self) -> Probe:
        """Add the hooks."""
        if self._handles:
            raise RuntimeError("this probe is in use already. Make another: eamp.probe(model).")
        for layer, name in self.watched.items():
            hook = partial(self._after_layer, name)
            self._handles.append(layer.register_forward_hook(hook, with_kwargs=True))
        for module in models_around(self.model, self.watched):
            self._handles.append(module.register_forward_pre_hook(self._before_model))
            self._handles.append(module.register_forward_hook(self._after_model, always_call=True))
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._depth, self._adjacency = [], 0, None

    def clear(self) -> None:
        """Delete all records.

        This is needed only if layers are called one by one, outside of any model's ``forward``: a
        probe cannot tell then where a pass ends, and records every call in one pass.
        """
        self.forwards = []

    @property
    def rows(self) -> list[Row]:
        """The last forward pass, one dictionary per layer."""
        return self.forwards[-1] if self.forwards else []

    def table(self) -> pd.DataFrame:
        """Return one row per layer of the last forward pass.

        With ``history=True`` it holds every pass, numbered from 1 in a column ``forward``.
        """
        import pandas as pd  # slow to load, and needed for tables only

        if not any(self.forwards):
            raise RuntimeError(
                "the probe has seen no layer run. Call the model inside the block: "
                "with eamp.probe(model) as p: model(x, edge_index). "
                "A model compiled with torch.compile runs no hooks: probe the original."
            )
        if not self.history:
            return pd.DataFrame(self.rows)
        passes = enumerate(self.forwards, start=1)
        return pd.DataFrame([{"forward": k, **row} for k, rows in passes for row in rows])

    def plot(self, measures: Iterable[str] | None = None) -> alt.ConcatChart:
        """Return charts of the measures against depth, side by side."""
        from eamp.diagnostics.charts import depth_charts  # loads Altair, which is slow

        return depth_charts(self.table(), measures)

    def __getattr__(self, name: str) -> np.ndarray[Any, Any]:
        private = name.startswith("_") or name == "forwards"  # read before __init__ has set them
        if private or not self.rows or name not in self.rows[0]:
            raise AttributeError(
                f"the probe has no {name!r}. After a forward pass it has the columns of table()."
            )
        return np.array([row.get(name) for row in self.rows])

    def __repr__(self) -> str:
        return "\n".join(text_summary(title, rows) for title, rows in self._parts())

    def _repr_html_(self) -> str:
        return "".join(html_summary(title, rows) for title, rows in self._parts())

    def _parts(self) -> list[tuple[str, list[Row]]]:
        """Return titles and rows of the summaries, one or one per relation."""
        passes = f", last of {len(self.forwards)} forward passes" if len(self.forwards) > 1 else ""
        model = type(self.model).__name__
        names = dict.fromkeys(row.get("relation") for row in self.rows) or {None: None}
        parts = []
        for name in names:
            rows = [row for row in self.rows if row.get("relation") == name]
            relation = f", {name}" if name is not None else ""
            number = f"{len(rows)} layer{'' if len(rows) == 1 else 's'}"
            parts.append((f"Probe of {model}{relation}: {number}{passes}", rows))
        return parts

    def _before_model(self, module: Module, args: Any) -> None:
        if self._depth == 0:
            self._start_pass()
        self._depth += 1

    def _after_model(self, module: Module, args: Any, out: Any) -> None:
        self._depth -= 1

    def _start_pass(self) -> None:
        self.forwards = [*self.forwards, []] if self.history else [[]]

    def _after_layer(
        self, name: str, layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> None:
        # torch.compile cannot trace the measures. A backward pass is running if a checkpointed
        # layer runs for the second time.
        if torch.compiler.is_compiling() or torch._C._current_graph_task_id() != -1:
            return
        if isinstance(out, Mapping):
            self._after_typed_layer(name, layer, args, kwargs, out)
            return
        x = out[0] if isinstance(out, tuple | list) else out
        if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point():
            warnings.warn(
                f"the probe skips {name or type(layer).__name__}: its output is not an embedding "
                "[num_nodes, F]. Choose other modules with layers=[...].",
                stacklevel=2,
            )
            return
        if not self.forwards:
            self._start_pass()
        if self.labels is not None and not self.rows:
            as_labels(self.labels, x.size(0))
        row: Row = {"layer": self._next_layer(), "name": name, "type": type_name(layer)}
        row |= {"nodes": x.size(0), "width": x.size(1)}
        graph = self._graph_of(adjacency_of_call(layer, args, kwargs), name or type_name(layer), x)
        row |= self.measures.evaluate(x.detach(), graph, self._precision(x))
        entering = embedding_of(args[0] if args else kwargs.get("x"), graph)
        row |= dead_inputs(row, entering)
        if self.gradients:
            row["gradient"] = float("nan")
            if x.requires_grad:
                x.register_hook(partial(record_gradient, row))
        row |= self._also_measure(LayerCall(layer, args, kwargs, entering, x, graph))
        self.rows.append(row)

    def _after_typed_layer(
        self,
        name: str,
        layer: Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Mapping[str, Tensor],
    ) -> None:
        """Add a row for every relation, whose measures are those of its undirected graph."""
        if not self.forwards:
            self._start_pass()
        number = self._next_layer()
        try:
            for relation, given, x, graph in relations_of_call(layer, args, kwargs, out):
                row: Row = {"layer": number, "name": name, "type": type_name(layer)}
                row |= {"relation": relation, "nodes": x.size(0), "width": x.size(1)}
                row |= self.measures.evaluate(x, graph)
                entering = embedding_of(given, graph)
                row |= dead_inputs(row, entering)
                call = LayerCall(layer, (given,), {}, entering, x, graph)
                row |= self._also_measure(call)
                self.relations[relation] = graph
                self.rows.append(row)
        except GraphError as error:
            warnings.warn(f"{name or type_name(layer)} cannot be measured: {error}", stacklevel=3)

    def _precision(self, x: Tensor) -> torch.dtype:
        """Return the dtype of sums over edges."""
        return torch.float64

    def _next_layer(self) -> int:
        return int(self.rows[-1]["layer"]) + 1 if self.rows else 1

    def _also_measure(self, call: LayerCall) -> Row:
        """Return further numbers about the call of a layer; a diagnosis has some."""
        return {}

    def _graph_of(self, adjacency: Any, name: str, x: Tensor) -> Graph | None:
        """Return the graph of a call, or warn and return ``None`` if it does not fit ``x``."""
        if adjacency is not None:
            self._adjacency = adjacency
        try:
            if self._adjacency is None:
                raise GraphError("there is no edge_index among its arguments")
            graph = as_graph(self._adjacency, x.size(0), symmetrize=True)
            if graph.num_nodes != x.size(0):
                raise GraphError(
                    f"its output has {x.size(0)} rows but the graph {graph.num_nodes} nodes"
                )
        except GraphError as error:
            warnings.warn(f"{name} cannot be measured on a graph: {error}", stacklevel=3)
            return None
        return graph


probe = Probe  # `with eamp.probe(model) as p` reads as the action it is
"""Another name of :class:`eamp.diagnostics.Probe`, which measures every layer of a model."""


def dead_inputs(measured: Row, entering: Embedding | None) -> Row:
    """Return the share of dead units at a layer's input, where that of its output is measured.

    The dead units of a layer behind its activation are the zero columns of the next layer's input.
    """
    if "dead_units" not in measured:
        return {}
    return {"dead_inputs": float("nan") if entering is None else float(entering.dead_units())}


def record_gradient(row: Row, gradient: Tensor) -> None:
    """Record ‖∂loss/∂X‖ at a layer's output; the hook holds the row, not the embedding."""
    row["gradient"] = float(gradient.detach().double().norm())
