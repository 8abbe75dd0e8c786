"""The name that a misspelt name most likely stands for."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the question after the closest of the known names, or nothing if none is close.

    Example:
        >>> did_you_mean("Weigth", ["weight", "temperature"])
        " Did you mean 'weight'?"
        >>> did_you_mean("lambda", ["weight", "temperature"])
        ''
    """
    spellings = {each.lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), spellings, n=1)
    return f" Did you mean {spellings[close[0]]!r}?" if close else ""
