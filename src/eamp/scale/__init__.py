"""Graphs too large for one batch or machine: clusters, samples, exact inference, many processes."""

from eamp.scale.clusters import ClusterLoader
from eamp.scale.layerwise_inference import inference
from eamp.scale.neighbour_loader import NeighbourLoader
from eamp.scale.sampling import SampledGraph, sampled_graph

__all__ = ["ClusterLoader", "NeighbourLoader", "SampledGraph", "inference", "sampled_graph"]
