"""The verdict: findings in a table of measures by layer.

The thresholds lie between models that work and models that fail. The numbers in the comments are
those that ``python -m benchmarks.verdict_thresholds cora`` prints.

An embedding is judged twice: as a layer returns it, and as the next layer receives it, behind
activation, norm and residual connections. It counts as collapsed only if both are. So neither a
ReLU, which lowers the energy a little, nor a residual connection outside of the layer misleads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from eamp.diagnostics.causes.attribution import (
    Array,
    Part,
    column,
    culprit_of,
    culprit_words,
    logarithms,
    next_inputs,
    outputs,
)
from eamp.diagnostics.rendering import format_number

if TYPE_CHECKING:
    import pandas as pd

Kind: TypeAlias = Literal[
    "healthy",
    "untrained",
    "smoothing",
    "shrinking",
    "rank loss",
    "exploding",
    "dead units",
    "offset",
    "vanishing gradient",
    "exploding gradient",
    "low accuracy",
]

# Smoothing: scale-free energy below SMOOTHED, at which neighbours differ by sqrt(2 · 1e-3), under
# 5 % of their length.
SMOOTHED = 1e-3
# Also smoothing: energy below SMOOTHED_FALL times the first layer's and below SMOOTHED_AFTER_FALL.
# The second number was set on a grid, where averaging noise needs twenty layers to reach it.
SMOOTHED_FALL, SMOOTHED_AFTER_FALL = 1 / 20, 2e-2
# Such a fall counts behind this many layers. A network of fewer layers averages random features as
# much, and learns.
SHALLOW = 4

# Offset: the same fall of energy, but due to a vector that layers add to all nodes. It counts from
# the point on where float32 keeps fewer than four digits of the differences.
OFFSET = 1e-7

# Shrinking: norm below this share of the first layer's. Energies, being quadratic, are then 1e-4
# of what they were.
SHRUNK = 1e-2

# Exploding: norm above EXPLODED times the first layer's, and above EXPLODED_NORM, because small
# input features (normalised word counts) grow up to 630-fold in models that work.
EXPLODED, EXPLODED_NORM = 1e3, 1e2

# Loss of rank: effective rank over the possible rank below RANK_FALL times the first layer's, or
# below twice that if few directions are left, or an effective rank below ONE_DIRECTION, at which
# all rows are nearly parallel.
RANK_FALL, ONE_DIRECTION = 1 / 20, 1.5
# Features and first layers of lower effective rank have no rank to lose.
RANK_TO_LOSE = 3.0
# Narrower layers, such as those that make logits, may have one direction without any fault.
WIDE = 16
# Correlation from which on units count as repetitions of each other. It is below .4 in untrained
# shallow networks, whose biases lower the effective rank, and above .8 where rank is lost.
CORRELATED = 0.5

# Dead units: share of units that fire at no node. It is about 1/2 in any network whose nodes are
# all alike, because a ReLU is then on at all of them or off at all of them.
DEAD = 0.75

# Gradients: norm of gradient times embedding, over that of the last layer. It is the size of a
# gradient of weights, and does not change if an embedding only shrinks or grows.
VANISHED, BLOWN_UP = 1e-3, 1e3


@dataclass(frozen=True)
class Finding:
    """One thing that goes wrong, between ``layer`` and ``last``, both counted from 1.

    Attributes:
        kind: what goes wrong.
        layer: the first layer where it does.
        last: the last one.
        words: the numbers, in words.
        culprit: the part of the layers that does it: ``"weights"``, ``"aggregation"`` or
            ``"between"``, for what stands between two layers; ``None`` if unknown.
        harmless: whether labels can be read behind these layers as well as before; ``None`` if
            unknown.
    """

    kind: Kind
    layer: int
    last: int
    words: str
    culprit: Part | None = None
    harmless: bool | None = None


def findings(table: pd.DataFrame) -> tuple[Finding, ...]:
    """Return everything that goes wrong, the most important first.

    Smoothing comes before the shrinking and the loss of rank that it may cause. Dead units that
    follow smoothing or shrinking are their consequence and are left out.
    """
    exploding, dead, smoothing = find_exploding(table), find_dead(table), find_smoothing(table)
    alone = smoothing is None or smoothing.kind != "smoothing"
    shrinking, rank = find_shrinking(table, alone), find_rank_loss(table, alone)
    if dead and any(cause and cause.layer < dead.layer for cause in (smoothing, shrinking)):
        dead = None
    later = sorted((f for f in (rank, shrinking) if f), key=lambda finding: finding.layer)
    found = [exploding, dead, smoothing, *later, *find_gradients(table)]
    return tuple(finding for finding in found if finding)


def collapsed_at_most(table: pd.DataFrame, quantity: str) -> Array:
    """Return the larger of a quantity at a layer's output and at the next layer's input."""
    return np.fmax(outputs(table, quantity), next_inputs(table, quantity))


def find_smoothing(table: pd.DataFrame) -> Finding | None:
    """Find layers whose neighbours are alike, whatever the size of the embedding."""
    energy = collapsed_at_most(table, "energy")
    fallen = (energy < SMOOTHED_AFTER_FALL) & (energy < SMOOTHED_FALL * energy[0])
    deep = np.arange(len(energy)) >= SHALLOW
    low, offset = (energy < SMOOTHED) | (fallen & deep), by_offset(table)
    words = "neighbours become alike; the scale-free energy is"
    found = make_finding("smoothing", low & ~offset, energy, words, np.nanargmin)
    if found is None:
        words = "a vector that all nodes share drowns their differences; the scale-free energy is"
        found = make_finding("offset", offset & (energy < OFFSET), energy, words, np.nanargmin)
    return found and blamed(found, table, "energy", falls=True)


def by_offset(table: pd.DataFrame) -> Array:
    """Return where nodes are alike because of biases, and not because of aggregation.

    Biases add the same vector to all nodes, which lowers the energy without any aggregation.
    """
    if "weights_energy" not in table:
        return np.zeros(len(table), dtype=bool)
    start = np.nan_to_num(column(table, "input_energy")[0], nan=1.0)
    weights, aggregation = (
        np.exp(np.nancumsum(logarithms(column(table, f"{part}_energy"))))
        for part in ("weights", "aggregation")
    )
    return (weights < SMOOTHED_FALL) & (start * aggregation > SMOOTHED)


def find_shrinking(table: pd.DataFrame, alone: bool) -> Finding | None:
    """Find layers whose norm has fallen; ``alone`` if there is no smoothing."""
    norm = collapsed_at_most(table, "norm")
    alike = ", though nodes differ as before relative to its size" if alone else ""
    words = f"the embedding vanishes{alike}; its norm is"
    found = make_finding("shrinking", norm < SHRUNK * norm[0], norm, words, np.nanargmin)
    return found and blamed(found, table, "norm", falls=True)


def find_exploding(table: pd.DataFrame) -> Finding | None:
    """Find layers whose norm is huge or not finite."""
    out, after = outputs(table, "norm"), next_inputs(table, "norm")
    norm = np.fmin(out, after)  # what a norm behind the layer takes back does not explode
    last = ~np.isfinite(out)
    high = last | ((norm > EXPLODED * norm[0]) & (norm > EXPLODED_NORM))
    norm = np.where(last, np.inf, norm)
    words = "the embedding blows up; its norm is"
    found = make_finding("exploding", high, norm, words, np.argmax)
    return found and blamed(found, table, "norm", falls=False)


def find_rank_loss(table: pd.DataFrame, alone: bool) -> Finding | None:
    """Find layers whose effective rank has fallen; ``alone`` if there is no smoothing."""
    rank = collapsed_at_most(table, "rank")
    possible = np.minimum(column(table, "nodes"), column(table, "width"))
    features = column(table, "input_rank")[0]
    if not np.fmax(features, rank[0]) >= RANK_TO_LOSE:
        return None
    share = rank / possible / (rank[0] / possible[0])
    fallen = (share < RANK_FALL) | ((share < 2 * RANK_FALL) & (rank < RANK_TO_LOSE))
    lost = fallen | ((rank < ONE_DIRECTION) & (possible >= WIDE))
    # An offset is one strong direction. Behind it there may be others, unless units are correlated.
    lost &= ~by_offset(table) | (column(table, "column_correlation") > CORRELATED)
    differ = ", though neighbours still differ" if alone else ""
    words = f"rows become parallel{differ}; the effective rank is"
    found = make_finding("rank loss", lost, rank, words, np.nanargmin)
    return found and blamed(found, table, "rank", falls=True)


def find_dead(table: pd.DataFrame) -> Finding | None:
    """Find layers most of whose units fire at no node.

    The units of a layer show at its output or, behind its activation, at the next layer's input.
    """
    inputs = column(table, "dead_inputs")
    behind = np.append(inputs[1:], np.nan)
    if inputs[0] >= DEAD:  # features of the data that are zero at every node are no dead units
        behind = np.where(behind > inputs[0], behind, np.nan)
    dead = np.fmax(column(table, "dead_units"), behind)
    words = "most units fire at no node; their share is"
    return make_finding("dead units", dead >= DEAD, dead, words, np.nanargmax)


def find_gradients(table: pd.DataFrame) -> list[Finding]:
    """Find layers at which gradients have vanished or exploded, beside those of the last layer."""
    size = np.fmax(
        outputs(table, "gradient") * outputs(table, "norm"),
        next_inputs(table, "gradient") * next_inputs(table, "norm"),
    )
    start = column(table, "input_gradient")[0] * column(table, "input_norm")[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        start, size = start / size[-1], size / size[-1]
    # An initial residual brings gradients to the start around all layers.
    vanished = (size < VANISHED) & ~(start >= VANISHED)
    found = []
    words = "gradient times embedding, over that of the last layer, is"
    for kind, where, worst in (
        ("vanishing gradient", vanished, np.nanargmin),
        ("exploding gradient", size > BLOWN_UP, np.nanargmax),
    ):
        finding = make_finding(kind, where, size, words, worst)
        if finding is not None:
            # On its way back a gradient passes the last layers first.
            falls = kind == "vanishing gradient"
            first, last = finding.layer, len(table)
            culprit = culprit_of(table, "gradient", first + 1, last, falls)
            if culprit is not None:
                by = culprit_words(table, "gradient", first + 1, last, culprit, falls)
                finding = replace(finding, culprit=culprit, words=f"{finding.words}; by {by}")
            found.append(finding)
    return found


def blamed(finding: Finding, table: pd.DataFrame, quantity: str, falls: bool) -> Finding:
    """Return the finding with its culprit, if the parts of the layers are known."""
    culprit = culprit_of(table, quantity, 1, finding.layer, falls)
    if culprit is None:
        return finding
    by = culprit_words(table, quantity, 1, finding.layer, culprit, falls)
    return replace(finding, culprit=culprit, words=f"{finding.words}; by {by}")


def make_finding(
    kind: Any, where: Array, values: Array, words: str, worst: Callable[[Array], Any]
) -> Finding | None:
    """Return the finding, or ``None`` if it occurs at no layer (``where`` is false everywhere).

    Its words give the values at the first layer, at the first one found, and at the worst.
    """
    layers = np.flatnonzero(where)
    if layers.size == 0:
        return None
    first, last = int(layers[0]), int(layers[-1])
    shown = sorted({0, first, int(worst(values))})
    numbers = ", ".join(f"{format_number(float(values[k]))} at layer {k + 1}" for k in shown)
    return Finding(kind, first + 1, last + 1, f"{words} {numbers}")
