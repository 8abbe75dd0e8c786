"""``diagnose``: run a model once and describe in words what its layers do to the embedding."""

from __future__ import annotations

import html
import io
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from eamp.diagnostics.advice import advise
from eamp.diagnostics.causes.attribution import factors, scale_free_energy
from eamp.diagnostics.causes.dissection import Dissection
from eamp.diagnostics.causes.labels import labels_of
from eamp.diagnostics.causes.usefulness import Usefulness, usefulness
from eamp.diagnostics.rendering import format_number
from eamp.diagnostics.running import evaluation_mode, mean_degree, run_model
from eamp.diagnostics.verdict import SMOOTHED, Finding, Kind, findings
from eamp.files import check_writable, write_atomically
from eamp.nn.wrapping import Selection
from eamp.optional import extra

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

# Relative energy that is worth a note: unrelated neighbours have 1, opposite ones 2.
SHARPENED = 1.25
LINE_WIDTH = 120  # characters
# Columns from which the factors of the parts are computed, and which say nothing more.
RAW = ("alone_norm", "alone_energy", "alone_rank", "alone_gradient", "layer_gradient")


@dataclass(frozen=True, repr=False, eq=False)
class Diagnosis:
    """The result of :func:`diagnose`.

    Attributes:
        kind: the kind of the first finding, such as ``"smoothing"``. Without a finding it is
            ``"untrained"`` if the model answers no better than chance, and else ``"healthy"``.
        layer: the layer at which it starts, counted from 1; ``None`` without a finding.
        findings: everything that goes wrong, the most important first.
        notes: further observations.
        advice: what to try.
        table: every measure, with one row per layer.
        usefulness: what linear probes read from the layers; ``None`` without labels.
    """

    kind: Kind
    layer: int | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    advice: tuple[str, ...]
    table: pd.DataFrame
    usefulness: Usefulness | None = field(default=None)

    def __str__(self) -> str:
        lines = [f"{headline(f, len(self.table))}: {f.words}." for f in self.findings]
        lines = [*(lines or [healthy_text(self.kind, self.table)]), *self.notes]
        if self.advice:
            lines += ["What to try:", *(f"  {k}. {s}" for k, s in enumerate(self.advice, start=1))]
        return "\n".join(
            textwrap.fill(line, LINE_WIDTH, subsequent_indent="     " if line[0] == " " else "  ")
            for line in lines
        )

    def __repr__(self) -> str:
        return f"Diagnosis(kind={self.kind!r}, layer={self.layer}, num_layers={len(self.table)})"

    def plot(self, measures: Iterable[str] | None = None) -> alt.ConcatChart:
        """Return charts of the measures, with a rule where the first finding starts."""
        from eamp.diagnostics.charts import depth_charts  # loads Altair, which is slow

        return depth_charts(self.table, measures, mark=self.layer)

    def _repr_html_(self) -> str:
        return f"<div style='white-space:pre-wrap'>{html.escape(str(self))}</div>"


