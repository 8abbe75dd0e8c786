"""All measures under the names they have in a probe's table, and the selection of some."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from eamp.diagnostics.measures.eigenspace import eigenspace_share
from eamp.diagnostics.measures.embedding import Embedding
from eamp.diagnostics.measures.similarity import group_distance_ratio, mad, mad_gap
from eamp.graph import Graph

OnGraph = Callable[[Tensor, Graph], Tensor | float]
OnEmbedding = Callable[[Embedding], Tensor | float]
MeasureSelection = str | Iterable[str] | Mapping[str, OnGraph] | None

ON_GRAPH: dict[str, OnEmbedding] = {
    "energy": Embedding.energy,
    "relative_energy": Embedding.relative_energy,
    "rayleigh_quotient": Embedding.rayleigh_quotient,
    "rusch_energy": Embedding.rusch_energy,
    "laplacian_energy": Embedding.laplacian_energy,
    "entropy": partial(Embedding.entropy, temperature=10.0),
    "mad": lambda embedding: mad(embedding.x, embedding.graph),
    "mad_gap": lambda embedding: mad_gap(embedding.x, embedding.graph),
}
ON_FEATURES: dict[str, OnEmbedding] = {
    "norm": Embedding.norm,
    "column_correlation": Embedding.column_correlation,
    "dead_units": Embedding.dead_units,
    "effective_rank": Embedding.effective_rank,
    "numerical_rank": Embedding.numerical_rank,
    "rank_one_distance": Embedding.rank_one_distance,
    "matrix_rank": Embedding.matrix_rank,
}
# Measures that cost more than a forward pass, and are taken only if they are named.
EXPENSIVE: dict[str, OnEmbedding] = {
    "eigenspace_share": lambda embedding: eigenspace_share(embedding.x, embedding.graph)
}
NEEDS_LABELS = "group_distance_ratio"
# Measures that share their sums and products. The others need their own, and no verdict reads them.
SHARED = tuple(name for name in (*ON_GRAPH, *ON_FEATURES) if name not in ("mad", "mad_gap"))


@dataclass(frozen=True)
class Measures:
    """The measures that a probe takes, as functions by name."""

    on_graph: dict[str, OnEmbedding]
    on_features: dict[str, OnEmbedding] = field(default_factory=dict)

    def evaluate(
        self, x: Tensor, graph: Graph | None, dtype: torch.dtype = torch.float64
    ) -> dict[str, float]:
        """Return every measure as a number; without a graph, NaN for those that need one.

        Sums over edges are in ``dtype``, see :class:`Embedding`.
        """
        if graph is not None and self.on_features:
            graph.require_all_rows(f"measuring {', '.join(self.on_features)}")
        embedding = Embedding(x, graph, dtype)
        with torch.no_grad():
            row = {
                name: math.nan if graph is None else float(measure(embedding))
                for name, measure in self.on_graph.items()
            }
            return row | {name: float(f(embedding)) for name, f in self.on_features.items()}


def select_measures(
    selection: MeasureSelection, temperature: float, labels: Tensor | None
) -> Measures:
    """Return all cheap measures, those named, or a user's own."""
    labels = None if labels is None else as_labels(labels)
    if isinstance(selection, Mapping):
        return Measures({name: partial(on_embedding, own) for name, own in selection.items()})
    on_graph = ON_GRAPH | {"entropy": partial(Embedding.entropy, temperature=temperature)}
    on_features = dict(ON_FEATURES)
    if labels is not None:
        on_features[NEEDS_LABELS] = partial(class_separation, labels=labels)
    if selection is None:
        return Measures(on_graph, on_features)
    if not isinstance(selection, Iterable):
        raise TypeError(
            f"measures must be names, or a mapping of names to functions, but is {selection!r}."
        )
    wanted = [selection] if isinstance(selection, str) else list(selection)
    if NEEDS_LABELS in wanted and labels is None:
        raise ValueError(f"{NEEDS_LABELS} compares classes, but got no labels. Pass labels=data.y.")
    on_graph |= EXPENSIVE
    known = [*on_graph, *on_features]
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(
            f"no measure is named {', '.join(unknown)}. Pass names among {', '.join(known)}, or a "
            "mapping of names to functions."
        )
    return Measures(
        {name: on_graph[name] for name in wanted if name in on_graph},
        {name: on_features[name] for name in wanted if name in on_features},
    )


def as_labels(labels: Any, num_nodes: int | None = None) -> Tensor:
    """Return labels that were passed as ``[num_nodes]`` integers, after checking that they are."""
    if not isinstance(labels, Tensor):
        raise TypeError(
            f"labels must be a tensor [num_nodes], but is a {type(labels).__name__}; pass "
            "torch.as_tensor(labels)."
        )
    if labels.dim() == 2 and labels.size(1) == 1:
        labels = labels.squeeze(1)
    if labels.dim() != 1 or labels.is_floating_point() or labels.dtype == torch.bool:
        remedy = "labels.long()" if labels.dim() == 1 else "labels.argmax(1) of one-hot labels"
        raise ValueError(
            "labels must be integers [num_nodes], one class per node, but are "
            f"{labels.dtype} of shape {tuple(labels.shape)}; pass {remedy}."
        )
    if num_nodes is not None and labels.numel() != num_nodes:
        raise ValueError(
            f"there are {labels.numel()} labels for {num_nodes} nodes; pass one label per node, "
            "and -1 where it is unknown."
        )
    return labels


def on_embedding(measure: OnGraph, embedding: Embedding) -> Tensor | float:
    """Call a user's own measure, a function of ``(x, graph)``."""
    return measure(embedding.x, embedding.graph)


def class_separation(embedding: Embedding, labels: Tensor) -> Tensor:
    """Return ``group_distance_ratio``, or NaN if the layer has other nodes than the labels."""
    x = embedding.x
    same = labels.numel() == len(x)
    return group_distance_ratio(x, labels) if same else x.new_tensor(math.nan)
