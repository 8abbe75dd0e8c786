"""Graphs that are too large for one batch or one machine.

Training on clusters or on sampled neighbours, exact inference in bounded memory, and exact training
of one graph by several processes.
"""

from eamp.scale.clusters import ClusterLoader
from eamp.scale.layerwise_inference import inference
from eamp.scale.sampling import SampledGraph, sampled_graph

__all__ = ["ClusterLoader", "SampledGraph", "inference", "sampled_graph"]
