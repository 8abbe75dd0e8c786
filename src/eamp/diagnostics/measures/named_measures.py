"""All measures under the names they have in a probe's table, and the selection of some."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from eamp.diagnostics.measures import eigenspace, energies, matrix_measures, similarity
from eamp.functional import entropy
from eamp.graph import Graph

OnGraph = Callable[[Tensor, Graph], Tensor | float]
OnFeatures = Callable[[Tensor], Tensor | float]
OnSpectrum = Callable[[Tensor, Tensor], Tensor]
MeasureSelection = str | Iterable[str] | Mapping[str, OnGraph] | None

ON_GRAPH: dict[str, OnGraph] = {
    "energy": energies.mean_energy,
    "relative_energy": energies.relative_energy,
    "rayleigh_quotient": energies.rayleigh_quotient,
    "rusch_energy": energies.rusch_energy,
    "laplacian_energy": energies.laplacian_energy,
    "entropy": entropy,
    "mad": similarity.mad,
    "mad_gap": similarity.mad_gap,
}
ON_SPECTRUM: dict[str, OnSpectrum] = matrix_measures.ON_SPECTRUM
ON_FEATURES: dict[str, OnFeatures] = {
    "norm": matrix_measures.norm,
    "column_correlation": matrix_measures.column_correlation,
    "dead_units": matrix_measures.dead_units,
}
# Measures that cost more than a forward pass, and are taken only if they are named.
EXPENSIVE: dict[str, OnGraph] = {"eigenspace_share": eigenspace.eigenspace_share}
NEEDS_LABELS = "group_distance_ratio"


@dataclass(frozen=True)
class Measures:
    """The measures that a probe takes, as functions by name."""

    on_graph: dict[str, OnGraph]
    on_features: dict[str, OnFeatures] = field(default_factory=dict)
    on_spectrum: dict[str, OnSpectrum] = field(default_factory=dict)

    def evaluate(self, x: Tensor, graph: Graph | None) -> dict[str, float]:
        """Return every measure as a number; without a graph, NaN for those that need one."""
        of_all_rows = [*self.on_features, *self.on_spectrum]
        if graph is not None and of_all_rows:
            graph.require_all_rows(f"measuring {', '.join(of_all_rows)}")
        with torch.no_grad():
            row = {
                name: math.nan if graph is None else float(measure(x, graph))
                for name, measure in self.on_graph.items()
            }
            row |= {name: float(measure(x)) for name, measure in self.on_features.items()}
            if self.on_spectrum:
                values = matrix_measures.singular_values(x)
                row |= {name: float(f(values, x)) for name, f in self.on_spectrum.items()}
            return row


def select_measures(
    selection: MeasureSelection, temperature: float, labels: Tensor | None
) -> Measures:
    """Return all cheap measures, those named, or a user's own."""
    if isinstance(selection, Mapping):
        return Measures(dict(selection))
    on_graph = ON_GRAPH | {"entropy": lambda x, graph: entropy(x.double(), graph, temperature)}
    on_features = dict(ON_FEATURES)
    if labels is not None and not isinstance(labels, Tensor):
        raise TypeError(
            f"labels must be a tensor [num_nodes], but is a {type(labels).__name__}; pass "
            "torch.as_tensor(labels)."
        )
    if labels is not None:
        on_features[NEEDS_LABELS] = partial(class_separation, labels=labels)
    if selection is None:
        return Measures(on_graph, on_features, ON_SPECTRUM)
    if not isinstance(selection, Iterable):
        raise TypeError(
            f"measures must be names, or a mapping of names to functions, but is {selection!r}."
        )
    wanted = [selection] if isinstance(selection, str) else list(selection)
    if NEEDS_LABELS in wanted and labels is None:
        raise ValueError(f"{NEEDS_LABELS} compares classes, but got no labels. Pass labels=data.y.")
    on_graph |= EXPENSIVE
    known = [*on_graph, *on_features, *ON_SPECTRUM]
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(
            f"no measure is named {', '.join(unknown)}. Pass names among {', '.join(known)}, or a "
            "mapping of names to functions."
        )
    return Measures(
        {name: on_graph[name] for name in wanted if name in on_graph},
        {name: on_features[name] for name in wanted if name in on_features},
        {name: ON_SPECTRUM[name] for name in wanted if name in ON_SPECTRUM},
    )


def class_separation(x: Tensor, labels: Tensor) -> Tensor:
    """Return ``group_distance_ratio``, or NaN if the layer has other nodes than the labels."""
    same = labels.numel() == len(x)
    return similarity.group_distance_ratio(x, labels) if same else x.new_tensor(math.nan)