def diagnose(
    model: Module,
    data: Any,
    *,
    layers: Selection = None,
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

    Args:
        model: any model that :func:`eamp.probe` can measure.
        data: a PyG ``Data``, or the arguments of ``model`` as a tuple ``(x, edge_index, ...)``.
        layers: the modules to measure, see :func:`eamp.probe`.
        labels: classes ``[n]``, by default ``data.y``; negative ones are unknown.
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
        ValueError: if no layer could be measured on a graph.

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
    labelled = labels_of(data, labels, mask)
    probe = Dissection(
        model,
        parts=parts,
        backward=gradients,
        jacobians=jacobians,
        nodes=labelled.judged_on,
        layers=layers,
        labels=labelled.labels,
        temperature=temperature,
    )
    with probe, evaluation_mode(model), torch.set_grad_enabled(probe.recording):
        out = run(model, data) if run else run_model(model, data, record=probe.recording)
        failed = probe.finish(out)
    table = probe.table()
    norm = table["norm"]
    if np.isnan(scale_free_energy(table)).all() and norm.gt(0).any() and np.isfinite(norm).any():
        raise ValueError(
            "no layer could be measured on a graph, so there is no verdict; the warnings above say "
            "why. Pass layers=[...] with modules that are called with an edge_index."
        )
    if parts:
        table = table.join(factors(table))
    found = findings(table)
    useful = None
    if labelled.judged_on is not None and probe.graph is not None and probe.features is not None:
        accuracies = tuple(map(float, table["probe_accuracy"]))
        useful = usefulness(
            labelled.judged_on, labelled.trained_on, probe.features, probe.graph, accuracies, out
        )
        table["propagation_accuracy"] = table["layer"].map(useful.propagation)
        low = useful.low_accuracy()
        found = (*map(useful.judged, found), *([low] if low else []))
    untrained = useful is not None and useful.learned is False
    degree = mean_degree(data, int(table["nodes"].iloc[0]))
    return Diagnosis(
        kind=found[0].kind if found else "untrained" if untrained else "healthy",
        layer=found[0].layer if found else None,
        findings=found,
        notes=(
            *failed,
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


def headline(finding: Finding, num_layers: int) -> str:
    """Return the kind and the layers of a finding in words."""
    names = {"smoothing": "Oversmoothing", "rank loss": "Loss of rank"}
    name = names.get(finding.kind, finding.kind.capitalize())
    if finding.last == num_layers and finding.layer < num_layers:
        return f"{name} from layer {finding.layer} of {num_layers} on"
    if finding.layer == finding.last:
        return f"{name} at layer {finding.layer} of {num_layers}"
    return f"{name} between layers {finding.layer} and {finding.last} of {num_layers}"


def healthy_text(kind: Kind, table: pd.DataFrame) -> str:
    """Return the ranges of the main measures in words."""
    measures = {
        "scale-free energy": scale_free_energy(table),
        "norm": table["norm"],
        "effective rank": table["effective_rank"],
    }
    ranges = [
        f"the {name} is between {format_number(np.nanmin(v))} and {format_number(np.nanmax(v))}"
        for name, v in measures.items()
    ]
    word = "Healthy" if kind == "healthy" else "Untrained, and nothing wrong is found"
    return f"{word}: over {len(table)} layers " + ", ".join(ranges) + "."


def sharpening_note(table: pd.DataFrame) -> tuple[str, ...]:
    """Return a note if neighbours are opposite, which a strong entropy step can cause."""
    energy = np.asarray(table["relative_energy"])
    if not np.nanmax(energy, initial=0) > SHARPENED:
        return ()
    most = int(np.nanargmax(energy))
    return (
        "Note: neighbours are more often opposite than alike; the relative energy is "
        f"{format_number(float(energy[most]))} at layer {most + 1}, where 1 means unrelated. "
        "If neighbours share labels, try a smaller λ or T.",
    )


def offset_note(table: pd.DataFrame, found: tuple[Finding, ...]) -> tuple[str, ...]:
    """Return a note if nodes are alike only because the layers add a vector to all of them."""
    energy = scale_free_energy(table)
    if not np.nanmin(energy, initial=1) < SMOOTHED or any(
        finding.kind in ("smoothing", "offset") for finding in found
    ):
        return ()
    least = int(np.nanargmin(energy))
    return (
        "Note: biases add a vector to all nodes that is large beside their differences; the "
        f"scale-free energy is {format_number(float(energy[least]))} at layer {least + 1}. "
        "Aggregation does not do this, and training usually changes it.",
    )


def training_note(useful: Usefulness | None) -> tuple[str, ...]:
    """Return a note if the model may be untrained, and is judged as it was made."""
    if useful is not None and useful.learned:
        return ()
    if useful is not None and useful.learned is False:
        return (
            "Note: the model answers no better than chance on the nodes it is trained on. Either "
            "it is untrained, and this describes its initialisation, or training has failed.",
        )
    hint = "" if useful else " Labels (data.y, or labels=) would tell whether it hurts."
    words = "Note: this describes the weights as they are; in an untrained model, how they start."
    return (words + hint,)
