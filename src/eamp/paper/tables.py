"""What each table of the report shows: Table 1, the variants, and the numbers behind the figures."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from eamp.paper.comparison import (
    PAPER_READING,
    READINGS,
    TEST_READING,
    TOLERANCE,
    deepest,
    paired,
    sorted_by,
    summarised,
    title,
)
from eamp.report import number_format as numbers

MARK = "†"


@dataclass(frozen=True)
class Table:
    """A table in print, and the numbers it was printed from.

    Attributes:
        key: its file name.
        columns: headings; the first ``labels`` of them are words, the others numbers.
        rows: every cell as text.
        raw: what is saved as CSV, unrounded.
        note: what stands below it.
        dataset: of which it speaks, where the page shows a table per dataset.
    """

    key: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    raw: pd.DataFrame
    labels: int = 1
    note: str = ""
    dataset: str = ""

    def grouped(self) -> list[list[tuple[str, ...]]]:
        """The rows in blocks of one first word."""
        breaks = [
            0,
            *(at for at in range(1, len(self.rows)) if self.rows[at][0] != self.rows[at - 1][0]),
            len(self.rows),
        ]
        return [list(self.rows[start:end]) for start, end in pairwise(breaks) if start < end]


def table_1(cells: pd.DataFrame) -> Table:
    """Dataset, model and depth: the paper's number, ours in the same reading, and the test accuracy."""
    summary = main_rows(summarised(cells))
    rows = tuple((title(row["data"]), *compared_row(row)) for row in summary.to_dict("records"))
    return Table(
        "table_1",
        table_1_caption(summary),
        ("dataset", *COMPARED),
        rows,
        summary.drop(columns="variant"),
        3,
        table_1_note(summary),
    )


def table_1_by_dataset(cells: pd.DataFrame) -> list[Table]:
    """The same, a table per dataset."""
    summary = main_rows(summarised(cells))
    return [
        Table(
            "table_1",
            title(data),
            COMPARED,
            tuple(compared_row(row) for row in part.to_dict("records")),
            part,
            2,
            "",
            data,
        )
        for data, part in summary.groupby("data", sort=False)
    ]


COMPARED = ("model", "depth", "paper", f"ours: {PAPER_READING}", TEST_READING)


def main_rows(summary: pd.DataFrame) -> pd.DataFrame:
    """Models under their own names, not the variants."""
    return summary[~summary["variant"].astype(bool)].reset_index(drop=True)


def compared_row(row: dict[str, float]) -> tuple[str, ...]:
    """One cell of Table 1, in its three readings."""
    ours = numbers.with_deviation(row["best_val_accuracy"], row["best_val_accuracy_deviation"])
    return (
        str(row["name"]),
        str(row["depth"]),
        numbers.accuracy(row["published"], 2),
        ours + (MARK if row["far"] else ""),
        numbers.with_deviation(row["test_accuracy"], row["test_accuracy_deviation"]),
    )


def table_1_caption(summary: pd.DataFrame) -> str:
    """Which numbers stand beside each other."""
    return f"Accuracy by depth. Paper: its Table 1 ({PAPER_READING}, one seed). Ours: the same reading, and the {TEST_READING}."


def table_1_note(summary: pd.DataFrame) -> str:
    """Seeds, and what the mark means if it occurs."""
    seeds = sorted(set(summary["seeds"]))
    parts = []
    if seeds:
        several = "; mean ± sample standard deviation" if seeds[-1] > 1 else ""
        parts.append(
            f"{' or '.join(numbers.counted(int(n), 'seed') for n in seeds)} per cell{several}."
        )
    if summary["far"].any():
        parts.append(
            f"{MARK} further than {numbers.accuracy(TOLERANCE, 2)} from the paper's number."
        )
    return " ".join(parts)


