"""Fit a rule that says where to take the entropy step; part of ``where_it_helps.py``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

SEEN = ("label_homophily", "feature_similarity", "depth", "degree")
# How much a further condition must add: points of accuracy, share of the points.
ENOUGH = {"gain": 0.2, "hits": 0.05}


@dataclass(frozen=True)
class Rule:
    """Take the step where all conditions hold (``and``), or where any holds (``or``).

    Without conditions, ``and`` means always and ``or`` means never.
    """

    conditions: tuple[tuple[str, str, float], ...]
    join: str = "and"

    def __call__(self, points: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return at which points the step is to be taken."""
        held = [
            (points[name] > at if sign == ">" else points[name] <= at).to_numpy()
            for name, sign, at in self.conditions
        ]
        held = held or [np.full(len(points), self.join == "and")]
        return np.all(held, axis=0) if self.join == "and" else np.any(held, axis=0)

    def __str__(self) -> str:
        words = [
            f"{name.replace('_', ' ')} {'≤' if sign == '<=' else sign} {at:.2g}"
            for name, sign, at in self.conditions
        ]
        return f" {self.join} ".join(words) or {"and": "always", "or": "never"}[self.join]

    def merits(self, points: pd.DataFrame) -> dict[str, float]:
        """Return the mean accuracy gained by following the rule, and the share of hits.

        A hit is a point where the mean gain has the sign that the rule predicts.
        """
        take, gained = self(points), points["gained"].to_numpy()
        return {
            "gain": float(np.where(take, gained, 0).mean()),
            "hits": float((take == (gained > 0)).mean()),
        }


def rules(points: pd.DataFrame) -> Iterator[list[Rule]]:
    """Yield "always", then the rules of one condition, then those of two on different numbers."""
    conditions = {
        name: [(name, sign, at) for at in thresholds(points[name]) for sign in (">", "<=")]
        for name in SEEN
    }
    yield [Rule(())]
    yield [Rule((condition,)) for some in conditions.values() for condition in some]
    yield [
        Rule(pair, join)
        for a, b in combinations(SEEN, 2)
        for pair in product(conditions[a], conditions[b])
        for join in ("and", "or")
    ]


def thresholds(values: pd.Series) -> list[float]:
    """Return the middles between neighbouring values; ten of them if there are more."""
    known = np.unique(values.round(3))
    between = (known[1:] + known[:-1]) / 2
    if len(between) > 10:
        between = between[np.linspace(0, len(between) - 1, 10).round().astype(int)]
    return [float(at) for at in between]


def fit(points: pd.DataFrame, merit: str) -> Rule:
    """Return the best rule on these points; one with more conditions only if they add enough."""
    best = Rule((), "or")
    for family in rules(points):
        candidate = max(family, key=lambda rule: rule.merits(points)[merit], default=best)
        if candidate.merits(points)[merit] > best.merits(points)[merit] + ENOUGH[merit]:
            best = candidate
    return best


def rule_text(points: pd.DataFrame, place: list[str]) -> str:
    """Return a Markdown table of the rules for every network and step.

    They are fitted on half of the points, which ``place`` identifies, and tried on the others.
    """
    places = points[place].drop_duplicates()
    fitted_on = places.sample(frac=0.5, random_state=0).assign(half="fit")
    heads = ["network", "step", "fitted for", "take it if", "hits, fitted", "hits, held out"]
    heads += ["gain by the rule", "if always", "if always right"]
    lines = [
        f"Rules were fitted on {len(fitted_on)} of {len(places)} points, for the accuracy gained "
        "or for hits, and tried on the others.",
        "A hit is a point where the mean gain has the sign that the rule predicts.",
        "Gains are means over the held-out points, in points of test accuracy.",
        "",
        *header(heads),
    ]
    for (network, gain, temperature), part in points.groupby(["network", "gain", "temperature"]):
        part = part.merge(fitted_on, on=place, how="left")
        seen, held_out = part[part["half"] == "fit"], part[part["half"].isna()]
        always, right = held_out["gained"].mean(), held_out["gained"].clip(lower=0).mean()
        for merit in ENOUGH:
            rule = fit(seen, merit)
            before, then = rule.merits(seen), rule.merits(held_out)
            hits = f"{before['hits']:.0%} | {then['hits']:.0%}"
            gained = f"{then['gain']:+.1f} | {always:+.1f} | {right:+.1f}"
            step = step_name(gain, temperature)
            lines.append(f"| {network} | {step} | {merit} | {rule} | {hits} | {gained} |")
    return "\n".join(lines) + "\n"


def step_name(gain: float, temperature: float) -> str:
    """Name a step; a temperature above every energy, which always pushes, is shown as ∞."""
    return f"g = {gain:g}, T = {'∞' if temperature > 1e5 else f'{temperature:g}'}"


def header(heads: list[str]) -> list[str]:
    """Return the first two lines of a Markdown table."""
    return [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
