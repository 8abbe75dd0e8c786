"""Paired statistics: is a network better than a reference, seed by seed and split by split?"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from eamp.spelling import did_you_mean
from eamp.training import METRICS
from eamp.training.metrics import Metric

DRAWS = 10_000  # of signs, where there are more combinations than that
EXACT = 13  # pairs, whose 2^13 combinations of signs are all listed
# Accuracies are float32: without rounding, equal differences would differ by 1e-8 and not be ties.
DIGITS = 6
PAIRED_BY = ("seed", "split")
HEADINGS = ("difference", "95 % interval", "p, Wilcoxon (Holm)", "p, sign flips (Holm)")
P_VALUES = ("p_t", "p_wilcoxon", "p_permutation")


@dataclass(frozen=True)
class Comparison:
    """Differences of paired readings, and whether their mean may be 0.

    Values that do not exist are NaN: everything without a pair, all but the mean with one, and the
    interval and p-value of t if all differences are the same.
    """

    pairs: int = 0
    change: float = math.nan
    """Mean of the differences."""
    low: float = math.nan
    """Lower end of the 95 % confidence interval of the mean (Student's t)."""
    high: float = math.nan
    p_t: float = math.nan
    p_wilcoxon: float = math.nan
    """Of the signed-rank test without differences of 0; exact up to 13 pairs, also with ties."""
    p_permutation: float = math.nan
    """Of the mean, over all signs of up to 13 differences, or 10,000 draws of the signs of more."""


def paired(differences: ArrayLike) -> Comparison:
    """Return mean, confidence interval and two-sided p-values of paired differences.

    Example:
        >>> found = paired([0.01, 0.02, 0.03, 0.04, 0.05])
        >>> f"{found.change:.3f}, {found.low:.3f} to {found.high:.3f}"
        '0.030, 0.010 to 0.050'
        >>> found.p_wilcoxon, found.p_permutation  # 2 of 2^5 signs are as extreme
        (0.0625, 0.0625)
    """
    d = np.asarray(differences, dtype=float)
    if d.size < 2:
        return Comparison(d.size, *map(float, d))
    tied = np.round(d, DIGITS)
    low = high = p_t = math.nan
    if np.ptp(tied):
        test = stats.ttest_1samp(d, 0)
        p_t, (low, high) = test.pvalue, test.confidence_interval(0.95)
    figures = (d.mean(), low, high, p_t, signed_rank(tied[tied != 0]), sign_flip(tied))
    return Comparison(d.size, *map(float, figures))


def signed_rank(d: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of Wilcoxon's test; no difference is 0.

    SciPy's exact distribution is that without ties, and its approximation needs many pairs.
    """
    if d.size > EXACT:
        return float(stats.wilcoxon(d).pvalue)
    return sign_flip(np.sign(d) * stats.rankdata(np.abs(d))) if d.size > 1 else 1.0


def sign_flip(values: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of the sum of ``values`` if both signs of each were as likely.

    It is exact for up to ``EXACT`` values, and otherwise from draws with a fixed seed.
    """
    test = stats.permutation_test(
        (values,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=DRAWS,
        random_state=np.random.default_rng(0),
    )
    return float(test.pvalue)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return the p-values of a family of tests after Holm's correction; NaN is no test.

    The smallest of m is multiplied by m, the next by m − 1, ...; none becomes smaller than one
    before it, or larger than 1.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    adjusted = np.array(p_values, dtype=float)
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]  # NaN comes last
    steps = adjusted[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.maximum.accumulate(steps).clip(max=1)
    return adjusted


def compare(
    table: pd.DataFrame,
    reference: str,
    by_split: bool = False,
    reading: str = "test_accuracy",
    depths: Mapping[str, Collection[int]] | None = None,
) -> pd.DataFrame:
    """Compare every network of a sweep with the run named ``reference``, on the same data.

    The reference has the same depth, or its only depth on these data if it has just one. Pairs have
    the same seed and split. Holm's correction is over the rows of the result: one for every
    dataset, network and depth.

    Args:
        table: a row for every trained network, as :func:`eamp.experiments.sweep.sweep` returns.
        reference: the name of a run.
        by_split: compare every split by itself.
        reading: the column that is compared.
        depths: the depths of the reference on every dataset, of which ``table`` may lack some; by
            default those in ``table``.

    Returns:
        Names of the rows, the columns of :class:`Comparison`, and ``p_..._holm`` for each p-value,
        in the order of ``table``. Rows of the reference itself have no pairs.

    Example:
        >>> rows = [("a", 0, 0.5), ("a", 1, 0.7), ("b", 0, 0.6), ("b", 1, 0.9)]
        >>> table = pd.DataFrame(rows, columns=["name", "seed", "test_accuracy"])
        >>> compare(table.assign(data="cora", depth=2), "a")[["name", "pairs", "change"]]
          name  pairs  change
        0    a      0     NaN
        1    b      2    0.15
    """
    by = ["data", "name", "depth", *(["split"] if by_split and "split" in table else [])]
    keys = [column for column in PAIRED_BY if column in table and column not in by]
    rows = []
    for group, part in table.groupby(by, sort=False):
        place = dict(zip(by, group, strict=True))
        found = Comparison()
        if place["name"] != reference:
            beside = table[table["name"] == reference]
            for column in set(by) - {"name", "depth"}:
                beside = beside[beside[column] == place[column]]
            planned = set(beside["depth"]) if depths is None else set(depths[place["data"]])
            if len(planned) > 1:
                beside = beside[beside["depth"] == place["depth"]]
            found = paired(differences(part, beside, keys, reading))
        rows.append({**place, **asdict(found)})
    compared = pd.DataFrame(rows)
    return compared.assign(**{f"{name}_holm": holm(compared[name]) for name in P_VALUES})


def differences(
    part: pd.DataFrame, beside: pd.DataFrame, keys: list[str], reading: str
) -> "pd.Series[float]":
    """Return the readings of ``part`` minus those of ``beside`` where both have the same keys."""
    for rows in (part, beside):
        if rows.duplicated(keys).any():
            raise ValueError(
                f"several networks named {rows['name'].iloc[0]!r} have the same {', '.join(keys)}, "
                "so pairs cannot be told; give the runs of the recipe different names."
            )
    both = part.merge(beside, on=keys, suffixes=("", "_reference"))
    return (both[reading] - both[f"{reading}_reference"]).dropna()


def check_reference(reference: str, names: Iterable[str]) -> None:
    """Raise a ValueError unless a run has the name of the reference."""
    known = dict.fromkeys(names)
    if reference not in known:
        raise ValueError(
            f"no run is named {reference!r}; there are {', '.join(known)}."
            f"{did_you_mean(reference, known)}"
        )


def in_words(row: Mapping[str, Any], metric: Metric = METRICS["accuracy"]) -> tuple[str, ...]:
    """Return a row of :func:`compare` as texts under :data:`HEADINGS`; shares in percent points."""
    if math.isnan(row["change"]):
        return ("",) * len(HEADINGS)
    low, high = (metric.text(row[end], "+") for end in ("low", "high"))
    interval = "" if math.isnan(row["low"]) else f"{low} to {high}"
    tests = ("p_wilcoxon", "p_permutation")
    p_values = (
        "" if math.isnan(row[name]) else f"{p_text(row[name])} ({p_text(row[f'{name}_holm'])})"
        for name in tests
    )
    return metric.text(row["change"], "+"), interval, *p_values


def p_text(p: float) -> str:
    """Return a p-value with two digits at most.

    Example:
        >>> [p_text(p) for p in (0.0004, 0.0421, 1.0)]
        ['< .001', '.042', '1']
    """
    return "< .001" if p < 0.001 else f"{p:.2g}".removeprefix("0")
