"""Which models may run on parts of a graph."""

from torch import nn
from torch.nn import Module
from torch_geometric.nn import MLP, DeepGCNLayer
from torch_geometric.nn.dense.linear import Linear

from eamp.graph import GraphError
from eamp.nn.conv.deep_conv import DeepConv, GCNIIConv
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.conv.pair_norm import PairNorm
from eamp.nn.conv.residual_update import ResidualUpdate
from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.models.dagnn import DAGNN
from eamp.nn.models.deep_gcn import DeepGCN
from eamp.nn.models.g2 import G2
from eamp.nn.models.gcn import GCN
from eamp.nn.models.gcnii import GCNII
from eamp.nn.models.gcniii import GCNIII
from eamp.nn.models.linear_propagation import LinearPropagation
from eamp.nn.models.pairnorm_gcn import PairNormGCN
from eamp.nn.models.random_propagation import RandomPropagation
from eamp.nn.models.residual_gcn import ResidualGCN
from eamp.nn.models.state_space_gcn import StateSpaceGCN
from eamp.nn.models.traits import traits
from eamp.nn.step.weight import SCHEDULES, Weight
from eamp.nn.wrapped_class import own_class

# Modules that treat every node by itself.
ROW_BY_ROW = {nn.Linear, Linear, nn.LayerNorm, nn.Dropout, nn.Identity}
ACTIVATIONS = {nn.ReLU, nn.ELU, nn.GELU, nn.LeakyReLU, nn.Tanh}
CONTAINERS = {nn.Sequential, nn.ModuleList, MLP, DeepGCNLayer}
MODELS = {GCN, GCNII, GCNIII, LinearPropagation, RandomPropagation, DAGNN}
MODELS |= {G2, ResidualGCN, StateSpaceGCN, DeepGCN, PairNormGCN}
LAYERS = {GCNConv, ResidualUpdate, GCNIIConv, DeepConv, EntropyAware, PairNorm}
KNOWN = ROW_BY_ROW | ACTIVATIONS | CONTAINERS | MODELS | LAYERS


def check_model(model: Module) -> None:
    """Raise an error for a model that may compute something else on parts than on the whole graph.

    Every statistic over nodes must be one over the nodes of all parts. eamp's own layers take them
    from the graph. A module of your own is accepted if its class has ``runs_on_parts = True``: it
    must treat every node by itself, or see other nodes only through eamp's functions and layers.
    """
    if traits(model).auxiliary_loss is not None:
        raise not_on_parts(f"the auxiliary loss of {type(model).__name__}")
    for name, module in model.named_modules():
        if own_class(module) not in KNOWN and not traits(module).runs_on_parts:
            remedy = "; set runs_on_parts = True on its class if it treats every node by itself"
            raise not_on_parts(f"{name or 'the model'}, a {type(module).__name__},", remedy)
        if isinstance(module, EntropyAware) and not known_weight(module.step.weight):
            raise not_on_parts(f"a function of your own as the weight of {name}")


def not_on_parts(what: str, remedy: str = "") -> GraphError:
    """Return the error for a model that is not known to run on parts."""
    return GraphError(
        f"{what} is not known to compute the same on a graph that is spread over several processes "
        f"as on the whole graph; train in one process{remedy}."
    )


def known_weight(weight: Weight) -> bool:
    """Return whether a weight is a number, a schedule of eamp's, or has ``runs_on_parts``."""
    if not callable(weight) or traits(weight).runs_on_parts:
        return True
    return type(weight) in SCHEDULES.values() and all(map(known_weight, vars(weight).values()))
