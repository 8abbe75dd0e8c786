"""Headings of a page, for readers that jump from one to the next."""

import re
from itertools import pairwise


def jumps(page: str) -> list[tuple[int, int]]:
    """Return the levels of neighbouring headings of which the second is more than one deeper."""
    levels = [0, *(int(level) for level in re.findall(r"<h([1-6])\b", page))]
    return [(one, other) for one, other in pairwise(levels) if other > one + 1]
