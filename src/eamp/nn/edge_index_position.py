"""Where a layer takes its ``edge_index``."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torch.nn import Module


def edge_index_position(conv: Module) -> int:
    """Return the place of ``edge_index`` among the arguments of ``conv``, or else 1."""
    method = getattr(conv.forward, "__func__", None)
    if method is None:  # a function that was put in the place of the method of one layer
        return place_of_edge_index(conv.forward)
    return method_place(method)


@functools.lru_cache(maxsize=128)
def method_place(method: Callable[..., Any]) -> int:
    """Return the same for a method of a class, whose signature takes long to read."""
    return place_of_edge_index(functools.partial(method, None))


def place_of_edge_index(forward: Callable[..., Any]) -> int:
    """Return the place of ``edge_index`` among the arguments of a function, or else 1."""
    names = list(inspect.signature(forward).parameters)
    return names.index("edge_index") if "edge_index" in names else 1
