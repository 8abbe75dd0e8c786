"""A diagnosis as one HTML page that loads nothing: verdict, layers, advice, before and after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from eamp.diagnostics import Diagnosis
from eamp.diagnostics.charts import TITLES, drawn_measures, layer_axis, value_axis
from eamp.diagnostics.rendering import LAYER_COLUMNS, format_number, logarithmic
from eamp.diagnostics.result import headline
from eamp.files import write_atomically
from eamp.optional import extra
from eamp.report.colours import PULL, PUSH, SPARE_COLOURS, Look
from eamp.report.cures import Cure, verdict_of
from eamp.report.encodings import fading
from eamp.report.figure import Chart, Figure, Panel
from eamp.report.page import render
from eamp.report.provenance import provenance, run_facts
from eamp.report.table import Table
from eamp.report.theme import ink

with extra("report"):
    import altair as alt

BEFORE = "before"
HEIGHT = 150
CURES = ("energy", "relative_energy", "rayleigh_quotient", "norm", "effective_rank")
COLOURS = ("#7c8593", PUSH, "#d55e00", *SPARE_COLOURS)  # of the model, and of its cures


def write_diagnosis(
    path: Path | str,
    diagnosis: Diagnosis,
    *,
    subject: str = "a model",
    cures: Sequence[Cure] = (),
    command: str = "",
) -> Path:
    """Write the page of a diagnosis.

    Args:
        path: the HTML file.
        diagnosis: the diagnosis.
        subject: the model and its data in a few words.
        cures: models that follow the advice, see :func:`eamp.report.cures.cures`.
        command: the command that was run.

    Returns:
        The path, of a file that needs no other.
    """
    verdict, words = verdict_of(diagnosis)
    depth = len(diagnosis.table)
    others = [f"{headline(each, depth)}: {each.words}." for each in diagnosis.findings[1:]]
    if diagnosis.findings:  # without any, the verdict holds the notes
        others += diagnosis.notes
    figures = {"layers": layers_figure(diagnosis)}
    if cures:
        figures["cures"] = cures_figure(diagnosis, cures)
    facts = run_facts({"command": command, **provenance()}, pd.DataFrame())
    text = render(
        "eamp.report",
        "diagnosis.html",
        figures,
        verdict=verdict,
        words=words,
        others=others,
        subject=subject,
        advice=diagnosis.advice,
        cures=cures,
        numbers=numbers(diagnosis.table),
        tables={},
        notices=(),
        facts=facts,
    )
    write_atomically(path, text)
    return Path(path)


def layers_figure(diagnosis: Diagnosis) -> Figure:
    """Return one small chart per measure, with the layer marked where the first finding starts."""
    table = diagnosis.table.assign(network="the model")
    looks = {"the model": Look(PUSH)}
    panels = [panel(table, name, looks, diagnosis.layer) for name in drawn_measures(table)]
    caption = (
        "Every measure of a layer's output against depth. The verdict reads the larger of a value "
        "at the output and at the next layer's input, behind the activation."
    )
    if diagnosis.layer is not None:
        row = table.iloc[diagnosis.layer - 1]
        caption += (
            f" The dashed line marks layer {diagnosis.layer} ({row['name'] or 'the model'}, "
            f"{row['type']}), where {diagnosis.kind} starts."
        )
    return Figure("layers", "Layer by layer", caption, tuple(panels))


def cures_figure(diagnosis: Diagnosis, cures: Sequence[Cure]) -> Figure:
    """Return the main measures of the model and of its cures."""
    names = [BEFORE, *(cure.name for cure in cures)]
    looks = {name: Look(colour) for name, colour in zip(names, COLOURS, strict=False)}
    tables = [diagnosis.table.assign(network=BEFORE)]
    tables += [cure.diagnosis.table.assign(network=cure.name) for cure in cures]
    table = pd.concat(tables, ignore_index=True)
    drawn = [name for name in CURES if name in drawn_measures(table)]
    panels = [panel(table, name, looks, diagnosis.layer) for name in drawn]
    caption = (
        "The model as it is, and what its advice makes of it before any training: eamp.wrap around "
        "the present weights, other networks with initial ones. What holds the energy does not by "
        "itself make a network accurate."
    )
    return Figure("cures", "Before and after", caption, tuple(panels), looks)


def panel(table: pd.DataFrame, measure: str, looks: Mapping[str, Look], mark: int | None) -> Panel:
    """Return a small chart of one measure, with a line per network."""
    data = table[["network", "layer", "name", "type", measure]].dropna(subset=[measure])
    data = data[[math.isfinite(value) for value in data[measure]]]
    log = logarithmic(data[measure].tolist())
    if log:
        data = data[data[measure] > 0]
    depth = int(table["layer"].max())
    line: Chart = alt.Chart(data).mark_line(strokeWidth=1.8, point=depth <= 32)
    line = line.encode(
        x=layer_axis(depth),
        y=value_axis(measure, data[measure], log),
        color=alt.Color(
            "network:N",
            scale=alt.Scale(domain=list(looks), range=[look.colour for look in looks.values()]),
        ),
        opacity=fading("network"),
        tooltip=["network", "layer", "name", "type", alt.Tooltip(measure, format=".3g")],
    )
    heading = TITLES.get(measure, measure.replace("_", " ")) + (", log" if log else "")
    chart: Chart = line
    if mark is not None:
        rule = alt.Chart(pd.DataFrame({"layer": [mark]})).encode(x=layer_axis(depth))
        culprit = rule.mark_rule(strokeDash=[4, 3], color=PULL, strokeWidth=1.6)
        text = rule.mark_text(align="left", baseline="top", dx=3, dy=1, color=ink("soft"))
        named = text.encode(y=alt.value(0), text=alt.value(f"layer {mark}"))
        chart = alt.layer(culprit, line, named)
    return Panel(heading, chart, height=HEIGHT)


def numbers(table: pd.DataFrame) -> Table:
    """Return every column of the table, words first."""
    words = [name for name in ("layer", "name", "type") if name in table]
    values = [name for name in table.columns if name not in (*words, "forward")]
    rows = []
    for row in table.to_dict("records"):
        cells = [
            f"{row[name]:.0f}" if name in LAYER_COLUMNS else shown(row[name]) for name in values
        ]
        rows.append((*(str(row[name]) for name in words), *cells))
    columns = (*words, *(name.replace("_", " ") for name in values))
    return Table("layers", "", columns, tuple(rows), table, labels=len(words))


def shown(value: object) -> str:
    """Return a number in three digits, or a word as it is."""
    return format_number(float(value)) if isinstance(value, int | float) else str(value)
