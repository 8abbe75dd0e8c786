"""The tables of the report: Table 1, the variants, and the numbers behind the figures."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from eamp.paper.comparison import TOLERANCE, mean_text, paired, summarised
from eamp.paper.deep_networks import deep_networks_table
from eamp.paper.energy_statistics import deepest, u_curves
from eamp.paper.frames import Frames
from eamp.paper.naming import PAPER_READING, READINGS, TEST_READING, sorted_by, title
from eamp.report.number_format import format_accuracy, format_change, format_count, format_energy
from eamp.report.table import MARK, Table

KEYS = ("deep_networks", "table_1", "variants", "figure_3", "figure_2", "thresholds")
TABLE_1_COLUMNS = ("model", "depth", "paper", f"ours: {PAPER_READING}", TEST_READING)


def all_tables(frames: Frames) -> dict[str, Table]:
    """Return the tables that the frames have data for, by their keys."""
    made = (
        deep_networks_table(frames.deep_cells),
        table_1(frames.cells),
        variants(frames.cells),
        figure_3(frames.layer_energies),
        figure_2(frames.depth_energies),
        thresholds(frames.thresholds),
    )
    return {table.key: table for table in made if table is not None and table.rows}


def table_1(cells: pd.DataFrame) -> Table:
    """Compare every cell with the paper's Table 1, and show its test accuracy beside it."""
    summary = summarised(cells)
    rows = tuple((title(row["data"]), *table_1_row(row)) for row in summary.to_dict("records"))
    caption = (
        f"Accuracy by depth. Paper: its Table 1 ({PAPER_READING}, one seed). "
        f"Ours: the same reading, and the {TEST_READING}."
    )
    note = table_1_note(summary)
    return Table("table_1", caption, ("dataset", *TABLE_1_COLUMNS), rows, summary, 3, note)


def table_1_by_dataset(cells: pd.DataFrame) -> list[Table]:
    """Return Table 1 as one table per dataset."""
    tables = []
    for data, part in summarised(cells).groupby("data", sort=False):
        rows = tuple(table_1_row(row) for row in part.to_dict("records"))
        tables.append(Table("table_1", title(data), TABLE_1_COLUMNS, rows, part, 2))
    return tables


def table_1_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return model, depth, and the three accuracies of a row of Table 1."""
    ours = mean_text(row, "best_val_accuracy") + (MARK if row["far"] else "")
    paper, test = format_accuracy(row["published"], 2), mean_text(row, "test_accuracy")
    return str(row["name"]), str(row["depth"]), paper, ours, test


def table_1_note(summary: pd.DataFrame) -> str:
    """State the number of seeds, and what the mark means if a row has it."""
    parts = []
    if not summary.empty:
        several = "; mean ± sample standard deviation" if summary["seeds"].max() > 1 else ""
        parts.append(f"{seed_counts(summary)} per cell{several}.")
    if summary["far"].any():
        limit = format_accuracy(TOLERANCE, 2)
        parts.append(f"{MARK} further than {limit} from the paper's number.")
    return " ".join(parts)


def seed_counts(summary: pd.DataFrame) -> str:
    """List the distinct numbers of seeds."""
    return " or ".join(format_count(int(n), "seed") for n in sorted(set(summary["seeds"])))


def variants(cells: pd.DataFrame) -> Table | None:
    """Compare variants with their parents, seed by seed; ``None`` without variants."""
    changes = paired(cells)
    if changes.empty:
        return None
    changes = sorted_by(changes, ["name", "data", "depth"])
    rows = []
    for row in changes.to_dict("records"):
        cells_of_row = [row["name"], title(row["data"]), str(row["depth"])]
        for reading in READINGS:
            change = format_change(row[f"{reading}_change"], row[f"{reading}_change_deviation"])
            means = (format_accuracy(row[name]) for name in (f"{reading}_parent", reading))
            cells_of_row += [*means, change]
        rows.append(tuple(cells_of_row))
    kinds = ("base", "variant", "change")
    readings = (f"{kind}: {words}" for words in READINGS.values() for kind in kinds)
    caption = "What the paper's shortcuts cost: each variant beside its base."
    note = (
        "Base: the model before the comma. Changes are paired seed by seed "
        f"({seed_counts(changes)}; ± sample standard deviation of the differences)."
    )
    columns = ("variant", "dataset", "depth", *readings)
    return Table("variants", caption, columns, tuple(rows), changes, 3, note)


def figure_2(depth_energies: pd.DataFrame) -> Table | None:
    """Show the energies of untrained networks by depth, as means over the seeds."""
    if depth_energies.empty:
        return None
    order = list(dict.fromkeys(depth_energies["network"]))
    wide = depth_energies.pivot_table(
        index="network", columns="depth", values="energy", aggfunc="mean"
    ).loc[order]
    rows = tuple((str(name), *map(format_energy, row)) for name, *row in wide.itertuples())
    caption = (
        "Mean Dirichlet energy of untrained networks on the 10 × 10 grid, by number of layers; "
        f"mean over {format_count(depth_energies['seed'].nunique(), 'seed')}."
    )
    columns = ("network", *map(str, wide.columns))
    return Table("figure_2", caption, columns, rows, depth_energies, 1, "0 means exactly 0.")


def figure_3(layer_energies: pd.DataFrame) -> Table | None:
    """Summarise the U-curves of the deepest networks; the CSV file holds every layer."""
    if layer_energies.empty:
        return None
    curves = sorted_by(u_curves(deepest(layer_energies)), ["data", "name", "depth"])
    rows = []
    for row in curves.to_dict("records"):
        labels = title(row["data"]), row["name"], str(row["depth"])
        energies = (format_energy(row[column]) for column in ("first", "lowest", "middle", "last"))
        rows.append((*labels, *energies, str(row["lowest_layer"])))
    headings = ("first layer", "lowest", "median of the middle third", "last layer")
    columns = ("dataset", "model", "depth", *headings, "layer of the lowest")
    seeds = format_count(layer_energies["seed"].nunique(), "seed")
    caption = f"Energy after the layers of the deepest trained networks; mean over {seeds}."
    return Table("figure_3", caption, columns, tuple(rows), layer_energies, 3)


def thresholds(found: pd.DataFrame) -> Table | None:
    """Show measured and predicted thresholds of λ by graph and width."""
    if found.empty:
        return None
    rows = tuple(
        (row["graph"], str(row["width"]), f"{row['measured']:.2f}", f"{row['predicted']:.2f}")
        for row in found.to_dict("records")
    )
    caption = (
        "λ above which an untrained ReLU GCN of 100 layers keeps its energy (T = 1): "
        "measured, and predicted from the graph's spectrum."
    )
    return Table("thresholds", caption, ("graph", "width", "measured", "predicted"), rows, found)
