"""Graphs that do not fit a batch: training on parts of them, exactly or by samples, and inference over all nodes in bounded memory."""

from eamp.scale.clusters import ClusterLoader
from eamp.scale.layerwise_inference import inference
from eamp.scale.sampling import SampledGraph, sampled_graph

__all__ = ["ClusterLoader", "SampledGraph", "inference", "sampled_graph"]
