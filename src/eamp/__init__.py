"""Diagnose oversmoothing in graph networks; entropy-aware message passing and its controls."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eamp.diagnostics import diagnose, probe
    from eamp.functional import boltzmann, dirichlet_energy, entropy, entropy_gradient
    from eamp.graph import Graph, GraphError, TypedGraph
    from eamp.nn import EntropyAware, unwrap, wrap
    from eamp.ops import backend
    from eamp.scale import inference

__version__ = "0.1.0"
__all__ = [
    "EntropyAware",
    "Graph",
    "GraphError",
    "TypedGraph",
    "backend",
    "boltzmann",
    "diagnose",
    "dirichlet_energy",
    "entropy",
    "entropy_gradient",
    "inference",
    "probe",
    "unwrap",
    "wrap",
]

# The room of each public name. Names load when first used, so that `import eamp` is instant.
_ROOM_OF = {
    "EntropyAware": "nn",
    "Graph": "graph",
    "GraphError": "graph",
    "TypedGraph": "graph",
    "backend": "ops",
    "boltzmann": "functional",
    "diagnose": "diagnostics",
    "dirichlet_energy": "functional",
    "entropy": "functional",
    "entropy_gradient": "functional",
    "inference": "scale",
    "probe": "diagnostics",
    "unwrap": "nn",
    "wrap": "nn",
}
_ROOMS = {"cli", "data", "experiments", "paper", "report", "training", *_ROOM_OF.values()}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"eamp.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'eamp' has no attribute {name!r}")
    return getattr(importlib.import_module(f"eamp.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, "__version__"})
