"""The ``entropy`` option of a model: the step around each layer, and a number for each."""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar

from torch import Tensor
from torch.nn import Module

from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.step.layer_state import Position
from eamp.nn.step.options import EntropyStep, Placement

Some = TypeVar("Some", bound=Module)

Entropy: TypeAlias = EntropyStep | Mapping[str, Any] | None
"""The step of every hidden message-passing layer of a model, or ``None`` for the bare model."""


def entropic(conv: Module, entropy: Entropy, placement: Placement = "output") -> Module:
    """Return ``conv`` with the entropy step, or ``conv`` itself if ``entropy`` is ``None``.

    Args:
        conv: the layer.
        entropy: the step.
        placement: where the step is taken if ``entropy`` is a mapping that does not say so.

    Example:
        >>> from eamp.nn import GCNConv
        >>> entropic(GCNConv(8, 8), {"weight": 0.5, "temperature": 2.0})
        EntropyAware(
          weight=0.5, temperature=2.0
          (conv): GCNConv(8, 8)
        )
        >>> entropic(GCNConv(8, 8), None)
        GCNConv(8, 8)
    """
    if entropy is None:
        return conv
    # Copied, because a schedule among the options may hold parameters, and every layer has its own.
    return EntropyAware.of(conv, copy.deepcopy(EntropyStep.of(entropy, placement=placement)))


def number_layers(model: Some) -> Some:
    """Number the :class:`EntropyAware` layers of ``model`` in the order they were registered.

    :func:`eamp.wrap` and the models of :mod:`eamp.nn` call it. Schedules over depth, such as
    :class:`eamp.nn.Ramp`, need it.

    Example:
        >>> from torch.nn import ModuleList
        >>> from eamp.nn import GCNConv
        >>> layers = number_layers(ModuleList(EntropyAware(GCNConv(8, 8)) for _ in range(3)))
        >>> layers[2].position
        Position(layer=3, layers=3)
    """
    layers = [module for module in model.modules() if isinstance(module, EntropyAware)]
    for number, layer in enumerate(layers, start=1):
        layer.position = Position(number, len(layers))
    return model


def applied(conv: Module, layer: int, layers: int) -> Callable[..., Tensor]:
    """Return ``conv`` as the ``layer``-th of ``layers``, for a model that applies it many times.

    Example:
        >>> from eamp.nn import GCNConv
        >>> ramp = {"schedule": "ramp", "start": 1.0, "end": 2.0}
        >>> conv = entropic(GCNConv(8, 8), {"weight": ramp})
        >>> third = applied(conv, 3, 64)
    """
    return (
        partial(conv, position=Position(layer, layers)) if isinstance(conv, EntropyAware) else conv
    )
