"""The report in brief: sentences and headline numbers, all of them computed from the frames."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from eamp.paper.comparison import (
    PAPER_READING,
    TEST_READING,
    TOLERANCE,
    deepest,
    is_variant,
    summarised,
    title,
)
from eamp.paper.published import ENTROPIC_SETTINGS, FIGURE_3_DATA, FIGURE_3_DEPTH, FIGURE_3_LOWEST
from eamp.report import number_format as numbers
from eamp.paper.tables import main_rows, u_curves

KEPT = 0.1  # a network keeps its energy if the deepest one has at least this share of the shallowest one's
BASIC, ENTROPIC = "Basic GCN", "Entropic GCN"


@dataclass(frozen=True)
class Headline:
    """A number in large type, and what it is."""

    number: str
    words: str


@dataclass(frozen=True)
class Finding:
    """A sentence, and the number in it that may stand for it."""

    sentence: str
    headline: Headline | None = None


def in_brief(
    cells: pd.DataFrame,
    layer_energies: pd.DataFrame,
    depth_energies: pd.DataFrame,
    thresholds: pd.DataFrame,
) -> list[Finding]:
    """What the run found, as far as it was run."""
    summary = main_rows(summarised(cells))
    return [
        *agreement(summary),
        *at_the_greatest_depth(summary),
        *readings(summary),
        *middle_layers(layer_energies),
        *untrained(depth_energies),
        *threshold(thresholds),
    ]


def agreement(summary: pd.DataFrame) -> list[Finding]:
    """How many cells of Table 1 are near the paper's, and which is furthest."""
    known = summary[summary["difference"].notna()]
    if known.empty:
        return (
            []
            if summary.empty
            else [
                Finding(
                    "The paper has no numbers for this dataset, so nothing here can be set beside its Table 1."
                )
            ]
        )
    near, total, limit = (
        int((~known["far"].astype(bool)).sum()),
        len(known),
        numbers.accuracy(TOLERANCE, 2),
    )
    worst = known.loc[known["difference"].abs().idxmax()]
    sentence = (
        f"{near} of the {total} cells of the paper's Table 1 that were run lie within {limit} of its number, "
        f"in its own reading ({PAPER_READING}). "
        f"The furthest is {worst['name']} with {worst['depth']} layers on {title(worst['data'])}: "
        f"{numbers.accuracy(worst['best_val_accuracy'])}, where the paper has {numbers.accuracy(worst['published'], 2)}."
    )
    return [
        Finding(
            sentence,
            Headline(f"{near} / {total}", f"cells of Table 1 within {limit} of the paper's"),
        )
    ]


def at_the_greatest_depth(summary: pd.DataFrame) -> list[Finding]:
    """Entropic beside Basic at the greatest depth of each dataset."""
    found = []
    for data, part in summary.groupby("data", sort=False):
        depth = part["depth"].max()
        at = part[part["depth"] == depth].set_index("name")
        if BASIC not in at.index or ENTROPIC not in at.index:
            continue
        basic, entropic = at.loc[BASIC], at.loc[ENTROPIC]
        ours = [reading(row, "best_val_accuracy") for row in (entropic, basic)]
        sentence = f"With {depth} layers on {title(data)}, {ENTROPIC} reaches a {PAPER_READING} of {ours[0]}, and {BASIC} of {ours[1]}"
        if pd.notna(basic["published"]) and pd.notna(entropic["published"]):
            sentence += f" (paper: {numbers.accuracy(entropic['published'], 2)} and {numbers.accuracy(basic['published'], 2)})"
        best = at["test_accuracy"].astype(float)
        sentence += f"; their {TEST_READING} is {reading(entropic, 'test_accuracy')} and {reading(basic, 'test_accuracy')}."
        if best.notna().any():
            sentence += f" Highest there, by {TEST_READING}: {best.idxmax()}, {numbers.accuracy(best.max())}."
        gap = numbers.change(entropic["best_val_accuracy"] - basic["best_val_accuracy"], 2)
        found.append(
            Finding(
                sentence, Headline(gap, f"{ENTROPIC} over {BASIC} at {depth} layers, {title(data)}")
            )
        )
    return found


def reading(row: pd.Series, column: str) -> str:
    """Mean and deviation of one reading."""
    return numbers.with_deviation(row[column], row[f"{column}_deviation"])


