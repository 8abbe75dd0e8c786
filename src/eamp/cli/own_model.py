"""A user's own model and data, from a function that a command names."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def load_own_model(name: str) -> tuple[Any, Any]:
    """Return the model and data that ``module:function`` returns.

    The module is looked for in the working folder first, then among installed packages.

    Raises:
        ValueError: if there is no such module or function, or if it returns something else.
    """
    module_name, _, function_name = name.partition(":")
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise ValueError(
            f"--model {name}: write a module as in an import, without a path or .py, and a "
            "function, as in my_networks:deep."
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"--model {name}: there is no module {error.name!r} in {here} or among the installed "
            "packages."
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ValueError(
            f"--model {name}: the module {module_name} has no function {function_name!r}."
        )
    found = function()
    if not isinstance(found, tuple) or len(found) != 2:
        raise ValueError(
            f"--model {name}: the function must return a model and its data, as in "
            f"`return model, data`, but returned a {type(found).__name__}."
        )
    return found
