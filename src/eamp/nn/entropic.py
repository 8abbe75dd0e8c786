"""One function for all models: what ``entropy=dict(...)`` does to a layer."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

from torch.nn import Module

from eamp.nn.entropy_aware import EntropyAware

Entropy: TypeAlias = dict[str, Any] | None
"""The arguments of :class:`EntropyAware` for every hidden message-passing layer of a model, or ``None`` for the bare model."""


def entropic(conv: Module, entropy: Entropy) -> Module:
    """``conv`` with the entropy step, or as it is where ``entropy`` is ``None``.

    Example:
        >>> from eamp.nn.propagation import GCNConv
        >>> entropic(GCNConv(8, 8), dict(weight=0.5, temperature=2.0))
        EntropyAware(
          weight=0.5, temperature=2.0
          (conv): GCNConv(8, 8)
        )
        >>> entropic(GCNConv(8, 8), None)
        GCNConv(8, 8)
    """
    # Copied, because a schedule among the options may hold parameters, and every layer has its own.
    return conv if entropy is None else EntropyAware(conv, **copy.deepcopy(entropy))