def readings(summary: pd.DataFrame) -> list[Finding]:
    """How much the paper's reading flatters."""
    gap = (summary["best_val_accuracy"] - summary["test_accuracy"]).astype(float).dropna()
    if gap.empty:
        return []
    word = "above" if gap.mean() >= 0 else "below"
    return [
        Finding(
            f"The {PAPER_READING} lies on average {numbers.accuracy(abs(gap.mean()))} {word} the {TEST_READING} of the same runs "
            f"(from {numbers.change(gap.min())} to {numbers.change(gap.max())} over {numbers.counted(len(gap), 'cell')})."
        )
    ]


def middle_layers(layer_energies: pd.DataFrame) -> list[Finding]:
    """The lowest energy of any layer, beside the paper's where it gave one."""
    if layer_energies.empty:
        return []
    found = []
    for (data, depth), part in u_curves(deepest(layer_energies)).groupby(
        ["data", "depth"], sort=False
    ):
        the_papers = (data, depth) == (FIGURE_3_DATA, FIGURE_3_DEPTH)
        part = part[~part["name"].map(is_variant).astype(bool)]
        words = []
        for row in part.to_dict("records"):
            given = (
                f", the paper's {FIGURE_3_LOWEST[row['name']]:g}"
                if the_papers and row["name"] in FIGURE_3_LOWEST
                else ""
            )
            words.append(
                f"{row['name']} {numbers.energy(row['lowest'])} (layer {row['lowest_layer']}{given})"
            )
        if not words:
            continue
        sentence = f"Lowest energy after any layer of the trained {depth}-layer networks on {title(data)}: {', '.join(words)}."
        lowest = part.set_index("name")["lowest"]
        headline = None
        if BASIC in lowest.index and ENTROPIC in lowest.index:
            pair = f"{numbers.energy(lowest[ENTROPIC])} | {numbers.energy(lowest[BASIC])}"
            headline = Headline(
                pair, f"lowest energy of a trained layer, {ENTROPIC} | {BASIC}, {title(data)}"
            )
        found.append(Finding(sentence, headline))
    return found


def kept(depth_energies: pd.DataFrame) -> pd.DataFrame:
    """Per network of Figure 2: energy of the shallowest and deepest, and whether it was kept."""
    means = depth_energies.groupby(["network", "depth"], sort=False)["energy"].mean().reset_index()
    rows = []
    for network, part in means.groupby("network", sort=False):
        part = part.sort_values("depth")
        first, last = part.iloc[0], part.iloc[-1]
        rows.append(
            {
                "network": network,
                "depth": int(last["depth"]),
                "first": first["energy"],
                "last": last["energy"],
            }
        )
        rows[-1]["kept"] = bool(last["energy"] >= KEPT * first["energy"] and last["energy"] > 0)
    return pd.DataFrame(rows)


def untrained(depth_energies: pd.DataFrame) -> list[Finding]:
    """Which untrained networks keep their energy to the greatest depth."""
    if depth_energies.empty:
        return []
    table = kept(depth_energies)
    depth = table["depth"].max()

    def named(part: pd.DataFrame) -> str:
        return (
            "; ".join(
                f"{row['network']} ({numbers.energy(row['last'])})"
                for row in part.to_dict("records")
            )
            or "none"
        )

    sentence = (
        f"Untrained, {depth} layers deep, on the grid. Keeping at least a tenth of the shallowest network's energy: "
        f"{named(table[table['kept']])}. "
        f"Losing more than that: {named(table[~table['kept']])}."
    )
    return [Finding(sentence)]


def threshold(found: pd.DataFrame) -> list[Finding]:
    """λ's threshold in the setting of Figure 2, and on which side of it the paper's choices lie."""
    row = figure_2_threshold(found)
    if row is None:
        return []
    limit = float(row["measured"])
    sides = [
        f"λ = {weight:g}, the paper's choice for {title(data)}, lies {'above' if weight > limit else 'below'} it"
        for data, (weight, _) in ENTROPIC_SETTINGS.items()
    ]
    sentence = (
        f"At width {row['width']} on the graph “{row['graph']}” the entropy step holds the energy only for λ above {limit:.1f} "
        f"(predicted from the spectrum: {row['predicted']:.1f}); {' and '.join(sides)}."
    )
    return [
        Finding(
            sentence,
            Headline(
                f"λ > {limit:.1f}",
                f"needed to hold the energy at width {row['width']}, {row['graph']}",
            ),
        )
    ]


def figure_2_threshold(found: pd.DataFrame) -> pd.Series | None:
    """The row of the grid at the paper's width, or at the widest that was measured."""
    grid = found[found["graph"].astype(str).str.startswith("grid")] if not found.empty else found
    if grid.empty:
        return None
    wanted = grid[grid["width"] == 256]
    return wanted.iloc[0] if not wanted.empty else grid.loc[grid["width"].idxmax()]
