"""``wrap`` and ``unwrap``: put the entropy step around every layer of a model, and remove it."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Unpack

from torch.nn import Module
from torch_geometric.nn import HeteroConv, MessagePassing

from eamp.nn.batch_hook import add_batch_hook, remove_batch_hook
from eamp.nn.checks import check_calls, check_module
from eamp.nn.conv.gcn_conv import MessagePassingLayer
from eamp.nn.entropic import number_layers
from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.graph_hook import add_graph_hooks, remove_graph_hook
from eamp.nn.step.options import (
    PRESETS,
    EntropyStep,
    Preset,
    StepOptions,
    Temperature,
)
from eamp.nn.step.weight import Weight
from eamp.nn.typed_layers import (
    check_not_bipartite,
    check_not_converted,
    edge_types_of_layers,
)
from eamp.nn.wrapped_class import restore_class, show_steps
from eamp.spelling import did_you_mean

LAST = "last"  # in `skip`: the message-passing layer that was registered last
LAYERS = (MessagePassing, MessagePassingLayer, HeteroConv, EntropyAware)
Selection = str | type[Module] | Iterable[str | type[Module]] | None


class WrapOptions(StepOptions, total=False):
    """The options of :class:`eamp.nn.EntropyStep` as keyword arguments of :func:`wrap`."""

    weight: Weight | Mapping[str, Any]
    temperature: Temperature


def wrap(
    model: Module,
    step: EntropyStep | Mapping[str, Any] | None = None,
    *,
    preset: Preset | None = None,
    only: Selection = None,
    skip: Selection = None,
    **options: Unpack[WrapOptions],
) -> Module:
    r"""Put an :class:`EntropyAware` around every message-passing layer of ``model``, in place.

    It works on any module: PyG's ``GCN``, ``GAT``, ``PNA``, ``Sequential``, ``DeepGCNLayer``, or
    your own. A ``HeteroConv`` is one layer, whose step sees all types of nodes. Parameters stay the
    same objects, so an optimizer made before goes on working. Load saved weights before wrapping:
    in a wrapped model ``convs.0.bias`` is called ``convs.0.conv.bias``.

    Layers are numbered in the order they were registered, for schedules over depth such as
    :class:`eamp.nn.Ramp`. Wrapping twice with the same options changes nothing. Wrapping again with
    other options is an error.

    ``print(model)`` shows the wrapped layers and their options. A model of PyG that prints a single
    line, such as ``GCN``, gets a subclass of its class for that, ``EntropyAwareGCN``, until it is
    unwrapped: ``isinstance(model, GCN)`` holds, ``type(model) is GCN`` does not.

    A model that is called with a ``batch`` beside ``edge_index``, or with a PyG ``Data`` as the
    only argument that it needs, may be called with batches of graphs: thresholds, means and
    normalised entropies are then those of every graph.

    The default weight, and every gain with the paper's energy, is measured by a threshold that is
    estimated once per graph, which takes longer than a training step. A model that draws new edges
    in every step, as with PyG's ``dropout_edge``, needs a number for ``weight``, or
    ``energy="propagation"``, whose threshold is the same on all graphs.

    Args:
        model: the model, or a single message-passing layer.
        step: all options of the step in one object; use it or keyword arguments, not both.
        preset: ``"paper"`` takes the paper's step, :math:`\lambda = 1`, :math:`T = 10` and its
            formula, for the options that are left out.
        only: names (as in ``model.named_modules()``) or types to wrap. A type need not be a PyG
            layer: any module that is called with features and an ``edge_index`` can be wrapped.
        skip: names or types to leave as they are, with all layers inside them. ``"last"`` is the
            message-passing layer that was registered last, unless a layer has that name. Skip the
            last layer of a classifier, which makes logits.
        **options: the options of :class:`eamp.nn.EntropyStep`, such as ``weight`` and
            ``temperature``.

    Returns:
        The model; for a single layer, its wrapper.

    Example:
        >>> import eamp
        >>> from torch_geometric.nn import GCN
        >>> model = GCN(16, 64, num_layers=2, out_channels=7)
        >>> eamp.wrap(model, skip="last")
        EntropyAwareGCN(
          ...
          (convs): ModuleList(
            (0): EntropyAware(
              weight=Gain(of=2.0), temperature=1.0
              (conv): GCNConv(16, 64)
            )
            (1): GCNConv(64, 7)
          )
          ...
        )
        >>> eamp.unwrap(model)
        GCN(16, 7, num_layers=2)
    """
    check_module(model, "wrap")
    check_not_converted(model, "wrap")
    if step is not None and (options or preset is not None):
        raise ValueError(
            "pass a step, or a preset and options one by one, but not both: "
            f"{sorted([*options, *(['preset'] if preset is not None else [])])}."
        )
    if preset is not None and preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, but is {preset!r}.")
    defaults = {} if preset is None else PRESETS[preset]
    wanted = EntropyStep.of(options if step is None else step, **defaults)
    names_only, types_only = split(only)
    names_skip, types_skip = split(skip)
    named = dict(model.named_modules()).get(LAST)
    is_name = isinstance(named, LAYERS + types_only)
    check_names(model, names_only | (names_skip if is_name else names_skip - {LAST}))
    wrappers: dict[Module, EntropyAware] = {}  # a layer used in several places stays one layer
    pending: list[tuple[Module, Module, Module]] = []  # so that an error leaves the model as it is
    edge_types = edge_types_of_layers(model)

    def skipped(name: str, module: Module) -> bool:
        return name in names_skip or isinstance(module, types_skip)

    def chosen(name: str, module: Module) -> bool:
        if only is not None:
            return name in names_only or isinstance(module, types_only)
        return is_message_passing(module)

    def counts(name: str, module: Module) -> bool:
        return chosen(name, module) and not skipped(name, module)

    layers = [layer for _, layer in message_passing_layers(model, also=counts)]
    last = layers[-1] if layers and LAST in names_skip and not is_name else None

    def visit(module: Module, name: str) -> Module:
        if module is last or skipped(name, module):
            return module  # with everything inside
        if isinstance(module, EntropyAware):
            inner = name + ".conv"
            picked = chosen(name, module.conv) or chosen(inner, module.conv)
            if picked and not skipped(inner, module.conv):
                check_same(name, module, wanted)
            return module
        if chosen(name, module):
            if module not in wrappers:
                check_calls(module, name)
                check_not_bipartite(module, name, edge_types.get(module))
                remove_graph_hook(module)
                wrappers[module] = EntropyAware.of(module, copy.deepcopy(wanted))
            return wrappers[module]
        inside = only is not None and isinstance(module, HeteroConv)  # layers of single relations
        if is_message_passing(module) and not inside:
            return module  # layers inside a layer stay as they are
        for child_name, child in list(module.named_children()):
            new = visit(child, f"{name}.{child_name}" if name else child_name)
            pending.append((module, child, new))
        return module

    wrapped = visit(model, "")
    for parent, old, new in pending:
        replace(parent, old, new)
        show_steps(parent)
    if not wrappers and not any(isinstance(module, EntropyAware) for module in wrapped.modules()):
        kinds = sorted({type(module).__name__ for module in model.modules()})
        left_out = f", with skip={skip!r}" if skip is not None else ""
        raise ValueError(
            f"{type(model).__name__} has no layer to wrap among {', '.join(kinds)}{left_out}. "
            "Message-passing layers are subclasses of torch_geometric.nn.MessagePassing; name any "
            "other with only=[...]."
        )
    if not isinstance(wrapped, EntropyAware):
        add_batch_hook(wrapped)
        add_graph_hooks(bare_layers(wrapped))
    return number_layers(wrapped)


def unwrap(model: Module) -> Module:
    """Replace every :class:`EntropyAware` of ``model`` by the layer that it wraps, in place.

    Example:
        >>> import eamp
        >>> from torch_geometric.nn import GCNConv
        >>> conv = GCNConv(16, 16)
        >>> eamp.unwrap(eamp.wrap(conv)) is conv
        True
    """
    check_module(model, "unwrap")
    if isinstance(model, EntropyAware):
        return unwrap(model.conv)
    remove_batch_hook(model)
    remove_graph_hook(model)
    restore_class(model)
    for child in list(model.children()):
        replace(model, child, unwrap(child))
    return model


def is_message_passing(module: Module) -> bool:
    """Return whether ``module`` is a message-passing layer, of PyG or of eamp."""
    return isinstance(module, MessagePassing | MessagePassingLayer | HeteroConv)


def message_passing_layers(
    model: Module, name: str = "", also: Callable[[str, Module], bool] = lambda name, module: False
) -> Iterator[tuple[str, Module]]:
    """Yield names and modules of the outermost message-passing layers, wrapped or not, in order.

    A module for which ``also`` returns ``True`` counts as one.
    """
    if isinstance(model, LAYERS) or also(name, model):
        yield name, model
        return
    for child_name, child in model.named_children():
        path = f"{name}.{child_name}" if name else child_name
        yield from message_passing_layers(child, path, also)


def bare_layers(model: Module) -> list[Module]:
    """Return the layers of PyG in a model that are not wrapped."""
    found = (layer for _, layer in message_passing_layers(model))
    return [layer for layer in found if isinstance(layer, MessagePassing)]


def has_bare_layers(model: Module) -> bool:
    """Return whether a model has bare layers of PyG, which do not take an :class:`eamp.Graph`."""
    return bool(bare_layers(model))


def replace(parent: Module, old: Module, new: Module) -> None:
    """Replace a child module under every name that it has in its parent."""
    if old is not new:
        for name in [name for name, child in parent._modules.items() if child is old]:
            parent._modules[name] = new


def split(selection: Selection) -> tuple[set[str], tuple[type[Module], ...]]:
    """Return the names and the types of a selection."""
    one = isinstance(selection, str | type) or not isinstance(selection, Iterable | None)
    items: list[Any] = [selection] if one else list(selection or ())  # type: ignore[arg-type]
    if wrong := [item for item in items if not isinstance(item, str | type)]:
        raise ValueError(
            "modules are chosen by names, as in model.named_modules(), or by types, not by "
            f"{wrong[0]!r}; pass for example ['convs.1'] or [GCNConv]."
        )
    return {item for item in items if isinstance(item, str)}, tuple(
        item for item in items if isinstance(item, type)
    )


def check_names(model: Module, names: set[str]) -> None:
    """Raise an error for names that ``model`` has no module of."""
    known = {
        name.removesuffix(".conv") if isinstance(module, EntropyAware) else name
        for name, module in model.named_modules()
    }
    if missing := sorted(names - known):
        raise ValueError(
            f"{type(model).__name__} has no module named {', '.join(missing)}; it has "
            f"{', '.join(sorted(known - {''}))}.{did_you_mean(missing[0], known)}"
        )


def check_same(name: str, there: EntropyAware, wanted: EntropyStep) -> None:
    """Raise an error if a layer is wrapped with other options than those wanted."""
    # Schedules that learn are compared as text, since every layer has its own copy.
    if there.step != wanted and repr(there.step) != repr(wanted):
        raise ValueError(
            f"{name or 'the layer'} is already wrapped with {there.step}; call eamp.unwrap(model) "
            f"before wrapping it with {wanted}."
        )
