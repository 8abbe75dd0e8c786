"""CSV files in which a spreadsheet finds text, never a formula: names come from recipes."""

import re
from pathlib import Path
from typing import Any

import pandas as pd

from eamp.files import write_atomically

# A spreadsheet runs a cell that starts with one of these signs. An apostrophe before it makes the
# cell text. Texts that already start so get one more, so that reading is the inverse of writing.
FORMULA = re.compile(r"'*[=+\-@\t\r]")


def write_csv(frame: pd.DataFrame, file: Path) -> None:
    """Write a frame without its index, in one piece."""
    write_atomically(file, to_csv(frame))


def to_csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV; an apostrophe stands before texts that look like formulas.

    Example:
        >>> print(to_csv(pd.DataFrame({"name": ["=1+1", "gcn"], "value": [-1, 2]})), end="")
        name,value
        '=1+1,-1
        gcn,2
    """
    texts = frame.select_dtypes(exclude=["number", "bool"]).map(escaped)
    named = frame.assign(**texts).rename(columns=escaped)
    return str(named.to_csv(index=False, lineterminator="\n"))


def escaped(value: Any) -> Any:
    """Return a value as it is written: a text that looks like a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def unescaped(text: str) -> str:
    """Return a text as it was before :func:`escaped`.

    Example:
        >>> [unescaped(escaped(text)) for text in ("=1+1", "'=1+1", "'quoted'")]
        ['=1+1', "'=1+1", "'quoted'"]
    """
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text
