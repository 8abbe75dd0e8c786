"""Entropy-aware message passing: a cure for oversmoothing in deep graph networks, and its diagnosis."""

from eamp.functional import boltzmann, dirichlet_energy, entropy, entropy_gradient
from eamp.graph import Graph, GraphError
from eamp.ops import backend

__version__ = "0.1.0"
__all__ = ["Graph", "GraphError", "backend", "boltzmann", "dirichlet_energy", "entropy", "entropy_gradient"]
