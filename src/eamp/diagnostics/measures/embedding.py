"""An embedding on its graph: sums that several measures share, computed once, and the measures.

The measures are documented where they are public, in :mod:`~eamp.diagnostics.measures.energies` and
:mod:`~eamp.diagnostics.measures.matrix_measures`.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from eamp.graph import Graph
from eamp.ops import energy_normaliser, squared_differences
from eamp.ops.normalisers import propagation_scale
from eamp.ops.precision import accumulate_dtype

# Squares of differences of 1e-7 of this can be held in float32.
SMALL = 1e-8
# Entries whose products are summed at a time: in float64 they fit into a processor's cache.
BLOCK = 2**17


class Embedding:
    """Features ``x``, ``[n, F]``, and the graph on which they live, if there is one.

    Every sum over edges and every matrix product is computed at its first use and kept. Each
    measure is a 0-dimensional tensor of ``dtype``.

    Args:
        x: the features.
        graph: the graph, needed by energies.
        dtype: of the sums over edges. In float32 energies are exact to about 1e-6 of their value,
            or to 1e-14 where neighbours differ by less than float32 can hold. Products of
            matrices are always in float64, because singular values are roots of theirs.
    """

    def __init__(
        self, x: Tensor, graph: Graph | None = None, dtype: torch.dtype = torch.float64
    ) -> None:
        self.x, self._graph, self.dtype = x, graph, dtype

    @property
    def on_graph(self) -> bool:
        """Whether there is a graph."""
        return self._graph is not None

    @property
    def graph(self) -> Graph:
        """The graph, for measures that need one."""
        assert self._graph is not None, "energies are measured on graphs only"
        return self._graph

    @cached_property
    def column_sizes(self) -> Tensor:
        """The largest absolute value of every column."""
        x = self.x.detach()
        return torch.maximum(x.amax(0), -x.amin(0)) if x.numel() else x.new_zeros(1)

    @cached_property
    def largest(self) -> float:
        """The largest absolute value of all entries, on all parts of the graph."""
        sizes = self.column_sizes.double()
        return float(sizes.amax() if self._graph is None else self._graph.largest(sizes))

    @cached_property
    def unit(self) -> float:
        """The largest absolute value if its square might underflow or overflow, or else 1."""
        ordinary = SMALL < self.largest < 1 / SMALL
        return 1.0 if ordinary or self.largest == 0 else self.largest

    @property
    def squared_unit(self) -> float:
        """The square of :attr:`unit`; infinite if it overflows."""
        return self.unit * self.unit

    @cached_property
    def scaled(self) -> Tensor:
        """The features over :attr:`unit`, so that no square underflows or overflows."""
        return self.over_unit(self.x.to(self.dtype))

    def over_unit(self, x: Tensor) -> Tensor:
        """Return some of the features over :attr:`unit`."""
        return x if self.unit == 1 else x / self.unit

    @cached_property
    def squared_rows(self) -> Tensor:
        """‖x_i‖² of the scaled features."""
        return torch.linalg.vector_norm(self.scaled, dim=1).double().square()

    @cached_property
    def differences(self) -> Tensor:
        """Σ_j a_ij ‖x_i − x_j‖² of the scaled features."""
        return squared_differences(self.scaled, self.graph).double()

    @cached_property
    def normalised_differences(self) -> Tensor:
        """The same for x_i / sqrt(1 + k_i)."""
        factors = propagation_scale(self.graph, self.dtype)
        return squared_differences(self.scaled * factors.unsqueeze(1), self.graph).double()

    @cached_property
    def node_energies(self) -> Tensor:
        """E_i = C_i/2 Σ_j a_ij ‖x_i − x_j‖² of the features themselves."""
        like = self.differences.new_empty(0, self.x.size(1))
        return energy_normaliser(like, self.graph) * (self.squared_unit / 2) * self.differences

    @cached_property
    def moments(self) -> tuple[Tensor, Tensor]:
        """The mean of every scaled column, ``[F]``, and products of centred columns, ``[F, F]``."""
        size, width = self.scaled.shape
        start = self.scaled.mean(0).double()  # near the means, which are then corrected
        total, products = start.new_zeros(width), start.new_zeros(width, width)
        for block in self.scaled.split(max(1, BLOCK // max(1, width))):
            centred = block - start  # in float64, because the means are
            total, products = total + centred.sum(0), products + gram_matrix(centred)
        rest = total / size
        return start + rest, products - size * rest.outer(rest)

    @cached_property
    def singular_values(self) -> Tensor:
        """The singular values of the scaled features, exact to 1e-8 of the largest.

        They come from the smaller Gram matrix, which costs much less than a decomposition of the
        features. The Gram matrix of tall ones is the sum of two that lose no digits: those of the
        centred columns and of their means.
        """
        if self.x.size(0) > self.x.size(1):
            means, products = self.moments
            gram = products + self.x.size(0) * means.outer(means)
        else:
            gram = gram_matrix(self.over_unit(self.x.double()).T)
        if gram.numel() == 0 or not bool(gram.isfinite().all()):
            return gram.new_full((max(len(gram), 1),), torch.nan)
        return torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()

    def energy(self) -> Tensor:
        """Return the mean energy of a node."""
        return self.graph.total(self.node_energies) / self.graph.total_nodes

    def entropy(self, temperature: float) -> Tensor:
        """Return S = Σ_i (E_i/T) exp(−E_i/T)."""
        ratio = self.node_energies / temperature
        return self.graph.total(ratio * (-ratio).exp())

    def rusch_energy(self) -> Tensor:
        """Return the energy without normalisation."""
        return self.squared_unit * self.graph.total(self.differences) / self.graph.total_nodes

    def laplacian_energy(self) -> Tensor:
        """Return the energy under the normalised Laplacian."""
        return self.squared_unit * self.graph.total(self.normalised_differences) / 2

    def relative_energy(self) -> Tensor:
        """Return the share of the embedding that differs across an edge."""
        weighted_norm = self.graph.total(self.graph.degree * self.squared_rows)
        return self.graph.total(self.differences) / 2 / weighted_norm

    def rayleigh_quotient(self) -> Tensor:
        """Return the energy under the normalised Laplacian, over the squared norm."""
        total = self.graph.total(self.squared_rows)
        return self.graph.total(self.normalised_differences) / 2 / total

    def norm(self) -> Tensor:
        """Return the root mean square of the entries."""
        if not 0 < self.largest < math.inf:
            return self.x.new_tensor(self.largest, dtype=torch.float64)
        return self.unit * (self.squared_rows.sum() / self.x.numel()).sqrt()

    def dead_units(self) -> Tensor:
        """Return the share of columns that are exactly zero."""
        return (self.column_sizes == 0).double().mean()

    def effective_rank(self) -> Tensor:
        """Return the exponential of the entropy of the singular values."""
        values = self.singular_values
        return torch.special.entr(values / values.sum()).sum().exp()

    def numerical_rank(self) -> Tensor:
        """Return the squared norm over the largest squared singular value."""
        values = self.singular_values
        return (values / values.max()).square().sum()

    def rank_one_distance(self) -> Tensor:
        """Return the share of the nuclear norm outside of the strongest direction."""
        values = self.singular_values
        return 1 - values.max() / values.sum()

    def matrix_rank(self, tolerance: float | None = None) -> Tensor:
        """Return the number of singular values above ``tolerance`` times the largest."""
        if tolerance is None:
            tolerance = max(self.x.shape) * torch.finfo(torch.float32).eps
        values = self.singular_values
        largest = values.max()
        rank = (values > tolerance * largest).double().sum()
        return torch.where(largest.isnan(), largest, rank)

    def column_correlation(self) -> Tensor:
        """Return the mean absolute correlation of two columns that are not constant."""
        means, products = self.moments
        length = products.diagonal().sqrt()
        columns = (length.square() + self.x.size(0) * means.square()).sqrt()
        # Rounding leaves a constant column of size 1 with differences of about 1e-16 per row.
        varying = length > 1e-12 * columns
        count = int(varying.sum())
        if count < 2 or not bool(length.isfinite().all()):
            return products.new_tensor(torch.nan)
        unit = torch.where(varying, 1 / length, 0.0)
        total = (unit.unsqueeze(1) * products * unit).abs().sum()
        return (total - count) / (count * (count - 1))


def gram_matrix(x: Tensor) -> Tensor:
    """Return XᵀX."""
    if x.requires_grad or not x.is_cpu:
        return x.T @ x
    rows = x.numpy()
    return torch.from_numpy(rows.T @ rows)  # NumPy computes one half of the symmetric matrix


def rescaled(x: Tensor) -> Tensor:
    """Return ``x`` in float64, up to a factor with which no square underflows or overflows."""
    return Embedding(x).scaled


def embedding_of(x: Any, graph: Graph | None) -> Embedding | None:
    """Return a layer's input or output as an embedding; ``None`` if it is no matrix.

    Its sums over edges are in the precision of ``x``: a ratio of two of them needs no more digits
    than the embedding itself has.
    """
    if not isinstance(x, Tensor) or x.dim() != 2:
        return None
    return Embedding(x.detach(), graph, dtype=accumulate_dtype(x))
