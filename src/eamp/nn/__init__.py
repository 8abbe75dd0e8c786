"""Layers and models."""

from eamp.nn.acmp import ACMP
from eamp.nn.deep_gcn import DeepConv, DeepGCN
from eamp.nn.egnn import EGNN
from eamp.nn.entropic import number_layers
from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.g2 import G2
from eamp.nn.gcn import GCN
from eamp.nn.gcnii import GCNII, GCNIIConv
from eamp.nn.linear_propagation import LinearPropagation
from eamp.nn.models import MODELS
from eamp.nn.noisy_nodes import NoisyNodes
from eamp.nn.pairnorm import PairNormGCN
from eamp.nn.parameter_groups import parameter_groups
from eamp.nn.propagation import GCNConv
from eamp.nn.residual_gcn import ResidualGCN
from eamp.nn.schedule import Cap, Feedback, Gain, Hops, Ramp
from eamp.nn.threshold import collapse_threshold
from eamp.nn.wrapping import unwrap, wrap

__all__ = [
    "ACMP",
    "EGNN",
    "G2",
    "GCN",
    "GCNII",
    "MODELS",
    "Cap",
    "DeepConv",
    "DeepGCN",
    "EntropyAware",
    "Feedback",
    "GCNConv",
    "GCNIIConv",
    "Gain",
    "Hops",
    "LinearPropagation",
    "NoisyNodes",
    "PairNormGCN",
    "Ramp",
    "ResidualGCN",
    "collapse_threshold",
    "number_layers",
    "parameter_groups",
    "unwrap",
    "wrap",
]
