"""Graphs that do not fit a batch: training on parts of them, exactly or by samples, and inference over all nodes in bounded memory."""

from eamp.batching.layerwise import inference

__all__ = ["inference"]
