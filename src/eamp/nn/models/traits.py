"""The facts that a model may tell the training loop and :mod:`eamp.scale` about itself."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Protocol, cast

from torch import Tensor


class ModelTraits(Protocol):
    """Optional attributes of a model.

    A model need not subclass this class: it has the attributes it needs, and :func:`traits` fills
    in the defaults below for the others.

    Attributes:
        takes_sparse_features: The model takes features as a sparse CSR tensor. Default: ``False``.
        probed_layers: The modules whose outputs count as the layers of the model, by name. Default:
            ``None``, all message-passing layers.
        runs_on_parts: The module computes the same on a part of a graph as on the whole graph: it
            treats every node by itself, or sees other nodes only through :mod:`eamp.ops` and the
            layers of :mod:`eamp.nn`. Default: ``False``; eamp knows its own classes.
        auxiliary_loss: A method that returns a scalar, which the training loop adds to the loss
            after every forward pass. Default: ``None``.
    """

    takes_sparse_features: bool = False
    probed_layers: str | Sequence[str] | None = None
    runs_on_parts: bool = False
    auxiliary_loss: Callable[[], Tensor] | None = None


def traits(model: object) -> ModelTraits:
    """Return the traits of ``model``, a module of any class, with defaults for missing ones."""
    names = ModelTraits.__annotations__
    read = {name: getattr(model, name, getattr(ModelTraits, name)) for name in names}
    return cast(ModelTraits, SimpleNamespace(**read))


def layers_inside(name: str, model: object) -> list[str] | None:
    """Return the layers that a probe measures in a model that is the child ``name`` of a module."""
    named = traits(model).probed_layers
    names = [named] if isinstance(named, str) else named
    return None if names is None else [f"{name}.{each}" for each in names]
