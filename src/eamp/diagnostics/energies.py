"""How much an embedding differs along the edges of its graph: four energies, two of which do not see its scale.

All are sums over edges from :mod:`eamp.ops`, taken in float64: an embedding that has shrunk to 1e-30 has squares that
float32 cannot hold. All return one number as a 0-dimensional tensor and can be differentiated.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eamp import ops
from eamp.functional import energy_of, prepare
from eamp.graph import CSR, Adjacency
from eamp.ops.part import PartCSR, not_for_parts


def mean_energy(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Mean over the nodes of the paper's energy, :math:`E = \frac{1}{n} \sum_i E_i` with the :math:`E_i` of :func:`eamp.dirichlet_energy`.

    *Tells* how far neighbours are apart, in the unit that the temperature is given in: the entropy step pushes nodes below T apart.
    *Cannot tell* smoothing from shrinking: it is quadratic in the scale of the embedding and falls a hundredfold when
    everything merely gets ten times smaller. :func:`relative_energy` does not.

    Args:
        x: features, ``[n, F]``.
        graph: an :class:`eamp.Graph`, or anything one can be made of.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> mean_energy(torch.tensor([[0.0], [1.0], [3.0]]), path)        # of 0.5, 5/(2√2) and 2
        tensor(1.4226, dtype=torch.float64)
    """
    csr, _, _ = prepare(x, graph)
    return ops.node_mean(energy_of(x.double(), csr), csr)


def rusch_energy(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Dirichlet energy as surveyed by `Rusch et al. (2023) <https://arxiv.org/abs/2303.10993>`_,
    :math:`\frac{1}{n} \sum_i \sum_{j \in N_i} a_{ij} \lVert x_i - x_j \rVert^2`.

    *Tells* the same as :func:`mean_energy` without its normalisation by degree and width, so that it can be compared with
    published curves, but not between graphs or widths. *Cannot tell* smoothing from shrinking; :func:`relative_energy` can.
    Some papers report its square root.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> rusch_energy(torch.tensor([[0.0], [1.0], [3.0]]), path)       # (1 + 5 + 4) / 3
        tensor(3.3333, dtype=torch.float64)
    """
    csr = whole_csr(x, graph)
    return ops.squared_differences(x.double(), csr).sum() / x.size(0)


def laplacian_energy(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Energy under the normalised Laplacian with self-loops, from `Cai & Wang (2020) <https://arxiv.org/abs/2006.13318>`_,
    :math:`\operatorname{tr} X^\top \tilde\Delta X = \frac12 \sum_{ij} a_{ij} \big\lVert \frac{x_i}{\sqrt{1 + k_i}} -
    \frac{x_j}{\sqrt{1 + k_j}} \big\rVert^2`.

    *Tells* how far the embedding is from where repeated graph convolution takes it: rows proportional to
    :math:`\sqrt{1 + k_i}`, not equal rows. *Cannot tell* smoothing from shrinking, and grows with the number of nodes;
    :func:`rayleigh_quotient` is the same without either.

    Example:
        >>> import torch
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> laplacian_energy(torch.tensor([[0.0], [3.0]]), pair)          # (3/√2)²
        tensor(4.5000, dtype=torch.float64)
    """
    csr = whole_csr(x, graph)
    return ops.squared_differences(degree_scaled(x.double(), csr.degree), csr).sum() / 2


def relative_energy(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Scale-free energy, :math:`\frac{\frac12 \sum_{ij} a_{ij} \lVert x_i - x_j \rVert^2}{\sum_i k_i \lVert x_i \rVert^2} \in [0, 2]`.

    It is the Rayleigh quotient of the normalised Laplacian at :math:`D^{1/2} X`: the share of the embedding that differs
    across an edge. 0 means that neighbours are equal, about 1 that they are unrelated (as independent nodes of mean zero are), 2 that
    they are opposite.

    *Tells* smoothing from shrinking: it does not change when the embedding is multiplied by a number, so if it falls, nodes
    became alike. *Cannot tell* how large the embedding is (see :func:`~eamp.diagnostics.matrix_measures.norm`), nor see collapse onto rows that
    are parallel but of different length: a graph convolution leaves lengths proportional to :math:`\sqrt{1 + k_i}`,
    which :func:`rayleigh_quotient` calls 0, and a single direction is what the effective rank is for. NaN for an embedding of zeros.

    Example:
        >>> import torch
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> relative_energy(torch.tensor([[1.0], [3.0]]), pair)           # (3 − 1)² / (1² + 3²)
        tensor(0.4000, dtype=torch.float64)
        >>> relative_energy(torch.tensor([[1e-30], [3e-30]]), pair)
        tensor(0.4000, dtype=torch.float64)
    """
    csr = whole_csr(x, graph)
    x = rescaled(x)
    return ops.squared_differences(x, csr).sum() / 2 / (csr.degree * x.square().sum(1)).sum()


def rayleigh_quotient(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Scale-free energy of graph convolutions,
    :math:`\frac{\operatorname{tr} X^\top \tilde\Delta X}{\operatorname{tr} X^\top X} \in [0, 2)`.

    The :func:`laplacian_energy` over the squared norm. 0 means that rows are proportional to :math:`\sqrt{1 + k_i}`, where repeated graph
    convolution ends; on a regular graph that is the same as equal rows.

    *Tells* smoothing from shrinking, as :func:`relative_energy` does, for layers that normalise symmetrically (GCN, SGC, APPNP);
    layers that average (SAGE, GAT) end in equal rows, which only :func:`relative_energy` calls 0 on an irregular graph.
    A diagnosis takes the smaller of the two. NaN for an embedding of zeros.

    Example:
        >>> import torch
        >>> star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
        >>> round(rayleigh_quotient(torch.tensor([[4.0], [2.0], [2.0], [2.0]]).sqrt(), star).item(), 9)
        0.0
    """
    csr = whole_csr(x, graph)
    x = rescaled(x)
    return ops.squared_differences(degree_scaled(x, csr.degree), csr).sum() / 2 / x.square().sum()


def whole_csr(x: Tensor, graph: Adjacency) -> CSR:
    """The CSR of a graph that lies in one process, over whose nodes sums are sums over all."""
    csr, _, _ = prepare(x, graph)
    if isinstance(csr, PartCSR):
        raise not_for_parts("this measure")
    return csr


def degree_scaled(x: Tensor, degree: Tensor) -> Tensor:
    """x_i / sqrt(1 + k_i)."""
    return x * (degree + 1).rsqrt().unsqueeze(1)


def rescaled(x: Tensor) -> Tensor:
    """``x`` in float64 with largest entry 1, so that no square underflows or overflows; zeros stay zeros."""
    x = x.double()
    largest = x.detach().abs().amax() if x.numel() else x.new_zeros(())
    return x / torch.where(largest > 0, largest, 1.0)
