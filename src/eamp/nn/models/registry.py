"""The dictionary of all models, by the names that they have on the command line."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch.nn import Module, ModuleList
from torch_geometric.nn import GAT, GIN, GraphSAGE

from eamp.nn.checks import check_heads, check_sizes
from eamp.nn.conv.from_pyg import FromPyG
from eamp.nn.entropic import Entropy
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
from eamp.nn.models.linear_propagation import LinearPropagation
from eamp.nn.models.noisy_nodes import NoisyNodes
from eamp.nn.models.pairnorm_gcn import PairNormGCN
from eamp.nn.models.random_propagation import RandomPropagation
from eamp.nn.models.residual_gcn import ResidualGCN
from eamp.nn.models.state_space_gcn import StateSpaceGCN
from eamp.nn.step.options import PAPER
from eamp.nn.wrapping import wrap

# The step of "entropic-deep-gcn": gain 0.3 in the energy that propagation lowers, at a temperature
# far above that energy. It does not depend on depth, width or graph (docs/depth.md).
DEEP_STEP = {
    "weight": {"schedule": "gain", "of": 0.3},
    "temperature": 100.0,
    "detach": True,
    "energy": "propagation",
    "scale_free": True,
}


def with_entropy(
    model: Callable[..., Module],
    *sizes: int,
    default: Entropy = None,
    entropy: Entropy = None,
    **options: Any,
) -> Module:
    """Build ``model`` with an entropy step: the ``default``, or else the paper's constants."""
    return model(*sizes, entropy=(default or PAPER) if entropy is None else entropy, **options)


def default_step(name: str) -> Entropy:
    """Return the entropy step that a model of :data:`MODELS` takes by itself, or ``None``."""
    built = MODELS[name]
    if not isinstance(built, partial) or built.func is not with_entropy:
        return None
    step: Entropy = built.keywords.get("default", PAPER)
    return step


def from_pyg(
    architecture: Callable[..., Any],
    in_channels: int,
    hidden_channels: int,
    out_channels: int,
    num_layers: int,
    *,
    dropout: float = 0.0,
    entropy: Entropy = None,
    checkpoint: bool = False,
    **options: Any,
) -> Module:
    """Build a model of PyG, such as ``GAT``, with ``num_layers`` hidden layers and an output layer.

    It also takes an :class:`eamp.Graph`. PyG runs its layers itself, so ``checkpoint`` is refused.
    """
    if checkpoint:
        raise ValueError(
            f"checkpoint=True is for eamp's own models, but {architecture.__name__} is PyG's; "
            "leave checkpoint out."
        )
    check_sizes((in_channels, hidden_channels, out_channels), num_layers, dropout)
    check_heads(hidden_channels, options.get("heads", 1))
    sizes = (in_channels, hidden_channels, num_layers + 1, out_channels)
    model = architecture(*sizes, dropout=dropout, **options)
    model.convs = ModuleList(FromPyG(conv) for conv in model.convs)
    if entropy is None or num_layers == 0:  # without hidden layers none takes the step
        return model
    return wrap(model, entropy, skip=f"convs.{num_layers}")


def noisy(
    model: Callable[..., Module],
    in_channels: int,
    hidden_channels: int,
    out_channels: int,
    num_layers: int,
    *,
    noise: float = 0.1,
    noise_weight: float = 0.1,
    **options: Any,
) -> NoisyNodes:
    """Build :class:`NoisyNodes` around ``model``, with one more output for every input feature."""
    check_sizes((in_channels, hidden_channels, out_channels), num_layers)
    inner = model(in_channels, hidden_channels, out_channels + in_channels, num_layers, **options)
    return NoisyNodes(inner, out_channels, noise=noise, weight=noise_weight)


def dropping_edges(
    model: Callable[..., Module], *sizes: int, drop_edge: float = 0.3, **options: Any
) -> DropEdge:
    """Build :class:`DropEdge` around ``model``."""
    return DropEdge(model(*sizes, **options), drop_edge)


# NodeClassifier documents the arguments that all of them take.
MODELS: dict[str, Callable[..., Module]] = {
    "gcn": GCN,
    "entropic-gcn": partial(with_entropy, GCN),
    "pairnorm": PairNormGCN,
    "g2": G2,
    "gcnii": GCNII,
    "entropic-gcnii": partial(with_entropy, GCNII),
    "deep-gcn": DeepGCN,
    "entropic-deep-gcn": partial(with_entropy, DeepGCN, default=DEEP_STEP),
    "residual-gcn": ResidualGCN,
    "state-space": StateSpaceGCN,
    "linear": LinearPropagation,
    "appnp": LinearPropagation,
    "dagnn": DAGNN,
    "gcniii": GCNIII,
    "ggcm": GGCM,
    "random-propagation": RandomPropagation,
    "noisy-gcn": partial(noisy, GCN),
    "dropedge-gcn": partial(dropping_edges, GCN),
    "gat": partial(from_pyg, GAT),
    "graphsage": partial(from_pyg, GraphSAGE),
    "gin": partial(from_pyg, GIN),
    "gps": GPS,
    "egnn": EGNN,
    "acmp": ACMP,
    "grand": GRAND,
    "entropic-grand": partial(with_entropy, GRAND),
}
"""Models by name; call one with the numbers of features, hidden features, classes and layers."""
