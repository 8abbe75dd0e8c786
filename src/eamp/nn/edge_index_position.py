"""Where a layer takes its ``edge_index``."""

import inspect

from torch.nn import Module


def edge_index_position(conv: Module) -> int:
    """Return the place of ``edge_index`` among the arguments of ``conv``, or else 1."""
    names = list(inspect.signature(conv.forward).parameters)
    return names.index("edge_index") if "edge_index" in names else 1
