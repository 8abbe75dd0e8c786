"""Every measure by the name it has in a probe's table; the functions live beside this file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from eamp.diagnostics.energies import (
    laplacian_energy,
    mean_energy,
    rayleigh_quotient,
    relative_energy,
    rusch_energy,
)
from eamp.diagnostics.matrix_measures import dead_units, effective_rank, norm, numerical_rank
from eamp.diagnostics.similarity import group_distance_ratio, mad, mad_gap
from eamp.functional import entropy
from eamp.graph import Graph
from eamp.ops.part import PartCSR, not_for_parts

OnGraph = Callable[[Tensor, Graph], Tensor | float]
OnFeatures = Callable[[Tensor], Tensor | float]
Choice = str | Iterable[str] | Mapping[str, OnGraph] | None

ON_GRAPH: dict[str, OnGraph] = {
    "energy": mean_energy,
    "relative_energy": relative_energy,
    "rayleigh_quotient": rayleigh_quotient,
    "rusch_energy": rusch_energy,
    "laplacian_energy": laplacian_energy,
    "entropy": entropy,
    "mad": mad,
    "mad_gap": mad_gap,
}
ON_FEATURES: dict[str, OnFeatures] = {
    "norm": norm,
    "effective_rank": effective_rank,
    "numerical_rank": numerical_rank,
    "dead_units": dead_units,
}
NEEDS_LABELS = "group_distance_ratio"


@dataclass(frozen=True)
class Measures:
    """The measures a probe takes, and what they need besides features and graph."""

    on_graph: dict[str, OnGraph] = field(default_factory=dict)
    on_features: dict[str, OnFeatures] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """In the order of the table's columns."""
        return [*self.on_graph, *self.on_features]

    def of(self, x: Tensor, graph: Graph | None) -> dict[str, float]:
        """Every measure as a number; NaN for those on a graph where there is none."""
        if (
            graph is not None
            and isinstance(graph.csr, PartCSR)
            and (local := set(self.names) - {"energy", "entropy"})
        ):
            raise not_for_parts(f"measuring {', '.join(sorted(local))}")
        with torch.no_grad():
            on_graph = {
                name: math.nan if graph is None else float(measure(x, graph))
                for name, measure in self.on_graph.items()
            }
            return on_graph | {
                name: float(measure(x)) for name, measure in self.on_features.items()
            }


def choose(choice: Choice, temperature: float, labels: Tensor | None) -> Measures:
    """All measures, those named, or one's own as a mapping of names to functions of features and graph."""
    if isinstance(choice, Mapping):
        return Measures(on_graph=dict(choice))
    on_graph = ON_GRAPH | {"entropy": partial(entropy_at, temperature=temperature)}
    on_features = dict(ON_FEATURES)
    if labels is not None:
        on_features[NEEDS_LABELS] = partial(separation, labels=labels)
    if choice is None:
        return Measures(on_graph, on_features)
    wanted = [choice] if isinstance(choice, str) else list(choice)
    if NEEDS_LABELS in wanted and labels is None:
        raise ValueError(f"{NEEDS_LABELS} compares classes: pass labels=data.y too.")
    if unknown := [name for name in wanted if name not in on_graph and name not in on_features]:
        raise ValueError(
            f"no measure named {', '.join(unknown)}; there are {', '.join([*on_graph, *on_features])}."
        )
    return Measures(
        {name: on_graph[name] for name in wanted if name in on_graph},
        {name: on_features[name] for name in wanted if name in on_features},
    )


def entropy_at(x: Tensor, graph: Graph, temperature: float) -> Tensor:
    """:func:`eamp.entropy` in float64, as the other measures are."""
    return entropy(x.double(), graph, temperature)


def separation(x: Tensor, labels: Tensor) -> Tensor:
    """:func:`group_distance_ratio`, or NaN where the layer's nodes are not those of the labels."""
    return (
        group_distance_ratio(x, labels) if labels.numel() == x.size(0) else x.new_tensor(math.nan)
    )
