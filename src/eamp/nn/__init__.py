"""Layers and models."""

from eamp.nn.conv.deep_conv import DeepConv, GCNIIConv
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.entropic import number_layers
from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.models import MODELS
from eamp.nn.models.acmp import ACMP
from eamp.nn.models.dagnn import DAGNN
from eamp.nn.models.deep_gcn import DeepGCN
from eamp.nn.models.drop_edge import DropEdge
from eamp.nn.models.egnn import EGNN
from eamp.nn.models.g2 import G2
from eamp.nn.models.gcn import GCN
from eamp.nn.models.gcnii import GCNII
from eamp.nn.models.gcniii import GCNIII
from eamp.nn.models.ggcm import GGCM
from eamp.nn.models.gps import GPS
from eamp.nn.models.grand import GRAND
from eamp.nn.models.graph_level import GraphLevel
from eamp.nn.models.initial_weights import mirror_weights
from eamp.nn.models.linear_propagation import LinearPropagation
from eamp.nn.models.noisy_nodes import NoisyNodes
from eamp.nn.models.pairnorm_gcn import PairNormGCN
from eamp.nn.models.random_propagation import RandomPropagation
from eamp.nn.models.residual_gcn import ResidualGCN
from eamp.nn.models.state_space_gcn import StateSpaceGCN
from eamp.nn.parameter_groups import parameter_groups
from eamp.nn.step.options import EntropyStep
from eamp.nn.step.schedules import Cap, Feedback, Gain, Hops, Ramp
from eamp.nn.step.threshold import collapse_threshold
from eamp.nn.wrapping import unwrap, wrap

__all__ = [
    "ACMP",
    "DAGNN",
    "EGNN",
    "G2",
    "GCN",
    "GCNII",
    "GCNIII",
    "GGCM",
    "GPS",
    "GRAND",
    "MODELS",
    "Cap",
    "DeepConv",
    "DeepGCN",
    "DropEdge",
    "EntropyAware",
    "EntropyStep",
    "Feedback",
    "GCNConv",
    "GCNIIConv",
    "Gain",
    "GraphLevel",
    "Hops",
    "LinearPropagation",
    "NoisyNodes",
    "PairNormGCN",
    "Ramp",
    "RandomPropagation",
    "ResidualGCN",
    "StateSpaceGCN",
    "collapse_threshold",
    "mirror_weights",
    "number_layers",
    "parameter_groups",
    "unwrap",
    "wrap",
]
