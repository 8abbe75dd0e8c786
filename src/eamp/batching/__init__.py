"""Graphs that do not fit a batch: training on parts of them, exactly or by samples, and inference over all nodes in bounded memory."""

from eamp.batching.clusters import ClusterLoader
from eamp.batching.layerwise import inference
from eamp.batching.sampled import SampledGraph, sampled_graph

__all__ = ["ClusterLoader", "SampledGraph", "inference", "sampled_graph"]
