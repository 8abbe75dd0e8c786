"""The verdict: findings in a table of measures by layer.

The thresholds lie between models that work and models that fail. The numbers in the comments are
those that ``python benchmarks/verdict_thresholds.py cora`` prints: after training, seven models
work (test accuracy .70 to .81) and five fail (.09 to .25).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from eamp.diagnostics.rendering import format_number

if TYPE_CHECKING:
    import pandas as pd

Kind: TypeAlias = Literal[
    "healthy", "smoothing", "shrinking", "rank loss", "exploding", "dead units"
]
Array: TypeAlias = "np.ndarray[Any, Any]"

# Smoothing: scale-free energy below SMOOTHED, at which neighbours differ by sqrt(2 · 1e-3), under
# 5 % of their length. The lowest of models that work is 3.6e-3, the highest of those that fail
# 7.4e-4.
SMOOTHED = 1e-3
# Also smoothing: energy below SMOOTHED_FALL times the first layer's and below SMOOTHED_AFTER_FALL.
# Models that work keep at least .07 of the first layer's; GCN with 8 layers, which fails, .018.
# The second number was set on a grid, where averaging noise needs twenty layers to reach it.
SMOOTHED_FALL, SMOOTHED_AFTER_FALL = 1 / 20, 2e-2

# Shrinking: norm below this share of the first layer's. Energies, being quadratic, are then 1e-4
# of what they were, and gradients return through the same factors. Models that work do not fall
# below the first layer's norm; untrained GCNs of 16 and 32 layers fall to 5e-3 and 1e-5.
SHRUNK = 1e-2

# Exploding: norm above EXPLODED times the first layer's, and above EXPLODED_NORM, because small
# input features (normalised word counts) grow up to 630-fold in models that work.
EXPLODED, EXPLODED_NORM = 1e3, 1e2

# Loss of rank: effective rank over the possible rank below RANK_FALL times the first layer's, or
# an effective rank below ONE_DIRECTION, at which all rows are nearly parallel. Models that work
# keep at least .10 of the first layer's.
RANK_FALL, ONE_DIRECTION = 1 / 20, 1.5
# A first layer of lower effective rank, and layers of lower width, have no rank to lose.
RANK_TO_LOSE = 3.0

# Dead units: share of units that fire at no node. It is about 1/2 in any network whose nodes are
# all alike, because a ReLU is then on at all of them or off at all of them.
DEAD = 0.75


@dataclass(frozen=True)
class Finding:
    """One thing that goes wrong, between ``layer`` and ``last``, both counted from 1."""

    kind: Kind
    layer: int
    last: int
    words: str


def findings(table: pd.DataFrame) -> tuple[Finding, ...]:
    """Return everything that goes wrong, the most important first.

    Smoothing causes shrinking and loss of rank: it comes before the first and replaces the second.
    Dead units that follow smoothing or shrinking are their consequence and are left out.
    """
    exploding, dead, smoothing = find_exploding(table), find_dead(table), find_smoothing(table)
    shrinking = find_shrinking(table, alone=smoothing is None)
    if dead and any(cause and cause.layer < dead.layer for cause in (smoothing, shrinking)):
        dead = None
    rank = None if smoothing else find_rank_loss(table)
    later = sorted((f for f in (rank, shrinking) if f), key=lambda finding: finding.layer)
    return tuple(finding for finding in (exploding, dead, smoothing, *later) if finding)


def scale_free_energy(table: pd.DataFrame) -> Array:
    """Return the smaller of the two scale-free energies of every layer."""
    # One is 0 in the limit of averaging layers, the other in the limit of graph convolutions.
    return np.fmin(column(table, "relative_energy"), column(table, "rayleigh_quotient"))


def find_smoothing(table: pd.DataFrame) -> Finding | None:
    """Find layers whose neighbours are alike, whatever the size of the embedding."""
    energy = scale_free_energy(table)
    fallen = (energy < SMOOTHED_AFTER_FALL) & (energy < SMOOTHED_FALL * energy[0])
    words = "neighbours become alike; the scale-free energy is"
    return make_finding("smoothing", (energy < SMOOTHED) | fallen, energy, words, np.nanargmin)


def find_shrinking(table: pd.DataFrame, alone: bool) -> Finding | None:
    """Find layers whose norm has fallen; ``alone`` if there is no smoothing."""
    norm = column(table, "norm")
    alike = ", though nodes differ as before relative to its size" if alone else ""
    words = f"the embedding vanishes{alike}; its norm is"
    return make_finding("shrinking", norm < SHRUNK * norm[0], norm, words, np.nanargmin)


def find_exploding(table: pd.DataFrame) -> Finding | None:
    """Find layers whose norm is huge or not finite."""
    norm = column(table, "norm")
    high = ~np.isfinite(norm) | ((norm > EXPLODED * norm[0]) & (norm > EXPLODED_NORM))
    norm = np.where(np.isnan(norm), np.inf, norm)
    return make_finding("exploding", high, norm, "the embedding blows up; its norm is", np.argmax)


def find_rank_loss(table: pd.DataFrame) -> Finding | None:
    """Find layers whose effective rank has fallen."""
    rank = column(table, "effective_rank")
    possible = np.minimum(column(table, "nodes"), column(table, "width"))
    if not rank[0] >= RANK_TO_LOSE:
        return None
    fallen = rank / possible < RANK_FALL * rank[0] / possible[0]
    lost = fallen | ((rank < ONE_DIRECTION) & (possible >= RANK_TO_LOSE))
    words = "rows become parallel, though neighbours still differ; the effective rank is"
    return make_finding("rank loss", lost, rank, words, np.nanargmin)


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


def make_finding(
    kind: Kind, where: Array, values: Array, words: str, worst: Callable[[Array], Any]
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


def column(table: pd.DataFrame, name: str) -> Array:
    """Return a column of the table as floats."""
    return np.asarray(table[name], dtype=float)
