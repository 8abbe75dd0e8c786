"""What differs from the paper, and why. What is known of how the paper was run stands here; what it costs is computed from the run."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from eamp.paper.comparison import PAPER_READING, TEST_READING, paired, title
from eamp.paper.entropy_charts import TEMPERATURE, gradient_error
from eamp.paper.findings import ENTROPIC, figure_2_threshold, kept
from eamp.report import number_format as numbers

# How the paper's numbers came about, as its authors' code shows; the recipes follow it.
PROTOCOL_NOTES = (
    "Public split; width 256; Adam with learning rate 1e-3, no weight decay, no dropout; cross-entropy summed over the training nodes; "
    "learning rate annealed to 0 along a cosine over 100 epochs.",
    "λ = 1, T = 10; on CiteSeer λ = 10, T = 1.",
    "Depth L means L hidden layers and an output convolution for Basic and Entropic GCN; L − 1 hidden layers and an output convolution "
    "for PairNorm; for G2 a linear encoder, L applications of one shared convolution, and a linear decoder.",
    "PairNorm scales each node individually, to 3, on row-normalised features.",
)


@dataclass(frozen=True)
class Difference:
    """A point on which paper, code and this run do not agree, and what the run says of it."""

    subject: str
    what: str
    measured: str


def differences(
    cells: pd.DataFrame, depth_energies: pd.DataFrame, thresholds: pd.DataFrame
) -> list[Difference]:
    """All of them; where a run did not measure one, it says so."""
    changes = paired(cells)
    return [
        Difference(
            "Which accuracy",
            f"The number in the paper's table is the {PAPER_READING} over the epochs of one seed; no test node is looked at. "
            f"Here that reading is kept apart from the {TEST_READING}; both come from the same runs.",
            seeds_of(cells),
        ),
        Difference(
            "G2's logits",
            "The authors' G2 passes its logits through a ReLU, which the code of G2's own authors does not.",
            change_of(changes, "G2, no ReLU on logits"),
        ),
        Difference(
            "Detached or not",
            "The paper says that the entropy step is detached from back-propagation; its code differentiates through it.",
            change_of(changes, "Entropic GCN, detached"),
        ),
        Difference(
            "The gradient's formula",
            "The paper takes one normaliser C out of the sum over neighbours, which is right on regular graphs only. "
            f"On the example of Figure 1a, at T = {TEMPERATURE:g}, its formula is {100 * gradient_error():.0f} % of the gradient's size "
            "away from it.",
            change_of(changes, "Entropic GCN, exact gradient"),
        ),
        Difference(
            "The formula of P̄",
            "The paper prints (P + 1) ⊙ ln P. Its proof and its argument about signs need P ⊙ (1 + ln P), which is what is computed here.",
            "",
        ),
        Difference(
            "Figure 2's constant energy",
            "The paper says that Entropic GCN holds its energy to depth 1000. Whether it does depends on λ: the step has to win over the "
            "contraction of the layer itself.",
            " ".join(part for part in (held(depth_energies), needed(thresholds)) if part),
        ),
    ]


def seeds_of(cells: pd.DataFrame) -> str:
    """How many seeds stand behind a number of ours."""
    if cells.empty:
        return "No network was trained in this run."
    number = cells.groupby(["data", "name", "depth"])["seed"].nunique()
    low, high = int(number.min()), int(number.max())
    return f"Seeds per cell in this run: {low if low == high else f'{low} to {high}'}."


def change_of(changes: pd.DataFrame, variant: str) -> str:
    """What a variant changes at its greatest depth on each dataset, in both readings."""
    part = changes[changes["name"] == variant] if not changes.empty else changes
    if part.empty:
        return "Not measured in this run."
    words = []
    for data, rows in part.groupby("data", sort=False):
        row = rows.loc[rows["depth"].idxmax()]
        by = numbers.change_with_deviation(
            row["best_val_accuracy_change"], row["best_val_accuracy_change_deviation"]
        )
        test = numbers.change_with_deviation(
            row["test_accuracy_change"], row["test_accuracy_change_deviation"]
        )
        words.append(
            f"{title(data)}, {row['depth']} layers: {by} {PAPER_READING}, {test} {TEST_READING}"
        )
    return f"“{variant}” against its base — {'; '.join(words)} (paired over seeds)."


def held(depth_energies: pd.DataFrame) -> str:
    """Each Entropic GCN of Figure 2 at its greatest depth."""
    if depth_energies.empty:
        return "Not measured in this run."
    table = kept(depth_energies)
    rows = table[table["network"].str.startswith(ENTROPIC)].to_dict("records")
    words = [
        f"{r['network']}: {numbers.energy(r['last'])} at {r['depth']} layers, {'held' if r['kept'] else 'not held'}"
        for r in rows
    ]
    return f"{'; '.join(words)}." if words else ""


def needed(thresholds: pd.DataFrame) -> str:
    """λ's threshold, where it was measured."""
    row = figure_2_threshold(thresholds)
    return (
        ""
        if row is None
        else f"Measured threshold on the graph “{row['graph']}” at width {row['width']}: λ = {row['measured']:.1f}."
    )
