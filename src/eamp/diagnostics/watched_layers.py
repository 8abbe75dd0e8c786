"""The modules of a model that a probe watches, and what each is called with."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import DeepGCNLayer, GPSConv

from eamp.diagnostics.measures.embedding import Embedding
from eamp.graph import Graph
from eamp.nn.checks import check_module
from eamp.nn.conv.gps_layer import GPSLayer
from eamp.nn.edge_index_position import edge_index_position
from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.typed_layers import check_not_converted
from eamp.nn.wrapping import Selection, check_names, message_passing_layers, split

# Blocks with a residual connection. Each is watched as a whole, because the layer inside does not
# return the sum.
BLOCKS = DeepGCNLayer, GPSConv, GPSLayer


class LayerCall(NamedTuple):
    """A call of a watched layer, its output and the graph it is measured on."""

    layer: Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    entering: Embedding | None
    out: Tensor
    graph: Graph | None


class NoLayerError(ValueError):
    """A model without layers to watch."""


def watched_layers(model: Module, selection: Selection) -> dict[Module, str]:
    """Return the modules to watch with their names; a shared module has its first name."""
    check_module(model, "diagnose")
    if selection is None:
        check_not_converted(model, "the probe")
        found = list(message_passing_layers(model, also=lambda _, m: isinstance(m, BLOCKS)))
    else:
        names, types = split(selection)
        check_names(model, names)
        modules = model.named_modules()
        found = [(name, m) for name, m in modules if name in names or isinstance(m, types)]
    if not found:
        raise NoLayerError(
            f"{type(model).__name__} has no message-passing layer, that is no subclass of "
            "torch_geometric.nn.MessagePassing. Name other modules with layers=[...]."
        )
    watched: dict[Module, str] = {}
    for name, module in found:
        watched.setdefault(module, name)
    return watched


def models_around(model: Module, watched: dict[Module, str]) -> list[Module]:
    """Return the modules that contain all watched layers: the model, and perhaps an encoder."""
    found = [m for m in model.modules() if m not in watched and any(True for _ in m.children())]
    return [m for m in found if watched.keys() <= set(m.modules())]


def type_name(layer: Module) -> str:
    """Return the name of the layer's class, with that of its wrapper if it has one."""
    if isinstance(layer, EntropyAware):
        return f"EntropyAware({type(layer.conv).__name__})"
    return type(layer).__name__


def adjacency_of_call(layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the adjacency among the arguments of a layer's call, or ``None``."""
    place = edge_index_position(layer.conv if isinstance(layer, EntropyAware) else layer)
    candidate = args[place] if place < len(args) else kwargs.get("edge_index")
    return candidate if is_adjacency(candidate) else None


def is_adjacency(candidate: Any) -> bool:
    """Return whether it is an ``edge_index``, a sparse matrix or a graph, not a batch vector."""
    if isinstance(candidate, Tensor):
        edge_index = candidate.dim() == 2 and candidate.size(0) == 2
        integer = not candidate.is_floating_point()
        return candidate.layout != torch.strided or (edge_index and integer)
    sparse = type(candidate).__module__.split(".")[0] == "torch_sparse"
    return isinstance(candidate, Graph) or sparse
