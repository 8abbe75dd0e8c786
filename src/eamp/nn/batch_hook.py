"""Models that are called with a ``batch`` tell their layers which nodes form a graph."""

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from eamp.graph import GraphError
from eamp.graph.edge_index_cache import set_batch
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
        given = {**dict(zip(self.names, args, strict=False)), **kwargs}
        if isinstance(data := given.get(self.names[0]), Data):
            given = {"edge_index": data.edge_index, "batch": getattr(data, "batch", None)}
        elif "batch" not in {*given, *self.names}:
            return  # nothing is known about the graphs
        edge_index, batch = given.get("edge_index"), given.get("batch")
        if not isinstance(edge_index, Tensor) or not isinstance(batch, Tensor | None):
            return
        if not torch.compiler.is_compiling():
            set_batch(edge_index, batch)
        elif batch is not None and any(map(looks_at_graphs, model.modules())):
            raise GraphError(
                "under torch.compile the entropy step cannot see from edge_index which nodes form "
                "a graph; pass eamp.Graph(edge_index, batch=batch) in place of edge_index."
            )


def add_batch_hook(model: Module) -> None:
    """Add the hook to a model that can be called with a ``batch``, once."""
    parameters = inspect.signature(model.forward).parameters
    named = {"edge_index", "batch"} <= set(parameters)
    alone = bool(parameters) and all(map(may_be_left_out, [*parameters.values()][1:]))
    if (named or alone) and not any(map(is_ours, model._forward_pre_hooks.values())):
        model.register_forward_pre_hook(BatchHook(list(parameters)), with_kwargs=True)


def may_be_left_out(parameter: inspect.Parameter) -> bool:
    """Return whether a function can be called without an argument for a parameter."""
    collects = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.kind in collects or parameter.default is not parameter.empty


def remove_batch_hook(model: Module) -> None:
    """Remove the hook, if the model has it."""
    for key in [key for key, hook in model._forward_pre_hooks.items() if is_ours(hook)]:
        del model._forward_pre_hooks[key]
        model._forward_pre_hooks_with_kwargs.pop(key, None)


def is_ours(hook: Any) -> bool:
    """Return whether a hook is a :class:`BatchHook`."""
    return isinstance(hook, BatchHook)


def looks_at_graphs(module: Module) -> bool:
    """Return whether a module's entropy step depends on more of a graph than neighbours."""
    if not isinstance(module, EntropyAware):
        return False
    step = module.step
    return step.normalize or step.scale_free or callable(step.weight)
