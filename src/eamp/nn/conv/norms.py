"""Normalisations of PyG between layers, by their names."""

import inspect

from torch.nn import Identity, Module
from torch_geometric.nn.resolver import normalization_resolver


def norm_of(name: str | None, channels: int) -> Module:
    """Return a normalisation of PyG by its name, or the identity for ``None``."""
    if name is None:
        return Identity()
    try:
        norm: Module = normalization_resolver(name, in_channels=channels)
    except TypeError as error:
        raise ValueError(
            f"norm must be a normalisation that takes its number of channels, as in 'BatchNorm' or "
            f"'GraphNorm', but is {name!r}; for pair normalisation take PairNormGCN."
        ) from error
    return norm


def takes_batch(norm: Module) -> bool:
    """Return whether a normalisation can tell the graphs of a batch apart."""
    return "batch" in inspect.signature(norm.forward).parameters
