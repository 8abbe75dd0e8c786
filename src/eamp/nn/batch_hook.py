"""Models that are called with a ``batch`` tell their layers which nodes form a graph."""

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from eamp.graph import GraphError
from eamp.graph.batches import end_call, in_a_call, set_batch, start_call
from eamp.graph.edge_index_cache import COMPILED
from eamp.nn.entropy_aware import EntropyAware


class BatchHook:
    """A hook before ``forward`` that ties the argument ``batch`` to the argument ``edge_index``.

    The layers of a model get ``edge_index`` alone. With the hook they find there which graph a node
    belongs to. Both may also be attributes of the first argument, a PyG ``Data``.

    Args:
        names: the names of the arguments of ``forward``, in order.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __call__(self, model: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Tie the two arguments of a call."""
        edge_index, batch = self.arguments(args, kwargs)
        if not torch.compiler.is_compiling():
            # Inside another model that has a batch, a call without one is a part of that call.
            if edge_index is not None and (batch is not None or not in_a_call()):
                set_batch(edge_index, batch)
            start_call(batch)
        elif batch is not None and any(map(needs_batch, model.modules())):
            raise GraphError(COMPILED)

    def arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Tensor | None, Tensor | None]:
        """Return ``edge_index``, if its batch is known, and ``batch``, if there is one."""
        given = {**dict(zip(self.names, args, strict=False)), **kwargs}
        if isinstance(data := given.get(self.names[0]), Data):
            given = {"edge_index": data.edge_index, "batch": getattr(data, "batch", None)}
        elif "batch" not in {*given, *self.names}:
            return None, None  # nothing is known about the graphs
        edge_index, batch = given.get("edge_index"), given.get("batch")
        if not isinstance(edge_index, Tensor) or not isinstance(batch, Tensor | None):
            return None, None
        return edge_index, batch


class EndOfCall:
    """A hook behind ``forward`` that ends what :class:`BatchHook` began."""

    def __call__(self, *_: Any) -> None:
        """End the call."""
        if not torch.compiler.is_compiling():
            end_call()


def add_batch_hook(model: Module) -> None:
    """Add the hooks to a model that can be called with a ``batch``, once."""
    parameters = inspect.signature(model.forward).parameters
    named = {"edge_index", "batch"} <= set(parameters)
    alone = bool(parameters) and all(map(may_be_left_out, [*parameters.values()][1:]))
    if (named or alone) and not any(map(is_ours, model._forward_pre_hooks.values())):
        model.register_forward_pre_hook(BatchHook(list(parameters)), with_kwargs=True)
        model.register_forward_hook(EndOfCall(), always_call=True)


def may_be_left_out(parameter: inspect.Parameter) -> bool:
    """Return whether a function can be called without an argument for a parameter."""
    collects = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.kind in collects or parameter.default is not parameter.empty


def remove_batch_hook(model: Module) -> None:
    """Remove the hooks, if the model has them."""
    for hooks, marks in (
        (model._forward_pre_hooks, model._forward_pre_hooks_with_kwargs),
        (model._forward_hooks, model._forward_hooks_always_called),
    ):
        for key in [key for key, hook in hooks.items() if is_ours(hook)]:
            del hooks[key]
            marks.pop(key, None)


def is_ours(hook: Any) -> bool:
    """Return whether a hook is one of this file."""
    return isinstance(hook, BatchHook | EndOfCall)


def needs_batch(module: Module) -> bool:
    """Return whether a module's entropy step depends on more of a graph than neighbours."""
    return isinstance(module, EntropyAware) and module.needs_batch
