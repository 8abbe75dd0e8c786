"""``diagnose``: run a model once and describe in words what its layers do to the embedding."""

from __future__ import annotations

import html
import inspect
import io
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from eamp.diagnostics.advice import advise
from eamp.diagnostics.probing import Probe
from eamp.diagnostics.rendering import format_number
from eamp.diagnostics.verdict import Finding, Kind, findings, scale_free_energy
from eamp.files import check_writable, write_atomically
from eamp.graph import as_graph
from eamp.nn.wrapping import Selection
from eamp.optional import extra

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

# Relative energy that is worth a note: unrelated neighbours have 1, opposite ones 2.
SHARPENED = 1.25
LINE_WIDTH = 120  # characters


@dataclass(frozen=True, repr=False, eq=False)
class Diagnosis:
    """The result of :func:`diagnose`.

    Attributes:
        kind: the kind of the first finding: ``"smoothing"``, ``"shrinking"``, ``"rank loss"``,
            ``"exploding"`` or ``"dead units"``; ``"healthy"`` if there is none.
        layer: the layer at which it starts, counted from 1; ``None`` for a healthy model.
        findings: everything that goes wrong, the most important first.
        notes: further observations.
        advice: what to try.
        table: every measure, with one row per layer.
    """

    kind: Kind
    layer: int | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    advice: tuple[str, ...]
    table: pd.DataFrame

    def __str__(self) -> str:
        lines = [f"{headline(f, len(self.table))}: {f.words}." for f in self.findings]
        lines = [*(lines or [healthy_text(self.table)]), *self.notes]
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
    temperature: float = 10.0,
    run: Callable[[Module, Any], Any] | None = None,
) -> Diagnosis:
    """Run ``model`` once on ``data`` and diagnose what its layers do to the embedding.

    The model runs in evaluation mode and without gradients. The diagnosis distinguishes *smoothing*
    (neighbours become alike: a scale-free energy falls), *shrinking* (the whole embedding vanishes)
    and *loss of rank* (rows become parallel though neighbours still differ), and it finds
    explosions and dead units.

    Args:
        model: any model that :func:`eamp.probe` can measure.
        data: a PyG ``Data``, or the arguments of ``model`` as a tuple ``(x, edge_index, ...)``.
        layers: the modules to measure, see :func:`eamp.probe`.
        labels: classes ``[n]``; they add the separation of classes to the table.
        temperature: temperature of the entropy in the table.
        run: a function that calls the model, if neither ``model(x, edge_index)`` nor the names of
            its arguments fit: ``run=lambda model, data: model(data.x, data.adj_t)``.

    Raises:
        ValueError: if no layer could be measured on a graph.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GCN
        >>> from torch_geometric.utils import erdos_renyi_graph
        >>> _ = torch.manual_seed(0)
        >>> x, edge_index = torch.randn(100, 16), erdos_renyi_graph(100, 0.1)
        >>> diagnosis = eamp.diagnose(GCN(16, 64, num_layers=32), (x, edge_index))
        >>> diagnosis.kind
        'smoothing'
    """
    if run is not None and not callable(run):
        raise TypeError(f"run must be a function of model and data, but is {run!r}.")
    probe = Probe(model, layers=layers, labels=labels, temperature=temperature)
    with probe, evaluation_mode(model), torch.no_grad():
        (run or run_model)(model, data)
    table = probe.table()
    norm = table["norm"]
    if np.isnan(scale_free_energy(table)).all() and norm.gt(0).any() and np.isfinite(norm).any():
        raise ValueError(
            "no layer could be measured on a graph, so there is no verdict; the warnings above say "
            "why. Pass layers=[...] with modules that are called with an edge_index."
        )
    found = findings(table)
    degree = mean_degree(data, int(table["nodes"].iloc[0]))
    return Diagnosis(
        kind=found[0].kind if found else "healthy",
        layer=found[0].layer if found else None,
        findings=found,
        notes=sharpening_note(table),
        advice=advise(found, table, model, degree),
        table=table,
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


def run_model(model: Module, data: Any) -> Any:
    """Call ``model`` with a tuple of arguments, or with the attributes of ``data`` it names.

    A model that names none gets ``data`` as its only argument, or ``data.x`` and
    ``data.edge_index`` as its first two.
    """
    signature = inspect.signature(model.forward)
    args, named = arguments_of(signature, data)
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        raise TypeError(
            f"{type(model).__name__}.forward{signature} does not fit the data: {error}. Pass its "
            "arguments as a tuple, as in (data.x, data.edge_index), or a function that calls it, "
            "run=lambda model, data: model(...)."
        ) from None
    return model(*args, **named)


def arguments_of(signature: inspect.Signature, data: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the positional and the named arguments of a model that is run on ``data``."""
    if isinstance(data, tuple | list):
        if wrong := [type(each).__name__ for each in data if isinstance(each, np.ndarray | list)]:
            raise TypeError(
                f"a model is run on tensors, but got a {wrong[0]}: torch.as_tensor(it)."
            )
        return data, {}
    if not hasattr(data, "keys"):  # neither a Data nor a mapping
        raise TypeError(
            "data must be a torch_geometric Data, or the model's arguments as a tuple "
            f"(x, edge_index), but is a {type(data).__name__}."
        )
    parameters = signature.parameters
    named = {name: data[name] for name in parameters if name in data and data[name] is not None}
    needed = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if ("x" in named or "edge_index" in named) and named.keys() >= set(needed):
        return (), named
    if len(needed) == 1 and not named:
        return (data,), {}
    if missing := [name for name in ("x", "edge_index") if name not in data]:
        raise ValueError(f"data has no {' and no '.join(missing)}, which the model needs.")
    return (data["x"], data["edge_index"]), {}


@contextmanager
def evaluation_mode(model: Module) -> Iterator[None]:
    """Put the model into evaluation mode, and afterwards every module back into its own mode."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def mean_degree(data: Any, num_nodes: int) -> float:
    """Return the mean degree of the graph in ``data``, made undirected; 0 if there is none."""
    pair = isinstance(data, tuple | list)
    found = data[1:2] if pair else [getattr(data, name, None) for name in ("edge_index", "adj_t")]
    adjacency = next((a for a in found if a is not None), None)
    if adjacency is None:
        return 0.0
    return float(as_graph(adjacency, num_nodes, symmetrize=True).degree.mean())


def headline(finding: Finding, num_layers: int) -> str:
    """Return the kind and the layers of a finding in words."""
    names = {"smoothing": "Oversmoothing", "rank loss": "Loss of rank"}
    name = names.get(finding.kind, finding.kind.capitalize())
    if finding.last == num_layers and finding.layer < num_layers:
        return f"{name} from layer {finding.layer} of {num_layers} on"
    if finding.layer == finding.last:
        return f"{name} at layer {finding.layer} of {num_layers}"
    return f"{name} between layers {finding.layer} and {finding.last} of {num_layers}"


def healthy_text(table: pd.DataFrame) -> str:
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
    return f"Healthy: over {len(table)} layers " + ", ".join(ranges) + "."


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
