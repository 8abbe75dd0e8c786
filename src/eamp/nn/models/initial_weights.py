"""Initial weights of plain stacks: their scale, and weights with which a stack begins linear."""

import math
from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch.nn import Module

InitialWeights: TypeAlias = Literal["glorot", "mirrored"]


def check_initial_weights(given: str) -> None:
    """Raise an error unless ``given`` is a kind of initial weights."""
    if given not in get_args(InitialWeights):
        expected = ", ".join(map(repr, get_args(InitialWeights)))
        raise ValueError(f"initial_weights must be one of {expected}, but is {given!r}.")


@torch.no_grad()
def mirror_weights(layers: Iterable[Module]) -> None:
    r"""Initialise a stack of graph convolutions such that it begins as a linear map.

    From `"The Shattered Gradients Problem: If resnets are the answer, then what is the question?"
    <https://arxiv.org/abs/1702.08591>`_ (Balduzzi et al., 2017), where it is called *looks linear*.
    With orthogonal matrices :math:`Q_\ell`, and weights that act from the left,

    .. math::
        W_1 = \begin{pmatrix} Q_1 \\ -Q_1 \end{pmatrix}, \qquad
        W_\ell = \begin{pmatrix} Q_\ell & -Q_\ell \\ -Q_\ell & Q_\ell \end{pmatrix}, \qquad
        W_L = \begin{pmatrix} V & -V \end{pmatrix}

    Before every ReLU, one half of the features is the negative of the other half. Because of
    :math:`\mathrm{ReLU}(z) - \mathrm{ReLU}(-z) = z` nothing is lost, and without biases the stack
    computes :math:`\hat{A}^L \mathbf{X} Q_1^\top Q_2^\top \cdots V^\top`. Without the propagation
    it would keep every length and every gradient. BibTeX key for ``eamp cite``:
    ``balduzzi2017shattered``.

    Args:
        layers: The graph convolutions of a network with ReLU from input to output, at least two:
            :class:`GCNConv` or PyG's, bare or with an entropy step. Their hidden widths are even.

    Raises:
        ValueError: if a layer does not have exactly one matrix whose name ends in ``lin.weight``,
            or a hidden width is odd.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> model = GCN(16, 64, num_layers=64, out_channels=7)
        >>> mirror_weights(model.convs)
    """
    layers = list(layers)
    if len(layers) < 2:
        raise ValueError(f"mirror_weights needs at least two layers, but got {len(layers)}.")
    found = [weights_of(layer) for layer in layers]
    for number, (layer, weights) in enumerate(zip(layers, found, strict=True), start=1):
        if len(weights) != 1:
            raise ValueError(
                "mirror_weights takes layers with one matrix, as GCNConv has in lin.weight, but "
                f"layer {number} is a {type(layer).__name__}; leave such a model's weights as they "
                "are."
            )
    first, *inner, last = [weights[0] for weights in found]
    if odd := [len(weight) for weight in (first, *inner) if len(weight) % 2]:
        raise ValueError(
            f"mirrored weights need even numbers of hidden channels, but there are {odd[0]}; take "
            f"{odd[0] + 1}."
        )
    half = torch.empty_like(first[: len(first) // 2])
    first.copy_(torch.cat([torch.nn.init.orthogonal_(half), -half]))
    for weight in inner:
        half = torch.empty_like(weight[: len(weight) // 2, : weight.size(1) // 2])
        row = torch.cat([torch.nn.init.orthogonal_(half), -half], dim=1)
        weight.copy_(torch.cat([row, -row]))
    half = last[:, : last.size(1) // 2].clone()  # as it was drawn
    last.copy_(torch.cat([half, -half], dim=1))


@torch.no_grad()
def scale_weights(layers: Module, gain: float, name: str) -> None:
    """Multiply the weights, not the biases, of graph convolutions by the gain of a given name."""
    if isinstance(gain, bool) or not 0 < gain < math.inf:
        raise ValueError(f"{name} must be a number > 0, but is {gain!r}.")
    for weight in weights_of(layers):
        weight.mul_(gain)


def weights_of(layers: Module) -> list[Tensor]:
    """Return the weight matrices of graph convolutions."""
    return [weight for name, weight in layers.named_parameters() if name.endswith("lin.weight")]
