"""Deprecated names of :mod:`eamp.scale`."""

from eamp.moved import moved

_NAMES = ("ClusterLoader", "SampledGraph", "inference", "sampled_graph")
__getattr__ = moved(__name__, dict.fromkeys(_NAMES, "eamp.scale"))
