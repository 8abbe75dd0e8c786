"""Entropy-aware message passing: a cure for oversmoothing in deep graph networks, and its diagnosis."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eamp.diagnostics import diagnose, probe
    from eamp.functional import boltzmann, dirichlet_energy, entropy, entropy_gradient
    from eamp.graph import Graph, GraphError
    from eamp.nn import EntropyAware, unwrap, wrap
    from eamp.ops import backend
    from eamp.scale import inference

__version__ = "0.1.0"
__all__ = [
    "EntropyAware",
    "Graph",
    "GraphError",
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

# Where each public name lives. They load when first used, so that `import eamp` and `eamp --help` are instant.
_HOMES = {
    "eamp.scale": ("inference",),
    "eamp.diagnostics": ("diagnose", "probe"),
    "eamp.functional": ("boltzmann", "dirichlet_energy", "entropy", "entropy_gradient"),
    "eamp.graph": ("Graph", "GraphError"),
    "eamp.nn": ("EntropyAware", "unwrap", "wrap"),
    "eamp.ops": ("backend",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


_ROOMS = (
    "cli",
    "data",
    "diagnostics",
    "paper",
    "experiments",
    "functional",
    "graph",
    "nn",
    "ops",
    "report",
    "scale",
    "training",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"eamp.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'eamp' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, "__version__"})
