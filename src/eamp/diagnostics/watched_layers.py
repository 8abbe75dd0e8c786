"""Which modules of a model a probe watches, and which graph each was called with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from eamp.graph import Graph
from eamp.nn.entropy_aware import EntropyAware, edge_index_position
from eamp.nn.wrapping import Selection, check_names, message_passing_layers, split


def watched_layers(model: Module, selection: Selection) -> dict[Module, str]:
    """The modules to watch with their names; a module known by several names is one module."""
    if selection is None:
        found: Iterator[tuple[str, Module]] = message_passing_layers(model)
    else:
        names, types = split(selection)
        check_names(model, names)
        found = (
            (name, module)
            for name, module in model.named_modules()
            if name in names or isinstance(module, types)
        )
    watched: dict[Module, str] = {}
    for name, module in found:
        watched.setdefault(module, name)
    if not watched:
        raise ValueError(
            f"{type(model).__name__} has no message-passing layer to watch. They are recognised as subclasses of "
            "torch_geometric.nn.MessagePassing; name any other with layers=[...]."
        )
    return watched


def whole_models(model: Module, watched: dict[Module, str]) -> list[Module]:
    """The modules whose ``forward`` runs every watched layer: the model, and an encoder inside it that holds them all."""
    return [m for m in model.modules() if m not in watched and watched.keys() <= set(m.modules())]


def type_name(layer: Module) -> str:
    """The layer's class, with its wrapper if it has one."""
    return (
        f"EntropyAware({type(layer.conv).__name__})"
        if isinstance(layer, EntropyAware)
        else type(layer).__name__
    )


def adjacency_of_call(layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The adjacency a layer was called with, or ``None``."""
    place = edge_index_position(layer.conv if isinstance(layer, EntropyAware) else layer)
    candidate = args[place] if place < len(args) else kwargs.get("edge_index")
    return candidate if is_adjacency(candidate) else None


def is_adjacency(candidate: Any) -> bool:
    """Whether it is an ``edge_index``, a sparse matrix or a graph, and no batch vector or edge weight that stands in its place."""
    if isinstance(candidate, Tensor):
        return candidate.layout != torch.strided or (
            candidate.dim() == 2 and candidate.size(0) == 2 and not candidate.is_floating_point()
        )
    return (
        isinstance(candidate, Graph) or type(candidate).__module__.split(".")[0] == "torch_sparse"
    )
