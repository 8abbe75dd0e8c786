"""Warnings on the command line: a line each, without the place in the source that issued it."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print warnings as ``eamp: warning: ...`` while the block runs."""
    before = warnings.formatwarning
    warnings.formatwarning = in_a_line
    try:
        yield
    finally:
        warnings.formatwarning = before


def in_a_line(message: Warning | str, *_: object, **__: object) -> str:
    """Return a warning as a line; the arguments are those of :func:`warnings.formatwarning`."""
    text = re.sub(r"\s*\n\s*", " ", str(message).strip())
    return f"eamp: warning: {text}\n"
