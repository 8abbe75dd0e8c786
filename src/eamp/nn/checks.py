"""Checks of the arguments that layers and models have in common."""

import inspect
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NoReturn

from torch.nn import Module, ModuleDict, ModuleList


def check_module(given: Any, what: str) -> None:
    """Raise an error unless ``given``, the argument of ``what``, is a layer or a model."""
    if isinstance(given, type):
        name = given.__name__
        raise TypeError(
            f"{what} needs a layer or a model, but got the class {name}; make an object of it "
            f"first, as in {what}({name}(16, 16))."
        )
    if not isinstance(given, Module):
        raise TypeError(
            f"{what} needs a layer or a model, a torch.nn.Module, but got {given!r}; pass one, as "
            f"in {what}(torch_geometric.nn.GCNConv(16, 16))."
        )


def check_calls(layer: Module, name: str = "") -> None:
    """Raise an error unless ``layer`` is called with features first."""
    kind = type(layer).__name__
    if isinstance(layer, ModuleList | ModuleDict):
        inside = [f"{name}.{child}".lstrip(".") for child, _ in layer.named_children()]
        raise ValueError(
            f"{name or 'the module'} is a {kind}, which holds layers and is not a layer itself; "
            f"name its layers, as in {inside}."
        )
    if next(iter(inspect.signature(layer.forward).parameters), "") == "edge_index":
        remedy = f"leave it out with skip=[{name!r}]" if name else "use it without the step"
        raise ValueError(
            f"{name or 'the layer'} is a {kind}, which is called with edge_index and without "
            f"features, so that there is no embedding to take a step from; {remedy}."
        )


def refuse_features(conv: Module, x: Any) -> NoReturn:
    """Raise the error for features of ``conv`` that are neither a tensor nor a dictionary."""
    name = type(conv).__name__
    if isinstance(x, tuple):
        raise TypeError(
            f"EntropyAware needs one feature tensor [num_nodes, F], but got a tuple for "
            f"{name}: the energy compares a node with its neighbours, so both must be the same "
            "set of nodes. Put the layers of both directions into a torch_geometric.nn.HeteroConv "
            "and wrap that, or leave bipartite layers unwrapped."
        )
    hint = "data.x, data.edge_index" if hasattr(x, "edge_index") else "torch.as_tensor(x)"
    raise TypeError(
        f"EntropyAware needs one feature tensor [num_nodes, F], but got a {type(x).__name__} "
        f"for {name}; pass {hint}."
    )


def check_count(name: str, value: Any, lowest: int = 1) -> None:
    """Raise an error unless ``value`` is a whole number from ``lowest`` on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < lowest:
        raise ValueError(f"{name} must be a whole number >= {lowest}, but is {value!r}.")


def check_heads(hidden_channels: int, heads: Any) -> None:
    """Raise an error unless so many attention heads share the hidden features evenly."""
    check_count("heads", heads)
    if hidden_channels % heads != 0:
        raise ValueError(
            f"hidden_channels must be a multiple of heads, but is {hidden_channels} for {heads}."
        )


def check_share(name: str, value: Any) -> None:
    """Raise an error unless ``value`` is a number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise ValueError(f"{name} must be a number between 0 and 1, but is {value!r}.")


def check_sizes(
    channels: Sequence[Any], num_layers: Any, dropout: Any = 0.0, checkpoint: Any = False
) -> None:
    """Raise an error unless these arguments, which all models take, describe a model."""
    for name, size in zip(("in", "hidden", "out"), channels, strict=True):
        check_count(f"{name}_channels", size)
    check_count("num_layers", num_layers, lowest=0)
    check_share("dropout", dropout)
    if not isinstance(checkpoint, bool):
        raise ValueError(f"checkpoint must be True or False, but is {checkpoint!r}.")
