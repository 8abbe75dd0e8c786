"""Write the report of a reproduction to a folder: frames, page, figures and tables."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from eamp.files import write_atomically
from eamp.paper import accuracy_charts, energy_charts, entropy_charts, tables
from eamp.paper.deep_networks import advice, deep_networks
from eamp.paper.differences_from_paper import PROTOCOL_NOTES, differences, not_measured
from eamp.paper.findings import findings
from eamp.paper.frames import COLUMNS, DamagedFileError, Frames, load_frames, save_frames
from eamp.report import figure, page, table
from eamp.report.figure import Figure
from eamp.report.provenance import provenance, run_facts

FIGURES = (
    "deep_networks",
    "table_1",
    "variants",
    "figure_3",
    "figure_2",
    "thresholds",
    "figure_1a",
    "figure_1b",
)


def write_report(
    folder: Path | str, frames: Frames, *, notices: Iterable[str] = (), command: str = ""
) -> Path:
    """Save the frames of a run in ``folder``, and write page, figures and tables from them.

    Args:
        folder: Output folder; it is created if needed, and an earlier report in it is replaced.
        frames: What the run measured.
        notices: Warnings that the page shows first, for example that a dataset was replaced.
        command: The command that produced this report.

    Returns:
        The path of ``report.html``, which needs no other file.
    """
    if not isinstance(frames, Frames):
        raise TypeError(
            f"frames must be an eamp.paper.Frames, but is a {type(frames).__name__}; write "
            "write_report(folder, Frames(cells=...))."
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_frames(folder, frames)
    run: dict[str, Any] = {
        "command": command,
        "notices": list(notices),
        "protocol_notes": list(PROTOCOL_NOTES),
        "rows": {which: len(getattr(frames, which)) for which in COLUMNS},  # a loss is found out
    }
    text = json.dumps(run | provenance(), indent=2, ensure_ascii=False)
    write_atomically(folder / "run.json", text + "\n")
    return from_folder(folder)


def from_folder(folder: Path | str) -> Path:
    """Write page, figures and tables again from what :func:`write_report` saved.

    Date and machine stay those of the run.

    Args:
        folder: The output folder of an earlier report.

    Returns:
        The path of ``report.html``.

    Raises:
        FileNotFoundError: If the folder holds no report.
        DamagedFileError: If a file of the report is cut off or has lost rows.
    """
    folder = Path(folder)
    if not (folder / "run.json").exists():
        raise FileNotFoundError(
            f"{folder} holds no run.json, so no report was written there; "
            "give the folder of an earlier `eamp reproduce`."
        )
    run = read_run(folder / "run.json")
    frames = load_frames(folder, run.get("rows"))
    figures, printed = all_figures(frames), tables.all_tables(frames)
    replace_files(folder / "figures", FIGURES, figures, figure.save)
    replace_files(folder / "tables", tables.KEYS, printed, table.save)
    text = page.render(
        "eamp.paper",
        "paper.html",
        figures,
        tables=printed,
        by_dataset=tables.table_1_by_dataset(frames.cells),
        advice=advice(frames.deep_cells),
        findings=findings(frames),
        differences=(found := differences(frames)),
        not_measured=not_measured(found),
        notices=run.get("notices", []),
        protocol_notes=run.get("protocol_notes", []),
        facts=run_facts(run, trained_cells(frames)),
        date=run.get("date", ""),
    )
    path = folder / "report.html"
    write_atomically(path, text)
    return path


def trained_cells(frames: Frames) -> pd.DataFrame:
    """Return all trained networks of a run."""
    parts = [part for part in (frames.deep_cells, frames.cells) if not part.empty]
    return pd.concat(parts, ignore_index=True) if parts else frames.cells


def read_run(path: Path) -> dict[str, Any]:
    """Return what :func:`write_report` noted about a run."""
    try:
        run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # of JSON, or of a file that is not UTF-8
        raise DamagedFileError(path, str(error)) from error
    if not isinstance(run, dict):
        raise DamagedFileError(path, "it holds no JSON object")
    return run


def all_figures(frames: Frames) -> dict[str, Figure]:
    """Return the figures that the frames have data for, in the order of the page."""
    made = (
        deep_networks(frames.deep_cells),
        accuracy_charts.table_1(frames.cells),
        accuracy_charts.variants(frames.cells),
        energy_charts.figure_3(frames.layer_energies),
        energy_charts.figure_2(frames.depth_energies),
        energy_charts.thresholds(frames.thresholds),
        entropy_charts.figure_1a(),
        entropy_charts.figure_1b(),
    )
    return {one.key: one for one in made if one is not None}


def replace_files(
    folder: Path, keys: Sequence[str], made: Mapping[str, Any], save: Callable[[Any, Path], None]
) -> None:
    """Save what was made, and remove the files of an earlier report for the other keys."""
    for key in keys:
        if key in made:
            save(made[key], folder)
            continue
        for path in folder.glob(f"{key}.*"):
            path.unlink()
