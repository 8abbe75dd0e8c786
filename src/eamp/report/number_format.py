"""Format accuracies, energies, durations and counts for tables, charts and sentences."""

import math

MINUS = "\u2212"
NOTHING = "–"


def format_accuracy(value: float, digits: int = 3) -> str:
    """Format an accuracy without the zero before the point, as the paper does.

    Example:
        >>> [format_accuracy(value) for value in (0.8125, 1.0, float("nan"))]
        ['.812', '1.000', '–']
        >>> format_accuracy(0.82, digits=2)
        '.82'
    """
    if math.isnan(value):
        return NOTHING
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def format_mean(mean: float, deviation: float = math.nan) -> str:
    """Format ``mean ± deviation``; the deviation of a single seed is NaN and is left out.

    Example:
        >>> format_mean(0.82, 0.014), format_mean(0.82, float("nan"))
        ('.820 ± .014', '.820')
    """
    text = format_accuracy(mean)
    missing = math.isnan(mean) or math.isnan(deviation)
    return text if missing else f"{text} ± {format_accuracy(deviation)}"


def format_value(mean: float, deviation: float = math.nan) -> str:
    """Format a number that is no share, such as a mean error, with four significant digits.

    Example:
        >>> format_value(0.41253, 0.0123), format_value(12.0)
        ('0.4125 ± 0.0123', '12')
    """
    if math.isnan(mean):
        return NOTHING
    return f"{mean:.4g}" if math.isnan(deviation) else f"{mean:.4g} ± {deviation:.3g}"


def format_change(value: float, deviation: float = math.nan, digits: int = 3) -> str:
    """Format a difference of accuracies with its sign, and with its deviation if there is one.

    Example:
        >>> format_change(0.05), format_change(-0.0312, 0.002), format_change(0.0001)
        ('+.050', '−.031 ± .002', '.000')
    """
    if math.isnan(value):
        return NOTHING
    size = format_accuracy(abs(value), digits)
    sign = "" if not size.strip(".0") else "+" if value > 0 else MINUS
    spread = "" if math.isnan(deviation) else f" ± {format_accuracy(deviation)}"
    return sign + size + spread


def format_energy(value: float) -> str:
    """Format an energy with two significant digits, as a power of ten where that is shorter.

    Example:
        >>> [format_energy(value) for value in (0.0, 0.0213, 1.4e-35, 0.996, 12.0)]
        ['0', '0.021', '1.4e−35', '1.0', '12']
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
    return f"{mantissa}e{int(exponent)}".replace("-", MINUS)


def format_duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours.

    Example:
        >>> format_duration(42.0), format_duration(200.0), format_duration(3700.0)
        ('42 s', '3.3 min', '1.0 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def format_count(number: int, noun: str) -> str:
    """Format a count with its noun in the singular or plural.

    Example:
        >>> format_count(1, "seed"), format_count(10, "seed")
        ('1 seed', '10 seeds')
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")
