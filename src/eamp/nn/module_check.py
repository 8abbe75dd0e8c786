"""The check that a model or layer is one, and not its name or its class."""

from typing import Any

from torch.nn import Module


def check_module(given: Any, name: str = "model") -> None:
    """Raise a TypeError unless ``given`` is a module.

    Example:
        >>> check_module("GCN", "conv")
        Traceback (most recent call last):
            ...
        TypeError: conv must be a torch.nn.Module, but is 'GCN'.
        >>> check_module(Module)
        Traceback (most recent call last):
            ...
        TypeError: model must be a torch.nn.Module, but is the class Module: make one, Module(...).
    """
    if not isinstance(given, Module):
        what = repr(given)[:80]
        if isinstance(given, type):
            what = f"the class {given.__name__}: make one, {given.__name__}(...)"
        raise TypeError(f"{name} must be a torch.nn.Module, but is {what}.")
