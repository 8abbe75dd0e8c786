"""Bare layers of PyG in a wrapped model take an :class:`eamp.Graph`, as wrapped ones do."""

from collections.abc import Iterable
from typing import Any

from torch.nn import Module

from eamp.graph import Graph
from eamp.nn.conv.from_pyg import call_with_edges
from eamp.nn.edge_index_position import edge_index_position


class GraphHook:
    """A hook before ``forward`` that passes the edges of an :class:`eamp.Graph` to a PyG layer."""

    def __call__(
        self, conv: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Return the arguments with edges in the place of a graph, if there is one."""
        if not any(isinstance(each, Graph) for each in (*args, *kwargs.values())):
            return None
        place = edge_index_position(conv) - 1
        _, behind, kwargs = call_with_edges(conv, place, args[1:], kwargs)
        return (*args[:1], *behind), kwargs


def add_graph_hooks(layers: Iterable[Module]) -> None:
    """Add the hook to layers of PyG, once to each."""
    for layer in layers:
        if not any(isinstance(hook, GraphHook) for hook in layer._forward_pre_hooks.values()):
            layer.register_forward_pre_hook(GraphHook(), with_kwargs=True)


def remove_graph_hook(layer: Module) -> None:
    """Remove the hook, if the layer has it."""
    hooks = layer._forward_pre_hooks
    for key in [key for key, hook in hooks.items() if isinstance(hook, GraphHook)]:
        del hooks[key]
        layer._forward_pre_hooks_with_kwargs.pop(key, None)
