"""Which models may run on parts of a graph: those of which it is known that every statistic they take is one over all nodes."""

from __future__ import annotations

from torch.nn import (
    ELU,
    GELU,
    Dropout,
    Identity,
    LayerNorm,
    LeakyReLU,
    Linear,
    Module,
    ModuleList,
    ReLU,
    Sequential,
    Tanh,
)
from torch_geometric.nn import MLP, DeepGCNLayer, PairNorm
from torch_geometric.nn.dense.linear import Linear as LazyLinear

from eamp.nn.conv.deep_conv import DeepConv, GCNIIConv
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.conv.residual_update import ResidualUpdate
from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.models.deep_gcn import DeepGCN
from eamp.nn.models.g2 import G2
from eamp.nn.models.gcn import GCN
from eamp.nn.models.gcnii import GCNII
from eamp.nn.models.linear_propagation import LinearPropagation
from eamp.nn.models.pairnorm_gcn import PairNormGCN
from eamp.nn.models.residual_gcn import ResidualGCN
from eamp.nn.step.weight import SCHEDULES, Weight
from eamp.ops.part import not_for_parts

ROW_BY_ROW = (
    Linear,
    LazyLinear,
    LayerNorm,
    ReLU,
    ELU,
    GELU,
    LeakyReLU,
    Tanh,
    Dropout,
    Identity,
    Sequential,
    ModuleList,
    MLP,
)
OURS = (
    GCN,
    GCNConv,
    ResidualUpdate,
    GCNII,
    GCNIIConv,
    LinearPropagation,
    G2,
    ResidualGCN,
    DeepGCN,
    DeepConv,
)
KNOWN = {*ROW_BY_ROW, *OURS, DeepGCNLayer, PairNormGCN, EntropyAware}


def check_model(model: Module) -> None:
    """Raise an error for a model that would compute something else on parts than on the whole graph.

    A class of your own is let through once it has ``runs_on_parts = True``: it must treat every node by itself, or look at others only
    through :mod:`eamp.ops` and through layers that are known here.

    Example:
        >>> import eamp
        >>> check_model(eamp.nn.GCN(8, 16, 3, num_layers=2))
    """
    if callable(getattr(model, "auxiliary_loss", None)):
        raise not_for_parts(f"the auxiliary loss of {type(model).__name__}")
    inside_pair_norm = {
        id(module.norm) for module in model.modules() if isinstance(module, PairNormGCN)
    }
    for name, module in model.named_modules():
        known = (
            type(module) in KNOWN
            or id(module) in inside_pair_norm
            or getattr(module, "runs_on_parts", False)
        )
        if not known or (isinstance(module, PairNorm) and id(module) not in inside_pair_norm):
            raise not_for_parts(f"{name or 'the model'}, a {type(module).__name__},")
        if isinstance(module, EntropyAware):
            check_entropy(name, module)


def check_entropy(name: str, layer: EntropyAware) -> None:
    if not known_weight(layer.options["weight"]):
        raise not_for_parts(f"a function of your own as the weight of {name}")


def known_weight(weight: Weight) -> bool:
    """Whether a weight is a number, or one of our schedules of such weights, or says that it runs on parts."""
    if not callable(weight) or getattr(weight, "runs_on_parts", False):
        return True
    return type(weight) in SCHEDULES.values() and all(
        known_weight(inner) for inner in vars(weight).values()
    )
