"""``wrap`` and ``unwrap``: the entropy step around every message-passing layer of a model, and off again."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from torch.nn import Module
from torch_geometric.nn import MessagePassing

from eamp.nn.conv.gcn_conv import MessagePassingLayer
from eamp.nn.entropic import number_layers
from eamp.nn.entropy_aware import EntropyAware

Selection = str | type[Module] | Iterable[str | type[Module]] | None


def wrap(
    model: Module, *, only: Selection = None, skip: Selection = None, **options: Any
) -> Module:
    r"""Put an :class:`EntropyAware` around every message-passing layer of ``model``, in place.

    Works on any module: PyG's ``GCN``, ``GAT``, ``PNA``, ``Sequential``, ``DeepGCNLayer``, or your own. Parameters stay the same objects,
    so an optimizer made before goes on working; :func:`unwrap` puts the very same layers back. Saved weights are loaded before wrapping: in
    a wrapped model ``convs.0.bias`` is called ``convs.0.conv.bias``.

    Args:
        model: the model, or a single message-passing layer.
        only: names (as in ``model.named_modules()``) or types to wrap. A type need not be a PyG layer: any module that is called
            with features and an ``edge_index`` will do.
        skip: names or types to leave alone. The last layer of a classifier, which makes logits, is best left alone.
        **options: the arguments of :class:`EntropyAware`.

    Returns:
        The model (for a single layer, its wrapper).

    Layers are numbered in the order they were registered, for schedules over depth (:class:`eamp.nn.step.schedules.Ramp`).

    Wrapping twice with the same options changes nothing; with other options it is an error, so that neither is lost silently.

    Example:
        >>> import eamp
        >>> from torch_geometric.nn import GCN
        >>> model = eamp.wrap(GCN(16, 64, num_layers=2, out_channels=7), weight=1.0, temperature=10.0, skip="convs.1")
        >>> model.convs
        ModuleList(
          (0): EntropyAware(
            weight=1.0, temperature=10.0
            (conv): GCNConv(16, 64)
          )
          (1): GCNConv(64, 7)
        )
    """
    names_only, types_only = split(only)
    names_skip, types_skip = split(skip)
    check_names(model, names_only | names_skip)
    wrappers: dict[
        Module, EntropyAware
    ] = {}  # a layer used in several places keeps being one layer

    def chosen(name: str, module: Module) -> bool:
        if name in names_skip or isinstance(module, types_skip):
            return False
        if only is not None:
            return name in names_only or isinstance(module, types_only)
        return is_message_passing(module)

    def visit(module: Module, name: str) -> Module:
        if isinstance(module, EntropyAware):
            if chosen(name, module.conv) or chosen(name + ".conv", module.conv):
                check_same(name, module, EntropyAware(module.conv, **options))
            return module
        if chosen(name, module):
            if module not in wrappers:
                wrappers[module] = EntropyAware(module, **copy.deepcopy(options))
            return wrappers[module]
        if is_message_passing(module):
            return module  # what happens inside a layer is the layer's own business
        for child_name, child in list(module.named_children()):
            replace(module, child, visit(child, f"{name}.{child_name}" if name else child_name))
        return module

    wrapped = visit(model, "")
    if not wrappers and not any(isinstance(module, EntropyAware) for module in wrapped.modules()):
        found = sorted({type(module).__name__ for module in model.modules()})
        raise ValueError(
            f"{type(model).__name__} has no layer to wrap among {', '.join(found)}. Message-passing layers are recognised as subclasses of "
            "torch_geometric.nn.MessagePassing; name any other with only=[...]."
        )
    return number_layers(wrapped)


def unwrap(model: Module) -> Module:
    """Take every :class:`EntropyAware` off ``model`` and put the very layers it held back in place.

    Example:
        >>> import eamp
        >>> from torch_geometric.nn import GCNConv
        >>> conv = GCNConv(16, 16)
        >>> eamp.unwrap(eamp.wrap(conv)) is conv
        True
    """
    if isinstance(model, EntropyAware):
        return unwrap(model.conv)
    for child in list(model.children()):
        replace(model, child, unwrap(child))
    return model


def is_message_passing(module: Module) -> bool:
    """Whether ``module`` is a message-passing layer, PyG's or ours."""
    return isinstance(module, MessagePassing | MessagePassingLayer)


def message_passing_layers(model: Module, name: str = "") -> Iterator[tuple[str, Module]]:
    """Names and modules of the outermost message-passing layers, wrapped or not, in the order they were registered."""
    if isinstance(model, EntropyAware) or is_message_passing(model):
        yield name, model
        return
    for child_name, child in model.named_children():
        yield from message_passing_layers(child, f"{name}.{child_name}" if name else child_name)


def replace(parent: Module, old: Module, new: Module) -> None:
    """Swap a child module under every name its parent knows it by."""
    if old is not new:
        for name in [name for name, child in parent._modules.items() if child is old]:
            parent._modules[name] = new


def split(selection: Selection) -> tuple[set[str], tuple[type[Module], ...]]:
    """Names and types of a selection."""
    items = [selection] if isinstance(selection, str | type) else list(selection or ())
    return {item for item in items if isinstance(item, str)}, tuple(
        item for item in items if isinstance(item, type)
    )


def check_names(model: Module, names: set[str]) -> None:
    known = {
        name.removesuffix(".conv") if isinstance(module, EntropyAware) else name
        for name, module in model.named_modules()
    }
    if missing := sorted(names - known):
        raise ValueError(
            f"{type(model).__name__} has no module named {', '.join(missing)}; it has {', '.join(sorted(known - {''}))}."
        )


def check_same(name: str, there: EntropyAware, wanted: EntropyAware) -> None:
    if (
        there.extra_repr() != wanted.extra_repr()
    ):  # every layer has its own copy of a schedule: alike, not the same
        raise ValueError(
            f"{name or 'the layer'} is already wrapped with {there.extra_repr()}; call eamp.unwrap(model) before wrapping it with "
            f"{wanted.extra_repr()}."
        )
