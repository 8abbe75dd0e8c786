"""The verdict: what a table of measures by layer says about a model, and from which layer on.

Thresholds were set between models that work and models that do not; ``benchmarks/verdict_thresholds.py`` shows both on Cora.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from eamp.diagnostics.rendering import short

if TYPE_CHECKING:
    import pandas as pd

Kind: TypeAlias = Literal[
    "healthy", "smoothing", "shrinking", "rank loss", "exploding", "dead units"
]
Array: TypeAlias = "np.ndarray[Any, Any]"

# Scale-free energy at which neighbours count as alike. They then differ by sqrt(2 · 1e-3), under 5 % of their length.
SMOOTHED = 1e-3
# It is also smoothing if the energy fell this much since the first layer, and is low: in trained models that work it falls up to
# fifteenfold, and averaging noise on a grid, where slow waves die last, takes it twenty layers to get here.
SMOOTHED_FALL, SMOOTHED_AFTER_FALL = 1 / 20, 2e-2

# Norm below this share of the first layer's. Energies, being quadratic, are then a ten-thousandth of what they were, and
# gradients come back through the same factors; trained models that work hardly shrink at all.
SHRUNK = 1e-2

# Norm above this multiple of the first layer's, and large in itself: small input features (word counts divided by their
# sum) may grow several hundredfold on their way to a norm of order 1, and that is no explosion.
EXPLODED, EXPLODED_NORM = 1e3, 1e2

# Effective rank, as a share of what the layer's width allows, below this share of the first layer's; or rows that are all but parallel.
RANK_FALL, ONE_DIRECTION = 1 / 20, 1.5
# Below this effective rank in the first layer, or this width, there is no rank to lose.
RANK_TO_LOSE = 3.0

# Share of units that never fire. When all nodes are alike a ReLU is on or off for all of them, half of the time each, so only a
# share well above 1/2 says something of its own.
DEAD = 0.75


@dataclass(frozen=True)
class Finding:
    """One thing that goes wrong.

    Attributes:
        kind: what.
        layer: the first layer, counted from 1, at which it does.
        last: the last one.
        words: what happens, with the numbers.
    """

    kind: Kind
    layer: int
    last: int
    words: str


def findings(table: pd.DataFrame) -> tuple[Finding, ...]:
    """Everything that goes wrong, the most telling first; empty for a healthy model.

    Smoothing comes before shrinking and in place of a loss of rank, because it brings both about. Dead units count unless they
    follow either: alike nodes are switched off together, and what has shrunk to nothing is zero.
    """
    exploding, dead, smoothing = find_exploding(table), find_dead(table), find_smoothing(table)
    shrinking = find_shrinking(table, alone=smoothing is None)
    if dead and any(cause and cause.layer < dead.layer for cause in (smoothing, shrinking)):
        dead = None
    rank = None if smoothing else find_rank_loss(table)
    later = sorted((f for f in (rank, shrinking) if f), key=lambda finding: finding.layer)
    return tuple(finding for finding in (exploding, dead, smoothing, *later) if finding)


def smoothness(table: pd.DataFrame) -> Array:
    """The smaller of the two scale-free energies: 0 where averaging layers end, and 0 where graph convolutions end."""
    return np.fmin(column(table, "relative_energy"), column(table, "rayleigh_quotient"))


def find_smoothing(table: pd.DataFrame) -> Finding | None:
    """Scale-free energy falls: neighbours become alike, whatever the size of the embedding."""
    energy = smoothness(table)
    low = (energy < SMOOTHED) | (
        (energy < SMOOTHED_AFTER_FALL) & (energy < SMOOTHED_FALL * energy[0])
    )
    return finding(
        "smoothing", low, energy, "neighbours become alike; the scale-free energy is", np.nanargmin
    )


def find_shrinking(table: pd.DataFrame, alone: bool) -> Finding | None:
    """The norm falls."""
    norm = column(table, "norm")
    words = "the embedding vanishes" + (
        ", though nodes differ as before relative to its size" if alone else ""
    )
    return finding(
        "shrinking", norm < SHRUNK * norm[0], norm, f"{words}; its norm is", np.nanargmin
    )


def find_exploding(table: pd.DataFrame) -> Finding | None:
    """The norm grows without bound, or is no longer a number."""
    norm = column(table, "norm")
    high = ~np.isfinite(norm) | ((norm > EXPLODED * norm[0]) & (norm > EXPLODED_NORM))
    return finding(
        "exploding",
        high,
        np.where(np.isnan(norm), np.inf, norm),
        "the embedding blows up; its norm is",
        np.argmax,
    )


def find_rank_loss(table: pd.DataFrame) -> Finding | None:
    """The effective rank falls although the energy holds."""
    rank, possible = (
        column(table, "effective_rank"),
        np.minimum(column(table, "nodes"), column(table, "width")),
    )
    if not rank[0] >= RANK_TO_LOSE:
        return None
    lost = (rank / possible < RANK_FALL * rank[0] / possible[0]) | (
        (rank < ONE_DIRECTION) & (possible >= RANK_TO_LOSE)
    )
    return finding(
        "rank loss",
        lost,
        rank,
        "rows become parallel, though neighbours still differ; the effective rank is",
        np.nanargmin,
    )


def find_dead(table: pd.DataFrame) -> Finding | None:
    """Most units never fire. Those of a layer show at its output or, behind its activation, at the next layer's input."""
    came_in = column(table, "dead_inputs")
    behind = np.append(came_in[1:], np.nan)
    # Features that are zero at every node when they enter the model are the data's business.
    behind = np.where(behind > came_in[0], behind, np.nan) if came_in[0] >= DEAD else behind
    dead = np.fmax(column(table, "dead_units"), behind)
    return finding(
        "dead units", dead >= DEAD, dead, "units that fire at no node; their share is", np.nanargmax
    )


def finding(
    kind: Kind, where: Array, values: Array, words: str, worst: Callable[[Array], Any]
) -> Finding | None:
    """The finding, if there is any layer ``where`` it holds, with its values at the first, the first such and the worst layer."""
    layers = np.flatnonzero(where)
    if layers.size == 0:
        return None
    first, last, most = int(layers[0]), int(layers[-1]), int(worst(values))
    stations = sorted({0, first, most})
    course = ", ".join(f"{short(float(values[k]))} at layer {k + 1}" for k in stations)
    return Finding(kind, first + 1, last + 1, f"{words} {course}")


def column(table: pd.DataFrame, name: str) -> Array:
    return np.asarray(table[name], dtype=float)
