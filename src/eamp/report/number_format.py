"""Numbers as they are printed: accuracies as the paper writes them, energies in as few characters as they need."""

from __future__ import annotations

import math

MINUS = "\u2212"
NOTHING = "–"


def accuracy(value: float, digits: int = 3) -> str:
    """Without the zero before the point, as in the paper.

    Example:
        >>> accuracy(0.8125), accuracy(0.82, 2), accuracy(1.0), accuracy(float("nan"))
        ('.812', '.82', '1.000', '–')
    """
    if math.isnan(value):
        return NOTHING
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def with_deviation(mean: float, deviation: float, digits: int = 3) -> str:
    """``mean ± deviation``, or the plain number where one seed leaves no deviation."""
    if math.isnan(mean) or math.isnan(deviation):
        return accuracy(mean, digits)
    return f"{accuracy(mean, digits)} ± {accuracy(deviation, digits)}"


def change(value: float, digits: int = 3) -> str:
    """With its sign.

    Example:
        >>> change(0.05), change(-0.0312), change(0.0001)
        ('+.050', '−.031', '.000')
    """
    if math.isnan(value):
        return NOTHING
    size = accuracy(abs(value), digits)
    if not size.strip(".0"):
        return size
    return ("+" if value > 0 else MINUS) + size


def change_with_deviation(value: float, deviation: float) -> str:
    """A signed difference and its deviation over seeds."""
    return (
        change(value)
        if math.isnan(deviation) or math.isnan(value)
        else f"{change(value)} ± {accuracy(deviation)}"
    )


def energy(value: float) -> str:
    """Two significant digits; powers of ten only where they are shorter; 0 means exactly 0.

    Example:
        >>> energy(0.0), energy(0.0213), energy(1.4e-35), energy(0.996), energy(12.0)
        ('0', '0.021', '1.4e−35', '1.0', '12')
    """
    if math.isnan(value):
        return NOTHING
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "∞"
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:#.2g}".rstrip(".") if abs(value) < 99.5 else f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{exponent.replace('-', MINUS).replace('+', '').replace(MINUS + '0', MINUS)}"


def duration(seconds: float) -> str:
    """In the largest unit that leaves a number above one.

    Example:
        >>> duration(42.0), duration(3700.0), duration(200.0)
        ('42 s', '1.0 h', '3.3 min')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def counted(number: int, thing: str) -> str:
    """``1 seed``, ``10 seeds``."""
    return f"{number} {thing}" + ("" if number == 1 else "s")
