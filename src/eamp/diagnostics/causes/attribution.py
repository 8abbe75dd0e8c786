"""Which part of a layer does it: factors by which weights, aggregation and the rest change things.

A layer takes x to y, and what follows it (activation, norm, residual connection) takes y to the
next layer's input x'. Run with every node as its own only neighbour, the layer takes x to s. For a
measure m,

    m(x') / m(x) = m(s) / m(x) · m(y) / m(s) · m(x') / m(y),

and the three ratios are the factors of the weights, of aggregation, and of what stands between the
layers. Gradients run backwards: for them x and x' change places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from eamp.diagnostics.rendering import format_number

if TYPE_CHECKING:
    import pandas as pd

Array: TypeAlias = "np.ndarray[Any, Any]"
Part: TypeAlias = Literal["weights", "aggregation", "between"]
PARTS: tuple[Part, ...] = ("weights", "aggregation", "between")
QUANTITIES = ("norm", "energy", "rank", "gradient")
NAMES = {"weights": "the weights", "aggregation": "aggregation", "between": "what follows"}
# Factors nearer to 1 than this are not worth naming a culprit.
CLEAR = 1.1


def scale_free_energy(table: pd.DataFrame) -> Array:
    """Return the smaller of the two scale-free energies of every layer; NaN without edges."""
    # One is 0 in the limit of averaging layers, the other in the limit of graph convolutions.
    # Without edges both sum over nothing, and only the first is NaN.
    return np.minimum(column(table, "relative_energy"), column(table, "rayleigh_quotient"))


def outputs(table: pd.DataFrame, quantity: str) -> Array:
    """Return a quantity at the output of every layer."""
    if quantity == "energy":
        return scale_free_energy(table)
    return column(table, {"rank": "effective_rank"}.get(quantity, quantity))


def next_inputs(table: pd.DataFrame, quantity: str) -> Array:
    """Return a quantity behind every layer: at the next one's input, or at the model's output."""
    return column(table, f"after_{quantity}")


def factors(table: pd.DataFrame) -> pd.DataFrame:
    """Return the factors of all parts of all layers, in columns such as ``weights_norm``.

    They are NaN where a layer could not be run without aggregation.
    """
    import pandas as pd  # slow to load, and needed for tables only

    found: dict[str, Array] = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for quantity in QUANTITIES[:3]:
            alone, out = column(table, f"alone_{quantity}"), outputs(table, quantity)
            found[f"weights_{quantity}"] = alone / column(table, f"input_{quantity}")
            found[f"aggregation_{quantity}"] = out / alone
            found[f"between_{quantity}"] = next_inputs(table, quantity) / out
        alone, out = column(table, "alone_gradient"), column(table, "gradient")
        through, total = column(table, "layer_gradient"), column(table, "input_gradient")
        found["weights_gradient"] = alone / out
        found["aggregation_gradient"] = through / alone
        # What the activation passes on, and what a residual connection adds.
        found["between_gradient"] = out / next_inputs(table, "gradient") * total / through
    return pd.DataFrame(found)


def products(table: pd.DataFrame, quantity: str, first: int, last: int) -> dict[Part, float]:
    """Return the product of every part's known factors over layers ``first`` to ``last``."""
    rows = table.iloc[first - 1 : last]
    known = {part: column(rows, f"{part}_{quantity}") for part in PARTS}
    return {part: float(np.exp(np.nansum(logarithms(values)))) for part, values in known.items()}


def culprit_of(
    table: pd.DataFrame, quantity: str, first: int, last: int, falls: bool
) -> Part | None:
    """Return the part that contributes most to a fall, or to a rise, over some layers."""
    if not all(f"{part}_{quantity}" in table for part in PARTS):
        return None
    total = products(table, quantity, first, last)
    worst = min(PARTS, key=lambda part: total[part] if falls else -total[part])
    factor = 1 / total[worst] if falls else total[worst]
    return worst if factor > CLEAR else None


def culprit_words(
    table: pd.DataFrame, quantity: str, first: int, last: int, culprit: Part, falls: bool
) -> str:
    """Name the layer at which the culprit is worst, with the factors of its parts."""
    rows = table.iloc[first - 1 : last]
    values = logarithms(column(rows, f"{culprit}_{quantity}"))
    worst = int(np.nanargmin(values) if falls else np.nanargmax(values))
    row = rows.iloc[worst]
    others = [part for part in PARTS if part != culprit and np.isfinite(row[f"{part}_{quantity}"])]
    words = [
        f"{format_number(row[f'{part}_{quantity}'])} for {NAMES[part]}"
        for part in (culprit, *others)
    ]
    return (
        f"{NAMES[culprit]} most of all: at layer {first + worst} the factor is {', '.join(words)}"
    )


def logarithms(values: Array) -> Array:
    """Return logarithms; NaN for what is not positive and finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(values)
    return np.where(np.isfinite(found), found, np.nan)


def column(table: pd.DataFrame, name: str) -> Array:
    """Return a column of the table as floats; NaN if it has none of that name."""
    if name not in table:
        return np.full(len(table), np.nan)
    return np.asarray(table[name], dtype=float)
