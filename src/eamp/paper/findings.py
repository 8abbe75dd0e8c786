"""Summarise a run in sentences and headline numbers, all computed from its frames."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from eamp.paper.comparison import TOLERANCE, mean_text, summarised
from eamp.paper.energy_statistics import deepest, energy_kept, figure_2_threshold, u_curves
from eamp.paper.frames import Frames
from eamp.paper.naming import PAPER_READING, TEST_READING, title, without_variants
from eamp.paper.published import (
    BASIC,
    ENTROPIC,
    ENTROPIC_SETTINGS,
    PAIRNORM,
    lowest_energies,
)
from eamp.report.means import means_of
from eamp.report.number_format import format_accuracy, format_change, format_count, format_energy


@dataclass(frozen=True)
class Finding:
    """A sentence, and a number that the page shows in large type, with its description."""

    sentence: str = ""
    number: str = ""
    words: str = ""


def findings(frames: Frames) -> list[Finding]:
    """Return what the run found; a part that was not run adds nothing."""
    summary = summarised(frames.cells)
    return [
        *deepest_networks(frames.deep_cells),
        *agreement(summary),
        *greatest_depth(summary),
        *shallow_pairnorm(summary),
        *gap_between_readings(summary),
        *lowest_layers(frames.layer_energies),
        *untrained(frames.depth_energies),
        *threshold(frames.thresholds),
    ]


def deepest_networks(deep_cells: pd.DataFrame) -> Iterator[Finding]:
    """Show the best network of the greatest depth beside the basic GCN of that depth."""
    if deep_cells.empty:
        return
    means = means_of(deep_cells)
    means = means[means["diverged"] == 0].dropna(subset="mean")
    deep = means[means["depth"] == means["depth"].max()]
    best = deep.sort_values("mean", ascending=False).head(1)
    for row in pd.concat([best, deep[deep["name"] == BASIC]]).drop_duplicates().to_dict("records"):
        words = f"test accuracy of {row['name']} with {row['depth']} layers on {title(row['data'])}"
        yield Finding(number=format_accuracy(row["mean"], 2), words=words)


def agreement(summary: pd.DataFrame) -> Iterator[Finding]:
    """Count the cells near the paper's Table 1, and name the furthest."""
    if summary.empty:
        return
    known = summary[summary["difference"].notna()]
    if known.empty:
        missing = "The paper has no numbers for this dataset, so there is no comparison with it."
        yield Finding(missing)
        return
    near, total = int((~known["far"].astype(bool)).sum()), len(known)
    limit = format_accuracy(TOLERANCE, 2)
    worst = known.loc[known["difference"].abs().idxmax()]
    sentence = (
        f"{near} of the {total} cells of the paper's Table 1 that were run lie within {limit} of "
        f"its number, in its own reading ({PAPER_READING}). "
        f"The furthest is {worst['name']} with {worst['depth']} layers on {title(worst['data'])}: "
        f"{format_accuracy(worst['best_val_accuracy'])}, where the paper has "
        f"{format_accuracy(worst['published'], 2)}."
    )
    words = f"accuracies of the paper's Table 1 that came out within {limit} of the printed ones"
    yield Finding(sentence, f"{near} of {total}", words)


def greatest_depth(summary: pd.DataFrame) -> Iterator[Finding]:
    """Compare Entropic with Basic GCN at the greatest depth on each dataset."""
    for data, part in summary.groupby("data", sort=False):
        depth = part["depth"].max()
        at = part[part["depth"] == depth].set_index("name")
        if BASIC not in at.index or ENTROPIC not in at.index:
            continue
        pair = at.loc[[ENTROPIC, BASIC]]
        rows = pair.to_dict("records")
        ours, test = (
            [mean_text(row, reading) for row in rows]
            for reading in ("best_val_accuracy", "test_accuracy")
        )
        sentence = (
            f"With {depth} layers on {title(data)}, {ENTROPIC} reaches a {PAPER_READING} of "
            f"{ours[0]}, and {BASIC} of {ours[1]}"
        )
        if pair["published"].notna().all():
            printed = [format_accuracy(value, 2) for value in pair["published"]]
            sentence += f" (paper: {printed[0]} and {printed[1]})"
        sentence += f"; their {TEST_READING} is {test[0]} and {test[1]}."
        best = at["test_accuracy"].astype(float)
        if best.notna().any():
            highest = f"{best.idxmax()}, {format_accuracy(best.max())}"
            sentence += f" Highest there, by {TEST_READING}: {highest}."
        gap = rows[0]["best_val_accuracy"] - rows[1]["best_val_accuracy"]
        words = (
            f"accuracy that the entropy step adds to a basic GCN of {depth} layers on {title(data)}"
            f", by {PAPER_READING}, trained as in the paper"
        )
        # A headline does not rest on a cell that came out differently in the paper.
        shown = "" if pair["far"].any() else format_change(gap, digits=2)
        yield Finding(sentence, shown, words)


