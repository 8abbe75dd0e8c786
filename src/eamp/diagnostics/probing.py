"""``probe``: what every message-passing layer of a model does to the embedding, without touching its ``forward``."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch.utils.hooks import RemovableHandle

from eamp.diagnostics.matrix_measures import dead_units
from eamp.diagnostics.measures import Choice, choose
from eamp.diagnostics.rendering import html_summary, text_summary
from eamp.diagnostics.watched_layers import (
    adjacency_of_call,
    type_name,
    watched_layers,
    whole_models,
)
from eamp.functional import check_temperature
from eamp.graph import Graph, GraphError
from eamp.graph.edge_index_cache import as_graph
from eamp.nn.wrapping import Selection

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

Row = dict[str, Any]


def probe(
    model: Module,
    measures: Choice = None,
    *,
    layers: Selection = None,
    labels: Tensor | None = None,
    temperature: float = 10.0,
    gradients: bool = False,
    history: bool = False,
) -> Probe:
    """Measure the output of every message-passing layer of ``model`` whenever the model runs inside the ``with`` block.

    Works on any model with PyG's layers, ours, or :class:`eamp.EntropyAware` ones, in training and without gradients. The model's
    output, its random numbers and its gradients stay what they are; only numbers are kept, no embedding. A directed graph
    is measured as an undirected one.

    Args:
        model: the model, or a single layer.
        measures: names of measures (see :mod:`eamp.diagnostics.measures`), all by default; or your own, as a mapping of names to
            functions of ``(x, graph)``.
        layers: names (as in ``model.named_modules()``) or types of the modules to watch, instead of the outermost message-passing layers.
            A residual or a norm that is added outside of the layer is seen only by watching the module that holds both,
            say ``layers=DeepGCNLayer``.
        labels: ``[n]``, to measure how well each layer separates the classes.
        temperature: of the entropy.
        gradients: record the norm of the loss gradient at every layer's output when ``backward`` is called inside the block.
        history: keep every forward pass; otherwise the last one only, so that memory does not grow with training.

    Returns:
        A :class:`Probe`. Its ``table()`` is a pandas DataFrame with one row per layer that ran (a shared layer applied L times gives L
        rows), its ``plot()`` an Altair chart, and every column is an attribute, as in ``p.energy``.

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
    return Probe(
        model,
        measures,
        layers=layers,
        labels=labels,
        temperature=temperature,
        gradients=gradients,
        history=history,
    )


