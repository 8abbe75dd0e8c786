"""What ``entropy=dict(...)`` does to the layers of a model: the step around each, and a number for each."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar

from torch import Tensor
from torch.nn import Module

from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.step.layer_state import Position

Some = TypeVar("Some", bound=Module)

Entropy: TypeAlias = dict[str, Any] | None
"""The arguments of :class:`EntropyAware` for every hidden message-passing layer of a model, or ``None`` for the bare model."""


def entropic(conv: Module, entropy: Entropy) -> Module:
    """``conv`` with the entropy step, or as it is where ``entropy`` is ``None``.

    Example:
        >>> from eamp.nn.conv.gcn_conv import GCNConv
        >>> entropic(GCNConv(8, 8), dict(weight=0.5, temperature=2.0))
        EntropyAware(
          weight=0.5, temperature=2.0
          (conv): GCNConv(8, 8)
        )
        >>> entropic(GCNConv(8, 8), None)
        GCNConv(8, 8)
    """
    if unknown := set(entropy or {}) - (
        known := set(inspect.signature(EntropyAware).parameters) - {"conv"}
    ):
        others = ", ".join(sorted(known - {"weight", "temperature"}))
        raise ValueError(
            f"the entropy step has no {sorted(unknown)}; it has weight (λ), temperature (T), {others}."
        )
    # Copied, because a schedule among the options may hold parameters, and every layer has its own.
    return conv if entropy is None else EntropyAware(conv, **copy.deepcopy(entropy))


def number_layers(model: Some) -> Some:
    """Tell every :class:`EntropyAware` layer of ``model`` its number and how many there are, in the order they were registered.

    :func:`eamp.wrap` and the models of :mod:`eamp.nn` do it themselves. Schedules over depth (:class:`eamp.nn.step.schedules.Ramp`) ask for it.

    Example:
        >>> from torch.nn import ModuleList
        >>> from eamp.nn.conv.gcn_conv import GCNConv
        >>> layers = number_layers(ModuleList(EntropyAware(GCNConv(8, 8)) for _ in range(3)))
        >>> layers[2].position
        Position(layer=3, layers=3)
    """
    layers = [module for module in model.modules() if isinstance(module, EntropyAware)]
    for number, layer in enumerate(layers, start=1):
        layer.position = Position(number, len(layers))
    return model


def applied(conv: Module, layer: int, layers: int) -> Callable[..., Tensor]:
    """``conv`` as the ``layer``-th of ``layers``: for a model that applies one layer many times, whose number changes from call to call.

    Example:
        >>> from eamp.nn.conv.gcn_conv import GCNConv
        >>> conv = entropic(GCNConv(8, 8), dict(weight={"schedule": "ramp", "start": 1.0, "end": 2.0}))
        >>> third = applied(conv, 3, 64)
    """
    return (
        partial(conv, position=Position(layer, layers)) if isinstance(conv, EntropyAware) else conv
    )
