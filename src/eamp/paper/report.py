"""From the frames of a run to a folder with the page, the figures and the tables; and the same again from that folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from eamp.paper import accuracy_charts, energy_charts, entropy_charts
from eamp.paper.comparison import COLUMNS, checked, flat
from eamp.paper.differences_from_paper import PROTOCOL_NOTES, differences
from eamp.paper.findings import in_brief
from eamp.paper import tables
from eamp.report import figure
from eamp.report import table as formats
from eamp.report.figure import Figure
from eamp.report.page import Page
from eamp.report.provenance import provenance, run_facts
from eamp.paper.tables import Table

WORDS = (
    "name",
    "data",
    "model",
    "protocol",
    "network",
    "graph",
    "entropy",
    "options",
    "changes",
)  # columns of words, where "None" or "NA" is a name like any other
FIGURES = ("table_1", "variants", "figure_3", "figure_2", "thresholds", "figure_1a", "figure_1b")
TABLES = ("table_1", "variants", "figure_3", "figure_2", "thresholds")


@dataclass(frozen=True)
class Frames:
    """What a run measured; frames of what was not run are empty."""

    cells: pd.DataFrame
    layer_energies: pd.DataFrame
    depth_energies: pd.DataFrame
    thresholds: pd.DataFrame


def write_report(
    folder: Path | str,
    *,
    cells: pd.DataFrame | None,
    layer_energies: pd.DataFrame | None,
    depth_energies: pd.DataFrame | None,
    thresholds: pd.DataFrame | None = None,
    notices: Iterable[str] = (),
    command: str = "",
    protocol_notes: Sequence[str] = PROTOCOL_NOTES,
) -> Path:
    """Save the frames in ``folder``, and make the page, the figures and the tables from them.

    Args:
        folder: made if it is not there; what an earlier report left in it is replaced.
        cells: a row per trained network: ``name``, ``data``, ``depth``, ``width``, ``seed``, ``protocol``, ``best_val_accuracy``,
            ``test_accuracy``, ``epochs``, ``seconds``, ``threads``. What follows a comma in a name makes it a variant of what precedes it.
        layer_energies: ``name``, ``data``, ``depth``, ``seed``, ``layer``, ``energy`` of trained networks.
        depth_energies: as :func:`eamp.paper.energy_by_depth.energy_by_depth` returns.
        thresholds: as :func:`eamp.paper.energy_by_depth.thresholds` returns.
        notices: what a reader must know before anything else, say that a dataset was replaced by another.
        command: what was typed to get this report.
        protocol_notes: how the networks were trained, in sentences.

    Returns:
        The path of ``report.html``, which needs nothing but itself.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    given = {
        "cells": cells,
        "layer_energies": layer_energies,
        "depth_energies": depth_energies,
        "thresholds": thresholds,
    }
    for which, columns in COLUMNS.items():
        frame = given[which]
        saved = (
            pd.DataFrame(columns=list(columns))
            if frame is None or frame.columns.empty
            else flat(frame)
        )
        saved.to_csv(folder / f"{which}.csv", index=False, lineterminator="\n")
    run = {
        "command": command,
        "notices": list(notices),
        "protocol_notes": list(protocol_notes),
        **provenance(),
    }
    (folder / "run.json").write_text(
        json.dumps(run, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return from_folder(folder)


def from_folder(folder: Path | str) -> Path:
    """Make page, figures and tables again from what :func:`write_report` saved; date and machine stay those of the run."""
    folder = Path(folder)
    if not (folder / "run.json").exists():
        raise FileNotFoundError(
            f"{folder} holds no run.json, so no report was written there; give the folder of an earlier `eamp reproduce`."
        )
    frames = Frames(**{which: checked(read(folder / f"{which}.csv"), which) for which in COLUMNS})
    run: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    figures, printed = all_figures(frames), all_tables(frames)
    clear(folder / "figures", set(FIGURES) - set(figures))
    clear(folder / "tables", set(TABLES) - set(printed))
    for one in figures.values():
        figure.save(one, folder / "figures")
    for table in printed.values():
        formats.save(table, folder / "tables")
    page = Page(
        findings=in_brief(
            frames.cells, frames.layer_energies, frames.depth_energies, frames.thresholds
        ),
        figures=figures,
        tables=printed,
        by_dataset=tables.table_1_by_dataset(frames.cells),
        differences=differences(frames.cells, frames.depth_energies, frames.thresholds),
        notices=run.get("notices", []),
        protocol_notes=run.get("protocol_notes", []),
        facts=run_facts(run, frames.cells),
        date=run.get("date", ""),
    )
    path = folder / "report.html"
    path.write_text(page.html(), encoding="utf-8")
    return path


def read(path: Path) -> pd.DataFrame | None:
    """A frame as it was saved, to the last digit."""
    if not path.exists():
        return None
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    return frame.assign(
        **{column: values(list(frame[column])) for column in frame.columns if column not in WORDS}
    )


def values(texts: list[str]) -> list[int] | list[float] | list[str]:
    """Whole numbers, else numbers as Python reads them, which is what was written; else the texts."""
    for kind in (int, float):
        try:
            return [kind(text or "nan") for text in texts]
        except ValueError:
            continue
    return texts


def all_figures(frames: Frames) -> dict[str, Figure]:
    """Those that the frames have data for, in the order of the page."""
    made = [
        accuracy_charts.table_1(frames.cells),
        accuracy_charts.variants(frames.cells),
        energy_charts.figure_3(frames.layer_energies),
        energy_charts.figure_2(frames.depth_energies),
        energy_charts.thresholds(frames.thresholds),
        entropy_charts.figure_1a(),
        entropy_charts.figure_1b(),
    ]
    return {one.key: one for one in made if one is not None}


def all_tables(frames: Frames) -> dict[str, Table]:
    """Those that the frames have data for."""
    made = [
        tables.table_1(frames.cells),
        tables.variants(frames.cells),
        tables.figure_3(frames.layer_energies),
        tables.figure_2(frames.depth_energies),
        tables.thresholds(frames.thresholds),
    ]
    return {table.key: table for table in made if table is not None and table.rows}


def clear(folder: Path, keys: Iterable[str]) -> None:
    """Remove what an earlier report wrote under these keys, so that nothing in the folder speaks of another run."""
    for key in keys:
        for path in folder.glob(f"{key}.*"):
            path.unlink()