class Probe:
    """What :func:`probe` returns: a context manager that collects, and afterwards the numbers it collected."""

    def __init__(
        self,
        model: Module,
        measures: Choice = None,
        *,
        layers: Selection = None,
        labels: Tensor | None = None,
        temperature: float = 10.0,
        gradients: bool = False,
        history: bool = False,
    ) -> None:
        self.model, self.gradients, self.history = model, gradients, history
        self.measures = choose(measures, float(check_temperature(temperature)), labels)
        self.watched = watched_layers(model, layers)
        self.forwards: list[list[Row]] = []
        self._handles: list[RemovableHandle] = []
        self._depth = 0  # how many modules that hold every watched layer are running
        self._adjacency: Any = (
            None  # the last one seen, for watched modules that are not called with one
        )

    def __enter__(self) -> Probe:
        """Place the hooks."""
        if self._handles:
            raise RuntimeError(
                "this probe is already at work; make another with eamp.probe(model)."
            )
        for layer, name in self.watched.items():
            self._handles.append(
                layer.register_forward_hook(partial(self._after_layer, name), with_kwargs=True)
            )
        for module in whole_models(self.model, self.watched):
            self._handles.append(module.register_forward_pre_hook(self._before_model))
            self._handles.append(module.register_forward_hook(self._after_model, always_call=True))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the hooks, whatever happened."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._depth, self._adjacency = [], 0, None

    def clear(self) -> None:
        """Forget what was recorded.

        Only a model whose layers are called one by one, without any ``forward`` around them, needs it: nothing then tells
        where one pass ends and the next begins, and rows add up.
        """
        self.forwards = []

    @property
    def rows(self) -> list[Row]:
        """The last forward pass, a dictionary per layer."""
        return self.forwards[-1] if self.forwards else []

    def table(self) -> pd.DataFrame:
        """One row per layer of the last forward pass; of every pass, counted in a column ``forward``, with ``history=True``."""
        import pandas as pd

        self._check_seen()
        if not self.history:
            return pd.DataFrame(self.rows)
        return pd.DataFrame(
            [{"forward": k, **row} for k, rows in enumerate(self.forwards, start=1) for row in rows]
        )

    def plot(self, measures: Iterable[str] | None = None) -> alt.ConcatChart:
        """Every measure against depth, as small charts side by side."""
        from eamp.diagnostics.charts import depth_charts

        return depth_charts(self.table(), measures)

    def __getattr__(self, name: str) -> np.ndarray[Any, Any]:
        if (
            name.startswith("_")
            or name == "forwards"
            or not self.forwards
            or name not in self.rows[0]
        ):
            raise AttributeError(
                f"the probe has no {name!r}; after a forward pass it has the columns of its table()."
            )
        return np.array([row.get(name) for row in self.rows])

    def __repr__(self) -> str:
        return text_summary(self._title(), self.rows)

    def _repr_html_(self) -> str:
        return html_summary(self._title(), self.rows)

    # --- Hooks --------------------------------------------------------------------------------------------------------

    def _before_model(self, module: Module, args: Any) -> None:
        if self._depth == 0:
            self._start()
        self._depth += 1

    def _after_model(self, module: Module, args: Any, out: Any) -> None:
        self._depth -= 1

    def _start(self) -> None:
        self.forwards = [*self.forwards, []] if self.history else [[]]

    def _after_layer(
        self, name: str, layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> None:
        # Compiled code has no place for numbers; and a checkpointed layer that runs again during backward has been seen.
        if torch.compiler.is_compiling() or torch._C._current_graph_task_id() != -1:
            return
        x = out[0] if isinstance(out, tuple | list) else out
        if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point():
            warnings.warn(
                f"{name or type(layer).__name__} gives no [num_nodes, F] embedding; the probe passes it over.",
                stacklevel=2,
            )
            return
        if not self.forwards:
            self._start()
        came_in = args[0] if args else kwargs.get("x")
        row: Row = {
            "layer": len(self.rows) + 1,
            "name": name,
            "type": type_name(layer),
            "nodes": x.size(0),
            "width": x.size(1),
        }
        row |= self.measures.of(x.detach(), self._graph_of(name, layer, args, kwargs, x))
        if "dead_units" in row:
            # Behind the activation that follows a layer its dead units are the zero columns of the next layer's input.
            row["dead_inputs"] = (
                float(dead_units(came_in))
                if isinstance(came_in, Tensor) and came_in.dim() == 2
                else float("nan")
            )
        if self.gradients:
            row["gradient"] = float("nan")
            if x.requires_grad:
                x.register_hook(partial(record_gradient, row))
        self.rows.append(row)

    def _graph_of(
        self, name: str, layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any], x: Tensor
    ) -> Graph | None:
        adjacency = adjacency_of_call(layer, args, kwargs)
        if adjacency is None:
            adjacency = self._adjacency
        self._adjacency = adjacency
        try:
            if adjacency is None:
                raise GraphError("there is no edge_index among its arguments")
            graph = as_graph(adjacency, x.size(0), symmetrize=True)
            if graph.num_nodes != x.size(0):
                raise GraphError(
                    f"its output has {x.size(0)} rows but the graph {graph.num_nodes} nodes"
                )
        except GraphError as error:
            warnings.warn(
                f"{name or type(layer).__name__} cannot be measured on a graph: {error}",
                stacklevel=2,
            )
            return None
        return graph

    # --- Words --------------------------------------------------------------------------------------------------------

    def _title(self) -> str:
        passes = f", last of {len(self.forwards)} forward passes" if len(self.forwards) > 1 else ""
        return f"Probe of {type(self.model).__name__}: {len(self.rows)} layers{passes}"

    def _check_seen(self) -> None:
        if not any(self.forwards):
            raise RuntimeError(
                "the probe has seen no layer run. Call the model inside the block: with eamp.probe(model) as p: model(x, edge_index). "
                "A model compiled with torch.compile has no hooks to see it by: probe the original."
            )


def record_gradient(row: Row, gradient: Tensor) -> None:
    """‖∂loss/∂X‖ at a layer's output; the hook holds the row of numbers, not the embedding."""
    row["gradient"] = float(gradient.detach().double().norm())
