"""Names that have moved to another module: they go on working, with a warning."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any


def moved(module: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module whose names have moved.

    Args:
        module: the old module.
        homes: the new module of every name, with the new name after a colon if that differs.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = homes[name].partition(":")
        new = new or name
        message = f"{module}.{name} has moved: import {new} from {home}."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(home), new)

    return get
