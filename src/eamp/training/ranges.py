"""The check of a setting that is a number in a range."""

import math
from typing import Any


def check_range(name: str, value: Any, kind: type, least: float, most: float = math.inf) -> None:
    """Raise an error unless ``value`` is a finite number of a kind and in a range."""
    accepted = (int,) if kind is int else (int, float)
    right = isinstance(value, accepted) and not isinstance(value, bool)
    if not right or not least <= value <= most or not math.isfinite(value):
        what = "whole number" if kind is int else "number"
        bounds = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ValueError(f"{name} must be a {what} {bounds}, but is {value!r}.")
