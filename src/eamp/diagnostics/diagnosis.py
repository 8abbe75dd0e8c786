"""``diagnose``: run a model once and describe in words what its layers do to the embedding."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from eamp.diagnostics.advice import advise
from eamp.diagnostics.causes.attribution import factors
from eamp.diagnostics.causes.dissection import Dissection
from eamp.diagnostics.causes.labels import labels_of
from eamp.diagnostics.causes.usefulness import usefulness
from eamp.diagnostics.measures.named_measures import SHARED
from eamp.diagnostics.notes import (
    NO_DERIVATIVES,
    no_edges_note,
    offset_note,
    sharpening_note,
    training_note,
)
from eamp.diagnostics.result import RAW, Diagnosis
from eamp.diagnostics.running import evaluation_mode, has_derivatives, run_model
from eamp.diagnostics.typed_diagnosis import is_typed_model, judge_relations, measure_relations
from eamp.diagnostics.verdict import findings
from eamp.files import check_writable, write_atomically
from eamp.nn.wrapping import Selection
from eamp.optional import extra


def diagnose(
    model: Module,
    data: Any,
    *,
    layers: Selection = None,
    measures: str | Iterable[str] = (),
    labels: Tensor | None = None,
    mask: Tensor | None = None,
    parts: bool = True,
    gradients: bool = True,
    jacobians: bool = False,
    temperature: float = 10.0,
    run: Callable[[Module, Any], Any] | None = None,
) -> Diagnosis:
    """Run ``model`` once on ``data`` and diagnose what its layers do to the embedding.

    The model runs in evaluation mode; its parameters, their gradients and its buffers stay as they
    are. The diagnosis distinguishes *smoothing* (neighbours become alike: a scale-free energy
    falls), *shrinking* (the whole embedding vanishes) and *loss of rank* (rows become parallel),
    and it finds explosions, dead units and gradients that vanish or explode. It names the part of
    the layers that does it. With labels it says whether it hurts.

    A model on a typed graph has a diagnosis for every relation, without parts, gradients and
    labels.

    Args:
        model: any model that :func:`eamp.probe` can measure.
        data: a PyG ``Data`` or ``HeteroData``, or the arguments of ``model`` as a tuple
            ``(x, edge_index, ...)``.
        layers: the modules to measure, see :func:`eamp.probe`.
        measures: names of further measures for the table, such as ``"mad"``, ``"mad_gap"`` or
            ``"group_distance_ratio"``. No verdict reads them, and they take time of their own.
        labels: classes ``[n]`` as integers, by default ``data.y`` if it holds such; negative ones
            are unknown.
        mask: the nodes ``[n]`` whose labels are used, by default those of ``data.val_mask``, or
            else ``data.train_mask``, or else all. A trained model separates its training nodes even
            where it has learned nothing about others.
        parts: whether to run every layer again without aggregation, to tell what its weights do
            from what aggregation does.
        gradients: whether to send a random gradient back through the layers. This needs the memory
            of a training step.
        jacobians: whether to add the largest singular value of the Jacobian of every layer, at the
            cost of about a hundred forward passes.
        temperature: temperature of the entropy in the table.
        run: a function that calls the model and returns its output, if neither
            ``model(x, edge_index)`` nor the names of its arguments fit:
            ``run=lambda model, data: model(data.x, data.adj_t)``.

    Raises:
        ValueError: if no layer could be measured on a graph, or if ``labels`` are not one integer
            per node.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GCN
        >>> from torch_geometric.utils import erdos_renyi_graph
        >>> _ = torch.manual_seed(0)
        >>> x, edge_index = torch.randn(100, 16), erdos_renyi_graph(100, 0.1)
        >>> diagnosis = eamp.diagnose(GCN(16, 64, num_layers=32), (x, edge_index))
        >>> diagnosis.kind, diagnosis.findings[0].culprit
        ('smoothing', 'aggregation')
    """
    if run is not None and not callable(run):
        raise TypeError(f"run must be a function of model and data, but is {run!r}.")
    if is_typed_model(model, data, layers):
        if jacobians or labels is not None or mask is not None:
            raise ValueError(
                "a model on a typed graph is diagnosed without labels and Jacobians; leave out "
                "labels, mask and jacobians."
            )
        measured = measure_relations(model, data, layers, temperature, run)
        return judge_relations(model, measured)
    labelled = labels_of(data, labels, mask)
    differentiable = has_derivatives(model, data)
    further = [measures] if isinstance(measures, str) else measures
    probe = Dissection(
        model,
        measures=list(dict.fromkeys([*SHARED, *further])),
        parts=parts,
        backward=gradients and differentiable,
        jacobians=jacobians and differentiable,
        nodes=labelled.judged_on,
        layers=layers,
        labels=labelled.labels,
        temperature=temperature,
    )
    if labels is None:
        probe.labels = None  # the data's own need not fit, as where a model adds nodes
    with probe, evaluation_mode(model), torch.set_grad_enabled(probe.recording):
        out = run(model, data) if run else run_model(model, data, record=probe.recording)
        failed = probe.finish(out)
    if (gradients or jacobians) and not differentiable:
        failed = (*failed, NO_DERIVATIVES)
    table = probe.table()
    norm = table["norm"]
    if probe.graph is None and norm.gt(0).any() and np.isfinite(norm).any():
        raise ValueError(
            "no layer could be measured on a graph, so there is no verdict; the warnings above say "
            "why. Pass layers=[...] with modules that are called with an edge_index."
        )
    if parts:
        table = table.join(factors(table))
    found = findings(table)
    useful, x, graph = None, probe.features, probe.graph
    if labelled.judged_on is not None and x is not None and graph is not None:
        accuracies = tuple(map(float, table["probe_accuracy"]))
        useful = usefulness(labelled.judged_on, labelled.trained_on, x, graph, accuracies, out)
        table["propagation_accuracy"] = table["layer"].map(useful.propagation)
        low = useful.low_accuracy()
        found = (*map(useful.judged, found), *([low] if low else []))
    untrained = useful is not None and useful.learned is False
    degree = 0.0 if graph is None else float(graph.degree.mean())
    return Diagnosis(
        kind=found[0].kind if found else "untrained" if untrained else "healthy",
        layer=found[0].layer if found else None,
        findings=found,
        notes=(
            *failed,
            *no_edges_note(graph),
            *offset_note(table, found),
            *sharpening_note(table),
            *training_note(useful),
        ),
        advice=advise(
            found, table, model, degree, trained=useful is not None and useful.learned is True
        ),
        table=table.drop(columns=[name for name in RAW if name in table]),
        usefulness=useful,
    )


def report(
    model: Module,
    data: Any,
    folder: str | Path | None = None,
    stream: TextIO | None = None,
    **options: Any,
) -> Diagnosis:
    """Call :func:`diagnose`, print the result to ``stream`` and save it in ``folder``, if given.

    By default ``stream`` is standard output. The files are ``diagnosis.txt``, ``layers.csv``,
    ``layers.html`` (interactive charts) and ``layers.svg``.
    """
    if folder is not None:  # what cannot be saved is told before the model runs
        check_writable(folder)
        with extra("report"):
            # slow to load, and needed for charts only
            import altair  # noqa: F401
            import vl_convert  # noqa: F401
    diagnosis = diagnose(model, data, **options)
    (sys.stdout if stream is None else stream).write(f"{diagnosis}\n")
    if folder is not None:
        folder = Path(folder)
        write_atomically(folder / "diagnosis.txt", f"{diagnosis}\n")
        write_atomically(folder / "layers.csv", diagnosis.table.to_csv(index=False))
        chart = diagnosis.plot()
        write_atomically(folder / "layers.html", chart.to_html(inline=True))  # needs no network
        chart.save(svg := io.StringIO(), format="svg")
        write_atomically(folder / "layers.svg", svg.getvalue())
    return diagnosis
