"""What a :class:`Monitor` measured, as single numbers with names, which loggers take."""

import math

from eamp.diagnostics.probing import Row

PREFIX = "eamp"


def logged_values(rows: list[Row]) -> dict[str, float]:
    """Return every number of the rows under ``eamp/measure/layer``; NaN is left out."""
    return {
        f"{PREFIX}/{name}/{place_of(row)}": value
        for row in rows
        for name, value in row.items()
        if isinstance(value, float) and not math.isnan(value)
    }


def place_of(row: Row) -> str:
    """Return the layer of a row, and its relation if it has one."""
    relation = row.get("relation")
    return f"{row['layer']:02d}" if relation is None else f"{row['layer']:02d}/{relation}"
