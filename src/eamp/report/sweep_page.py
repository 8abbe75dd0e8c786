"""The page of a sweep: a sentence, a chart against depth, its means, and how it was run."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from eamp.experiments.sweep import metric_of, parts_by_metric, readings_of
from eamp.files import write_atomically
from eamp.report import figure, page, table
from eamp.report.depth_chart import depth_chart
from eamp.report.means import means_of, means_table, takeaway
from eamp.report.provenance import listed, provenance, run_facts
from eamp.report.table import Table
from eamp.training import METRICS


def write_sweep_page(
    folder: Path,
    name: str,
    cells: pd.DataFrame,
    *,
    planned: int | None = None,
    comparisons: Sequence[Table] = (),
    by_split: bool = False,
    notices: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write ``report.html`` of a sweep, and its figures and tables beside it.

    Args:
        folder: the output folder of the sweep.
        name: the name of the recipe.
        cells: the table of :func:`eamp.experiments.sweep.sweep`, with at least one row.
        planned: the number of networks of the recipe, of which some may be missing.
        comparisons: tables of :func:`eamp.report.comparison.comparison_table`.
        by_split: show every split of the data by itself in the table of means.
        notices: sentences that the page shows first, such as failed cells.
        command: the command that made the sweep.

    Returns:
        The path of the page, which needs no other file.
    """
    figures, tables, sections, sentences = {}, {}, [], []
    for number, part in enumerate(parts_by_metric(cells)):
        key = "means" if number == 0 else f"means_{number + 1}"
        *_, reading = readings_of(part).values()
        title = f"{reading[:1].upper()}{reading[1:]}"
        depths = part["depth"].unique()
        title += " against depth" if len(depths) > 1 else f", depth {depths[0]}"
        metric = METRICS[metric_of(part)]
        axis = reading if metric is METRICS["accuracy"] else f"{reading} ({metric.better})"
        figures[key] = depth_chart(
            means_of(part), axis, key=key, title=title, shares=metric.percent
        )
        tables[key] = means_table(part, by_split, key)
        sections.append((title, key))
        sentences += takeaway(part)
    tables |= {one.key: one for one in comparisons}
    for one in figures.values():
        figure.save(one, folder / "figures")
    for each in tables.values():
        table.save(each, folder / "tables")
    run = {**provenance(), "command": command}
    text = page.render(
        "eamp.report",
        "sweep.html",
        figures,
        name=name,
        sentences=sentences,
        sections=sections,
        comparisons=[one.key for one in comparisons],
        tables={key: named_once(each) for key, each in tables.items()},
        notices=list(notices),
        facts=[*run_facts(run, cells, planned), *settings_facts(cells)],
        date=run["date"],
    )
    path = folder / "report.html"
    write_atomically(path, text)
    return path


def named_once(given: Table) -> Table:
    """Return a table whose note, which the page shows below it, begins with its caption."""
    return replace(given, note=f"{given.caption} {given.note}".strip())


def settings_facts(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the settings of a sweep that its table does not show, where a reader may ask."""
    facts = []
    changes = {json.dumps(each) for each in cells["changes"] if each} if "changes" in cells else ()
    if changes:
        facts.append(("Changes to the protocol", "; ".join(sorted(changes))))
    if "split" in cells:
        facts.append(("Splits", listed(cells["split"])))
    if "version" in cells:
        facts.append(("Trained by", listed(cells["version"])))
    return facts
