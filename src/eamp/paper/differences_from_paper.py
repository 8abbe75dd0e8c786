"""Explain how this reproduction differs from the paper, with the effect that the run measured."""

from dataclasses import dataclass

import pandas as pd

from eamp.experiments.network_names import NETWORK
from eamp.paper.comparison import paired
from eamp.paper.energy_statistics import energy_kept, figure_2_threshold
from eamp.paper.entropy_charts import TEMPERATURE, gradient_error
from eamp.paper.frames import Frames
from eamp.paper.naming import PAPER_READING, READINGS, TEST_READING, title
from eamp.paper.published import ENTROPIC
from eamp.report.number_format import format_change, format_count, format_energy

PROTOCOL_NOTES = (
    "Public split; width 256; Adam with learning rate 1e-3, no weight decay, no dropout; "
    "cross-entropy summed over the training nodes; "
    "learning rate annealed to 0 along a cosine over 100 epochs.",
    "λ = 1, T = 10; on CiteSeer λ = 10, T = 1.",
    "Depth L means L hidden layers and an output convolution for Basic and Entropic GCN; "
    "L − 1 hidden layers and an output convolution for PairNorm; "
    "for G2 a linear encoder, L applications of one shared convolution, and a linear decoder.",
    "PairNorm scales each node individually, to 3, on row-normalised features.",
)
"""How the paper's numbers were obtained, by the authors' code; the recipes do the same."""
NOT_MEASURED = (
    "The effects of the others were not measured in this run; "
    "`eamp reproduce --only variants figures` measures them."
)


@dataclass(frozen=True)
class Difference:
    """A point on which the paper, its code and this run differ, and its measured effect."""

    subject: str
    what: str
    measured: str


def differences(frames: Frames) -> list[Difference]:
    """Return all differences, each with its effect if the run measured it."""
    changes = paired(frames.cells)
    energies = energies_held(frames.depth_energies), threshold(frames.thresholds)
    return [
        Difference(
            "Which accuracy",
            f"The number in the paper's table is the {PAPER_READING} over the epochs of one seed; "
            "no test node is looked at. Here that reading is kept apart from the "
            f"{TEST_READING}; both come from the same runs.",
            seeds_per_cell(frames.cells),
        ),
        Difference(
            "G2's logits",
            "The authors' G2 passes its logits through a ReLU, which the code of G2's own authors "
            "does not.",
            change_of(changes, "G2, no ReLU on logits"),
        ),
        Difference(
            "Detached or not",
            "The paper says that the entropy step is detached from back-propagation; its code "
            "differentiates through it.",
            change_of(changes, "Entropic GCN, detached"),
        ),
        Difference(
            "The gradient's formula",
            "The paper takes one normaliser C out of the sum over neighbours, which is right on "
            f"regular graphs only. On the example of Figure 1a, at T = {TEMPERATURE:g}, its "
            f"formula is {100 * gradient_error():.0f} % of the gradient's size away from it.",
            change_of(changes, "Entropic GCN, exact gradient"),
        ),
        Difference(
            "The formula of P̄",
            "The paper prints (P + 1) ⊙ ln P. Its proof and its argument about signs need "
            "P ⊙ (1 + ln P), which is what is computed here.",
            "",
        ),
        Difference(
            "Figure 2's constant energy",
            "The paper says that Entropic GCN holds its energy to depth 1000. Whether it does "
            "depends on λ: the step has to win over the contraction of the layer itself.",
            " ".join(filter(None, energies)),
        ),
    ]


def not_measured(found: list[Difference]) -> str:
    """Return a sentence on the differences without a measured effect, if there are several."""
    missing = [point for point in found if not point.measured]
    return NOT_MEASURED if len(missing) > 1 else ""  # that of a formula needs no measurement


def seeds_per_cell(cells: pd.DataFrame) -> str:
    """State how many seeds each mean is taken over."""
    if cells.empty:
        return "No network was trained in this run."
    number = cells.groupby(NETWORK)["seed"].nunique()
    low, high = int(number.min()), int(number.max())
    return f"{format_count(low, 'seed') if low == high else f'{low} to {high} seeds'} per cell."


def change_of(changes: pd.DataFrame, variant: str) -> str:
    """State what a variant changes at its greatest depth on each dataset."""
    part = changes[changes["name"] == variant]
    if part.empty:
        return ""
    words = []
    for data, rows in part.groupby("data", sort=False):
        row = rows.loc[rows["depth"].idxmax()]
        texts = (
            f"{format_change(row[f'{reading}_change'], row[f'{reading}_change_deviation'])} {name}"
            for reading, name in READINGS.items()
        )
        words.append(f"{title(data)}, {row['depth']} layers: {', '.join(texts)}")
    return f"“{variant}” against its base — {'; '.join(words)} (paired over seeds)."


def energies_held(depth_energies: pd.DataFrame) -> str:
    """State whether each Entropic GCN of Figure 2 holds its energy at its greatest depth."""
    if depth_energies.empty:
        return ""
    table = energy_kept(depth_energies)
    words = [
        f"{row['network']}: {format_energy(row['last'])} at {row['depth']} layers, "
        f"{'held' if row['kept'] else 'not held'}"
        for row in table[table["network"].str.startswith(ENTROPIC)].to_dict("records")
    ]
    return f"{'; '.join(words)}." if words else ""


def threshold(thresholds: pd.DataFrame) -> str:
    """State the measured threshold of λ, if there is one."""
    row = figure_2_threshold(thresholds)
    if row is None:
        return ""
    where = f"the graph “{row['graph']}” at width {row['width']}"
    return f"Measured threshold on {where}: λ = {row['measured']:.1f}."
