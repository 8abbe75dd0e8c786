"""Checks of the arguments that layers and models have in common."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from torch.nn import Module


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


def check_count(name: str, value: Any, lowest: int = 1) -> None:
    """Raise an error unless ``value`` is a whole number from ``lowest`` on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < lowest:
        raise ValueError(f"{name} must be a whole number >= {lowest}, but is {value!r}.")


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
