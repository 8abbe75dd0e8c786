"""Deprecated names of :mod:`eamp.nn`."""

from eamp.moved import moved

_NAMES = ("GRAND", "RandomWalkDiffusion")
__getattr__ = moved(__name__, dict.fromkeys(_NAMES, "eamp.nn.models.grand"))