def variants(cells: pd.DataFrame) -> Table | None:
    """Variants beside their parents, seed by seed; ``None`` where there are none."""
    changes = paired(cells)
    if changes.empty:
        return None
    changes = sorted_by(changes, ["name", "data", "depth"])
    rows = []
    for row in changes.to_dict("records"):
        cell: list[str] = [row["name"], title(row["data"]), str(row["depth"])]
        for reading in READINGS:
            cell += [
                numbers.accuracy(row[f"{reading}_parent"]),
                numbers.accuracy(row[reading]),
                numbers.change_with_deviation(
                    row[f"{reading}_change"], row[f"{reading}_change_deviation"]
                ),
            ]
        rows.append(tuple(cell))
    columns = (
        "variant",
        "dataset",
        "depth",
        *(
            f"{which}: {words}"
            for words in READINGS.values()
            for which in ("base", "variant", "change")
        ),
    )
    seeds = " or ".join(numbers.counted(int(n), "seed") for n in sorted(set(changes["seeds"])))
    note = f"Base: the model before the comma. Changes are paired seed by seed ({seeds}; ± sample standard deviation of the differences)."
    return Table(
        "variants",
        "What the paper's shortcuts cost: each variant beside its base.",
        columns,
        tuple(rows),
        changes,
        3,
        note,
    )


def figure_2(depth_energies: pd.DataFrame) -> Table | None:
    """Energy of untrained networks by depth, means over seeds."""
    if depth_energies.empty:
        return None
    order = list(dict.fromkeys(depth_energies["network"]))
    wide = depth_energies.pivot_table(
        index="network", columns="depth", values="energy", aggfunc="mean"
    ).loc[order]
    rows = tuple(
        (str(network), *map(numbers.energy, row))
        for network, row in zip(wide.index, wide.to_numpy().tolist(), strict=True)
    )
    seeds = numbers.counted(depth_energies["seed"].nunique(), "seed")
    caption = f"Mean Dirichlet energy of untrained networks on the 10 × 10 grid, by number of layers; mean over {seeds}."
    return Table(
        "figure_2",
        caption,
        ("network", *map(str, wide.columns)),
        rows,
        depth_energies,
        1,
        "0 means exactly 0.",
    )


def figure_3(layer_energies: pd.DataFrame) -> Table | None:
    """The U-curves in five numbers each; the CSV holds every layer."""
    if layer_energies.empty:
        return None
    curves = sorted_by(u_curves(deepest(layer_energies)), ["data", "name", "depth"])
    rows = tuple(
        (
            title(row["data"]),
            row["name"],
            str(row["depth"]),
            *(numbers.energy(row[key]) for key in ("first", "lowest", "middle", "last")),
            str(row["lowest_layer"]),
        )
        for row in curves.to_dict("records")
    )
    columns = (
        "dataset",
        "model",
        "depth",
        "first layer",
        "lowest",
        "median of the middle third",
        "last layer",
        "layer of the lowest",
    )
    seeds = numbers.counted(layer_energies["seed"].nunique(), "seed")
    return Table(
        "figure_3",
        f"Energy after the layers of the deepest trained networks; mean over {seeds}.",
        columns,
        rows,
        layer_energies,
        3,
    )


def u_curves(layer_energies: pd.DataFrame) -> pd.DataFrame:
    """Per dataset, model and depth: energy at the first and last layer, the lowest with its layer, and the middle third's median."""
    rows = []
    for (data, name, depth), part in layer_energies.groupby(["data", "name", "depth"], sort=False):
        curve = part.groupby("layer")["energy"].mean().sort_index()
        third = len(curve) // 3
        middle = curve.iloc[third : len(curve) - third]
        row = {
            "data": data,
            "name": name,
            "depth": depth,
            "first": curve.iloc[0],
            "last": curve.iloc[-1],
            "middle": middle.median(),
        }
        rows.append(
            row
            | {
                "lowest": curve.min(),
                "lowest_layer": curve.idxmin() if curve.notna().any() else numbers.NOTHING,
            }
        )
    return pd.DataFrame(rows)


def thresholds(found: pd.DataFrame) -> Table | None:
    """λ's threshold by graph and width."""
    if found.empty:
        return None
    rows = tuple(
        (r["graph"], str(r["width"]), f"{r['measured']:.2f}", f"{r['predicted']:.2f}")
        for r in found.to_dict("records")
    )
    caption = "λ above which an untrained ReLU GCN of 100 layers keeps its energy (T = 1): measured, and predicted from the graph's spectrum."
    return Table("thresholds", caption, ("graph", "width", "measured", "predicted"), rows, found, 1)