def shallow_pairnorm(summary: pd.DataFrame) -> Iterator[Finding]:
    """Check the paper's statement that Entropic GCN outperforms PairNorm when shallow."""
    for data, part in summary.groupby("data", sort=False):
        depth = part["depth"].min()
        at = part[part["depth"] == depth].set_index("name")
        if ENTROPIC not in at.index or PAIRNORM not in at.index:
            continue
        rows = at.loc[[ENTROPIC, PAIRNORM]].to_dict("records")
        holds = rows[0]["best_val_accuracy"] > rows[1]["best_val_accuracy"]
        ours = [mean_text(row, "best_val_accuracy") for row in rows]
        yield Finding(
            f"That {ENTROPIC} outperforms {PAIRNORM} when shallow {'holds' if holds else 'fails'} "
            f"on {title(data)} with {depth} layers ({PAPER_READING}: {ours[0]} against {ours[1]})."
        )


def gap_between_readings(summary: pd.DataFrame) -> Iterator[Finding]:
    """State how far the paper's reading lies above the test accuracy."""
    gap = (summary["best_val_accuracy"] - summary["test_accuracy"]).astype(float).dropna()
    if gap.empty:
        return
    word = "above" if gap.mean() >= 0 else "below"
    yield Finding(
        f"The {PAPER_READING} lies on average {format_accuracy(abs(gap.mean()))} {word} the "
        f"{TEST_READING} of the same runs (from {format_change(gap.min())} to "
        f"{format_change(gap.max())} over {format_count(len(gap), 'cell')})."
    )


def lowest_layers(layer_energies: pd.DataFrame) -> Iterator[Finding]:
    """State the lowest energy of any layer, and the paper's where it gives one."""
    trained = without_variants(deepest(layer_energies))
    if trained.empty:
        return
    for (data, depth), part in u_curves(trained).groupby(["data", "depth"], sort=False):
        published, words = lowest_energies(data, depth), []
        for row in part.to_dict("records"):
            name, lowest = row["name"], format_energy(row["lowest"])
            given = f", the paper's {published[name]:g}" if name in published else ""
            words.append(f"{name} {lowest} (layer {row['lowest_layer']}{given})")
        sentence = (
            f"Lowest energy after any layer of the trained {depth}-layer networks on "
            f"{title(data)}: {', '.join(words)}."
        )
        yield Finding(sentence)


def untrained(depth_energies: pd.DataFrame) -> Iterator[Finding]:
    """List the untrained networks that keep their energy to the greatest depth."""
    if depth_energies.empty:
        return
    table = energy_kept(depth_energies)

    def listed(part: pd.DataFrame) -> str:
        rows = part.to_dict("records")
        return "; ".join(f"{r['network']} ({format_energy(r['last'])})" for r in rows) or "none"

    yield Finding(
        f"Untrained, {table['depth'].max()} layers deep, on the grid. Keeping at least a tenth "
        f"of the shallowest network's energy: {listed(table[table['kept']])}. "
        f"Losing more than that: {listed(table[~table['kept']])}."
    )


def threshold(thresholds: pd.DataFrame) -> Iterator[Finding]:
    """State the threshold of λ in the setting of Figure 2, and how the paper's choices compare."""
    row = figure_2_threshold(thresholds)
    if row is None:
        return
    limit = float(row["measured"])
    sides = [
        f"λ = {weight:g}, the paper's choice for {title(data)}, lies "
        f"{'above' if weight > limit else 'below'} it"
        for data, (weight, _) in ENTROPIC_SETTINGS.items()
    ]
    sentence = (
        f"At width {row['width']} on the graph “{row['graph']}” the entropy step holds the energy "
        f"only for λ above {limit:.1f} (predicted from the spectrum: {row['predicted']:.1f}); "
        f"{' and '.join(sides)}."
    )
    words = (
        f"weight that the entropy step needs to keep the nodes of a deep GCN apart, at the paper's "
        f"width of {row['width']}; the paper takes {ENTROPIC_SETTINGS['cora'][0]:g} on Cora"
    )
    yield Finding(sentence, f"λ > {limit:.1f}", words)
