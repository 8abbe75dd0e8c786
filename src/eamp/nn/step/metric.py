"""The coordinates in which the entropy step sees an embedding: as it is, by degree, or by its own scale."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from eamp import ops
from eamp.graph import CSR
from eamp.ops.sums import TINY

Normalization: TypeAlias = Literal["sym"] | None


class Coordinates(NamedTuple):
    """Every node's features are multiplied by its ``inward`` ``[n, 1]``, and its part of the step by its ``outward``.

    ``csr`` is the graph with the normaliser that belongs to them, ``mobility`` ``[n]`` what a step of size 1 moves a node by, and ``unit``
    the energy that counts as 1.
    """

    csr: CSR
    inward: Tensor | None = None
    outward: Tensor | None = None
    mobility: Tensor | None = None
    unit: Tensor | None = None

    def seen(self, x: Tensor) -> Tensor:
        """``x`` in these coordinates."""
        return x if self.inward is None else x * self.inward


def coordinates(
    x: Tensor,
    csr: CSR,
    batch: Tensor | None,
    num_graphs: int,
    normalization: Normalization,
    scale_free: bool,
) -> Coordinates:
    r"""The coordinates of an embedding.

    With ``"sym"`` the energy is the one that graph convolutions lower, :math:`\sum_i E_i = \frac{1}{\sqrt F} \operatorname{tr}
    \mathbf{X}^\top (I - \hat A) \mathbf{X}`, node by node:

    .. math::
        E_i = \frac{1}{2 \sqrt F} \sum_j a_{ij} \left\lVert \frac{x_i}{\sqrt{d_i}} - \frac{x_j}{\sqrt{d_j}} \right\rVert^2,
        \qquad d_i = k_i + 1

    With ``scale_free`` it is the energy of :math:`x / (s F^{1/4})`, where :math:`s^2` is the mean square of a graph's features: the same
    for an embedding and a multiple of it, and of the same size at any width. With both,

    .. math::
        E_i = \frac{1}{2 F s^2} \sum_j a_{ij} \left\lVert \frac{x_i}{\sqrt{d_i}} - \frac{x_j}{\sqrt{d_j}} \right\rVert^2

    is about 1/2 for random features and 0 for smooth ones. Both are gradients of an entropy still, with :math:`s` counted as a constant
    there; the step is :math:`s^2 \sqrt F` times the gradient in :math:`x`, so that it scales with the embedding as the layer's output does.
    """
    inward = outward = mobility = None
    unit = None
    if normalization == "sym":
        by_degree = ops.rsqrt_degree_with_loop(csr, x.dtype)
        mobility, inward = by_degree.square(), by_degree.unsqueeze(1)
        outward = inward
        csr = ops.without_degrees(csr)
    if (
        scale_free and batch is None
    ):  # dividing all features by one number is to measure energies in its square
        unit = mean_square(x, csr, batch, num_graphs) * math.sqrt(x.size(1))
    elif scale_free:
        scale = mean_square(x, csr, batch, num_graphs).sqrt() * x.size(1) ** 0.25
        inward = 1 / scale if inward is None else inward / scale
        outward = scale if outward is None else outward * scale
    return Coordinates(csr, inward, outward, mobility, unit)


def step_ahead(
    csr: CSR,
    dtype: torch.dtype,
    temperature: float,
    weight: float,
    normalization: Normalization,
    scale_free: bool,
) -> ops.Step:
    """The step in the same coordinates, of an embedding of some dtype that is not known yet, with weight λ."""
    if normalization is None:
        return ops.Step(csr, temperature, weight, None, scale_free)
    return ops.Step(
        ops.without_degrees(csr),
        temperature,
        weight,
        ops.rsqrt_degree_with_loop(csr, dtype),
        scale_free,
    )


def mean_square(x: Tensor, csr: CSR, batch: Tensor | None, num_graphs: int) -> Tensor:
    """The mean square of every graph's features, one number or ``[n, 1]``; 1 where they are all zero."""
    squares = torch.linalg.vector_norm(x, dim=1).square() / x.size(1)
    if batch is None:
        mean = ops.node_mean(squares, csr)
    else:
        size = (
            squares.new_zeros(num_graphs).index_add(0, batch, torch.ones_like(squares)).clamp(min=1)
        )
        mean = (squares.new_zeros(num_graphs).index_add(0, batch, squares) / size)[batch].unsqueeze(
            1
        )
    return torch.where(mean > TINY, mean, 1.0)


def sym_threshold(width: int) -> float:
    r""":math:`\sqrt F / 2`, the weight at which, far below the temperature, the step of ``"sym"`` undoes a propagation exactly.

    There :math:`q_i = 1/\sqrt F`, so the step is :math:`\frac{2 \lambda}{\sqrt F} (I - \hat A) \mathbf{X}`.
    """
    return math.sqrt(width) / 2
