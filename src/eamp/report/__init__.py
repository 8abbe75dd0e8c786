"""Charts, tables and the HTML page of a report, for the results of any recipe."""

import importlib
import warnings
from typing import Any


def __getattr__(name: str) -> Any:
    """Return a name that moved to :mod:`eamp.paper`, with a warning."""
    if name not in ("PROTOCOL_NOTES", "from_folder", "write_report"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"eamp.report.{name} has moved: use `from eamp.paper import {name}`."
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    # Imported here because eamp.report may not depend on eamp.paper, which is built on top of it.
    return getattr(importlib.import_module("eamp.paper"), name)
