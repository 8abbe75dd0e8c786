"""Every model by the name it has on the command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch.nn import Module, ModuleList
from torch_geometric.nn import GAT, GraphSAGE

from eamp.nn.conv.from_pyg import FromPyG
from eamp.nn.entropic import Entropy
from eamp.nn.models.acmp import ACMP
from eamp.nn.models.deep_gcn import DeepGCN
from eamp.nn.models.egnn import EGNN
from eamp.nn.models.g2 import G2
from eamp.nn.models.gcn import GCN
from eamp.nn.models.gcnii import GCNII
from eamp.nn.models.linear_propagation import LinearPropagation
from eamp.nn.models.noisy_nodes import NoisyNodes
from eamp.nn.models.pairnorm_gcn import PairNormGCN
from eamp.nn.models.residual_gcn import ResidualGCN
from eamp.nn.wrapping import wrap


def with_entropy(
    model: Callable[..., Module], *sizes: int, entropy: Entropy = None, **options: Any
) -> Module:
    """``model`` with the entropy step whether it was asked for or not: where it was not, with :class:`EntropyAware`'s own defaults."""
    return model(*sizes, entropy={} if entropy is None else entropy, **options)


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
    """A model of PyG, such as ``GAT``: ``num_layers`` hidden layers, which get the entropy step from :func:`wrap`, plus an output layer.

    Example:
        >>> from torch_geometric.nn import GraphSAGE
        >>> from_pyg(GraphSAGE, 16, 64, 7, num_layers=1, entropy=dict(weight=1.0, temperature=10.0)).convs
        ModuleList(
          (0): EntropyAware(
            weight=1.0, temperature=10.0
            (conv): SAGEConv(16, 64, aggr=mean)
          )
          (1): SAGEConv(64, 7, aggr=mean)
        )
    """
    if checkpoint:
        raise ValueError(
            f"checkpoint=True is for eamp's own models, whose layers eamp runs itself; those of PyG's {architecture.__name__} PyG runs."
        )
    model = architecture(
        in_channels, hidden_channels, num_layers + 1, out_channels, dropout=dropout, **options
    )
    model.convs = ModuleList(FromPyG(conv) for conv in model.convs)
    return model if entropy is None else wrap(model, skip=f"convs.{num_layers}", **entropy)


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
    """:class:`NoisyNodes` around ``model``, which gets an output more for every input feature."""
    inner = model(in_channels, hidden_channels, out_channels + in_channels, num_layers, **options)
    return NoisyNodes(inner, out_channels, noise=noise, weight=noise_weight)


def entropic_deep(*sizes: int, entropy: Entropy = None, **options: Any) -> Module:
    """:class:`DeepGCN`, by default with a step of gain 0.3 in the propagation's own energy, far below the temperature.

    Nothing in that depends on depth, width or graph (docs/depth.md).

    Example:
        >>> entropic_deep(16, 64, 7, 1000, dropout=0.6, checkpoint=True).convs[0]
        EntropyAware(
          weight=Gain(of=0.3), temperature=100.0, placement='input', normalization='sym', scale_free=True
          (conv): DeepConv(64, weights='none', initial_residual=0.1)
        )
    """
    step = {
        "weight": {"schedule": "gain", "of": 0.3},
        "temperature": 100.0,
        "normalization": "sym",
        "scale_free": True,
    }
    return DeepGCN(*sizes, entropy=step if entropy is None else entropy, **options)


def grand(*sizes: int, **options: Any) -> Module:
    """:class:`eamp.nn.models.grand.GRAND`, which is built on this package and so cannot be imported before it."""
    from eamp.nn.models.grand import GRAND

    return GRAND(*sizes, **options)


# All are called alike: (in_channels, hidden_channels, out_channels, num_layers, *, dropout=0.0, entropy=None, checkpoint=False, ...).
MODELS: dict[str, Callable[..., Module]] = {
    "gcn": GCN,
    "entropic-gcn": partial(with_entropy, GCN),
    "pairnorm": PairNormGCN,
    "g2": G2,
    "gcnii": GCNII,
    "entropic-gcnii": partial(with_entropy, GCNII),
    "deep-gcn": DeepGCN,
    "entropic-deep-gcn": entropic_deep,
    "residual-gcn": ResidualGCN,
    "linear": LinearPropagation,
    "noisy-gcn": partial(noisy, GCN),
    "gat": partial(from_pyg, GAT),
    "graphsage": partial(from_pyg, GraphSAGE),
    "egnn": EGNN,
    "acmp": ACMP,
    "grand": grand,
    "entropic-grand": partial(with_entropy, grand),
}
