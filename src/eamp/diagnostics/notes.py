"""Notes of a diagnosis: observations that are no findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eamp.diagnostics.causes.attribution import scale_free_energy
from eamp.diagnostics.causes.usefulness import Usefulness
from eamp.diagnostics.rendering import format_number
from eamp.diagnostics.verdict import SMOOTHED, Finding
from eamp.graph import Graph

if TYPE_CHECKING:
    import pandas as pd

# Relative energy that is worth a note: unrelated neighbours have 1, opposite ones 2.
SHARPENED = 1.25

NO_DERIVATIVES = (
    "Note: gradients are unknown, because torch.inference_mode() has none; make model and data, "
    "and call eamp.diagnose, outside of it. torch.no_grad() may stay."
)


def no_edges_note(graph: Graph | None) -> tuple[str, ...]:
    """Return a note if the graph has no edges, so that nothing can be smoothed."""
    if graph is None or graph.num_edges > 0:
        return ()
    return (
        "Note: the graph has no edges, so neighbours cannot become alike, and no energy is judged. "
        "If it should have edges, check edge_index.",
    )


def sharpening_note(table: pd.DataFrame) -> tuple[str, ...]:
    """Return a note if neighbours are opposite, which a strong entropy step can cause."""
    energy = np.asarray(table["relative_energy"])
    if not np.nanmax(energy, initial=0) > SHARPENED:
        return ()
    most = int(np.nanargmax(energy))
    return (
        "Note: neighbours are more often opposite than alike; the relative energy is "
        f"{format_number(float(energy[most]))} at layer {most + 1}, where 1 means unrelated. "
        "If neighbours share labels, try a smaller λ or T.",
    )


def offset_note(table: pd.DataFrame, found: tuple[Finding, ...]) -> tuple[str, ...]:
    """Return a note if nodes are alike only because the layers add a vector to all of them."""
    energy = scale_free_energy(table)
    if not np.nanmin(energy, initial=1) < SMOOTHED or any(
        finding.kind in ("smoothing", "offset") for finding in found
    ):
        return ()
    least = int(np.nanargmin(energy))
    return (
        "Note: biases add a vector to all nodes that is large beside their differences; the "
        f"scale-free energy is {format_number(float(energy[least]))} at layer {least + 1}. "
        "Aggregation does not do this, and training usually changes it.",
    )


def training_note(useful: Usefulness | None) -> tuple[str, ...]:
    """Return a note if the model may be untrained, and is judged as it was made."""
    if useful is not None and useful.learned:
        return ()
    if useful is not None and useful.learned is False:
        return (
            "Note: the model answers no better than chance on the nodes it is trained on. Either "
            "it is untrained, and this describes its initialisation, or training has failed.",
        )
    hint = "" if useful else " Labels (data.y, or labels=) would tell whether it hurts."
    words = "Note: this describes the weights as they are; in an untrained model, how they start."
    return (words + hint,)
