"""The metric of the energy: in which coordinates the entropy step compares neighbours."""

import math
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from eamp.graph import Graph
from eamp.ops import propagation_scale
from eamp.ops.precision import TINY

Energy: TypeAlias = Literal["paper", "propagation"]
"""The paper's energy, or the one that graph convolutions lower."""


class Metric(NamedTuple):
    """The coordinates of one embedding.

    Attributes:
        inward: ``[n, 1]``, factors of the features; ``None`` for 1.
        outward: ``[n, 1]``, factors of the step; ``None`` for 1.
        mobility: ``[n]``, how far a step of size 1 moves a node; ``None`` for 1.
        unit: the energy that counts as 1; ``None`` for 1.
        by_degree: whether energies are normalised by 1/sqrt(k_i F) rather than 1/sqrt(F).
    """

    inward: Tensor | None = None
    outward: Tensor | None = None
    mobility: Tensor | None = None
    unit: Tensor | None = None
    by_degree: bool = True

    def seen(self, x: Tensor) -> Tensor:
        """Return ``x`` in these coordinates."""
        return x if self.inward is None else x * self.inward

    def in_units_of(self, energy: Tensor) -> "Metric":
        """Return coordinates in which energies are divided by ``energy`` ``[n]``, one per graph."""
        size = energy.sqrt().unsqueeze(1)
        return self._replace(
            inward=1 / size if self.inward is None else self.inward / size,
            outward=size if self.outward is None else self.outward * size,
        )


def metric_of(x: Tensor, graph: Graph, energy: Energy, scale_free: bool) -> Metric:
    r"""Return the metric in which an embedding is seen.

    The energy ``"propagation"`` is the one that graph convolutions lower,
    :math:`\sum_i E_i = \frac{1}{\sqrt F} \operatorname{tr} X^\top (I - \hat A) X`.
    Node by node it is

    .. math::
        E_i = \frac{1}{2 \sqrt F} \sum_j a_{ij}
        \left\lVert \frac{x_i}{\sqrt{d_i}} - \frac{x_j}{\sqrt{d_j}} \right\rVert^2, \qquad d_i = k_i
        + 1

    With ``scale_free`` it is the energy of :math:`x / (s F^{1/4})`, where :math:`s^2` is the mean
    square of a graph's features. It is the same for an embedding and a multiple of it, and of the
    same size at any width. With both options,

    .. math::
        E_i = \frac{1}{2 F s^2} \sum_j a_{ij}
        \left\lVert \frac{x_i}{\sqrt{d_i}} - \frac{x_j}{\sqrt{d_j}} \right\rVert^2

    is about 1/2 for random features and 0 for smooth ones. The step is still along the gradient of
    an entropy, in which :math:`s` counts as a constant; it is :math:`s^2 \sqrt F` times the
    gradient in :math:`x`, so that it scales with the embedding as the layer's output does.
    """
    metric = Metric()
    if energy == "propagation":
        scale = propagation_scale(graph, x.dtype)
        factor = scale.unsqueeze(1)
        metric = Metric(factor, factor, scale.square(), by_degree=False)
    if scale_free:
        unit = mean_square(x, graph) * math.sqrt(x.size(1))
        # Dividing all features by s measures energies in units of s².
        metric = metric._replace(unit=unit) if graph.batch is None else metric.in_units_of(unit)
    return metric


def mean_square(x: Tensor, graph: Graph) -> Tensor:
    """Return the mean square of every graph's features, in the shape of :meth:`Graph.for_nodes`.

    It is 1 where all features are zero, and where their squares are too large to be numbers.
    """
    mean = graph.mean(torch.linalg.vector_norm(x, dim=1).square() / x.size(1))
    return torch.where((mean > TINY) & (mean < torch.inf), mean, 1.0)


def propagation_threshold(width: int) -> float:
    r"""Return :math:`\sqrt F / 2`, the weight at which the step undoes one propagation.

    That holds for the energy ``"propagation"`` far below the temperature: there
    :math:`q_i = 1/\sqrt F`, so the step is
    :math:`\frac{2 \lambda}{\sqrt F} (I - \hat A) \mathbf{X}`.
    """
    return math.sqrt(width) / 2
