"""Diagnoses by relation: a model on a typed graph has one verdict for every relation."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module

from eamp.diagnostics.advice import advise
from eamp.diagnostics.causes.dissection import Dissection
from eamp.diagnostics.notes import offset_note, sharpening_note
from eamp.diagnostics.result import RAW, Diagnosis
from eamp.diagnostics.running import evaluation_mode
from eamp.diagnostics.typed_layers import is_typed
from eamp.diagnostics.verdict import findings
from eamp.diagnostics.watched_layers import watched_layers
from eamp.nn.wrapping import Selection

if TYPE_CHECKING:
    import pandas as pd

STATES = ("norm", "energy", "rank")  # of a layer's input, in a diagnosis


@dataclass(frozen=True, repr=False, eq=False)
class TypedDiagnosis(Diagnosis):
    """The result of :func:`eamp.diagnose` for a model on a typed graph.

    Its kind and layer are those of the relation whose first finding starts at the lowest layer. Its
    table has one row per layer and relation.

    Attributes:
        relations: the diagnosis of every relation, by its name, such as ``"author writes paper"``.
            It is that of the relation's undirected graph. Layers are counted among those that have
            the relation.
    """

    relations: Mapping[str, Diagnosis] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n\n".join(f"{relation}\n{each}" for relation, each in self.relations.items())

    def __repr__(self) -> str:
        return f"TypedDiagnosis({ {name: each.kind for name, each in self.relations.items()} })"


def judge_relations(
    model: Module, measured: Mapping[str, tuple[pd.DataFrame, float]]
) -> TypedDiagnosis:
    """Return the diagnoses of all relations from their tables and mean degrees."""
    import pandas as pd  # slow to load, and needed for tables only

    relations = {name: judge(model, *rest) for name, rest in measured.items()}
    worst = min(relations.values(), key=lambda each: each.layer or sys.maxsize)
    return TypedDiagnosis(
        kind=worst.kind,
        layer=worst.layer,
        findings=tuple(
            replace(finding, words=f"{name}: {finding.words}")
            for name, each in relations.items()
            for finding in each.findings
        ),
        notes=tuple(f"{name}: {note}" for name, each in relations.items() for note in each.notes),
        advice=tuple(dict.fromkeys(line for each in relations.values() for line in each.advice)),
        table=pd.concat([each.table for each in relations.values()], ignore_index=True),
        relations=relations,
    )


def judge(model: Module, table: pd.DataFrame, mean_degree: float) -> Diagnosis:
    """Return the diagnosis of one relation."""
    found = findings(table)
    return Diagnosis(
        kind=found[0].kind if found else "healthy",
        layer=found[0].layer if found else None,
        findings=found,
        notes=(*offset_note(table, found), *sharpening_note(table)),
        advice=advise(found, table, model, mean_degree),
        table=table.drop(columns=[name for name in RAW if name in table]),
    )


def is_typed_model(model: Module, data: Any, layers: Selection) -> bool:
    """Return whether a model runs on a typed graph, by its data or by its layers."""
    return hasattr(data, "edge_types") or any(map(is_typed, watched_layers(model, layers)))


def measure_relations(
    model: Module,
    data: Any,
    layers: Selection,
    temperature: float,
    run: Callable[[Module, Any], Any] | None,
) -> dict[str, tuple[pd.DataFrame, float]]:
    """Run a model once, and return the table and the mean degree of every relation.

    Raises:
        ValueError: if no relation could be measured.
    """
    probe = Dissection(model, parts=False, backward=False, layers=layers, temperature=temperature)
    with probe, evaluation_mode(model), torch.no_grad():
        _ = run(model, data) if run else run_typed(model, data)
    table = probe.table()
    if "relation" not in table:
        raise ValueError(
            "no relation could be measured, so there is no verdict; the warnings above say why. "
            "Pass layers=[...] with modules that are called with an edge_index_dict."
        )
    found = {}
    for relation, rows in table.dropna(subset=["relation"]).groupby("relation", sort=False):
        rows = rows.reset_index(drop=True)
        for name in STATES:  # behind a layer stands the next one's input
            rows[f"after_{name}"] = rows[f"input_{name}"].shift(-1)
        degree = float(probe.relations[str(relation)].degree.mean())
        found[str(relation)] = (rows, degree)
    return found


def run_typed(model: Module, data: Any) -> Any:
    """Call a model with a tuple of arguments, or with what it names of a ``HeteroData``."""
    if isinstance(data, tuple | list):
        return model(*data)
    if not hasattr(data, "edge_types"):
        raise TypeError(
            "data of a typed model must be a HeteroData, or its arguments as a tuple "
            f"(x_dict, edge_index_dict), but is a {type(data).__name__}."
        )
    names = list(inspect.signature(model.forward).parameters)
    if "x_dict" in names and "edge_index_dict" in names:
        return model(x_dict=data.x_dict, edge_index_dict=data.edge_index_dict)
    return model(data) if len(names) == 1 else model(data.x_dict, data.edge_index_dict)
