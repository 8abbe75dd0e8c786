"""The Laplacian of a graph, and its pseudo-inverse."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg, splu

from eamp.graph import Graph

Array = np.ndarray[Any, Any]
TOLERANCE = 1e-4  # of a residual: far below the error of the random projections
STEPS = 400  # of conjugate gradients; random graphs of a million edges need about 20
MESH_DEGREE = 3  # edges per node: planar graphs have no more


class Laplacian(NamedTuple):
    """The Laplacian L = D − A, its edges i < j with their weights, and the component of nodes."""

    matrix: csr_array
    source: Array
    target: Array
    weight: Array
    component: Array
    num_components: int

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.matrix.shape[0])


def laplacian_of(graph: Graph) -> Laplacian:
    """Return the Laplacian of a graph."""
    row, col = graph.edge_index.cpu().numpy()
    given = graph.edge_weight
    weight = np.ones(row.size) if given is None else given.double().cpu().numpy()
    kept = weight > 0  # an edge of weight 0 conducts nothing
    row, col, weight = row[kept], col[kept], weight[kept]
    size = graph.num_nodes
    adjacency = csr_array((weight, (row, col)), shape=(size, size))
    matrix = csr_array(diags_array(adjacency.sum(1)) - adjacency)
    count, component = connected_components(adjacency, directed=False)
    once = row < col
    return Laplacian(matrix, row[once], col[once], weight[once], component, int(count))


def centred(laplacian: Laplacian, x: Array) -> Array:
    """Subtract the mean of every component, which L cannot see."""
    size = np.bincount(laplacian.component, minlength=laplacian.num_components)
    total = np.zeros((laplacian.num_components, *x.shape[1:]))
    np.add.at(total, laplacian.component, x)
    return x - (total / size.reshape(-1, *(1,) * (x.ndim - 1)))[laplacian.component]


def pseudo_inverse(laplacian: Laplacian) -> Array:
    """Return L⁺ as a dense matrix."""
    return np.linalg.pinv(laplacian.matrix.toarray(), hermitian=True)


class Solver:
    """Computes L⁺B, by conjugate gradients or, on meshes, by a sparse factorisation.

    Conjugate gradients need few steps on graphs in which every node is near, where a factorisation
    would fill up. On meshes, paths and roads it is the other way round.
    """

    def __init__(self, laplacian: Laplacian) -> None:
        self.laplacian = laplacian
        degree = laplacian.matrix.diagonal()
        self.scale = np.where(degree > 0, 1 / np.where(degree > 0, degree, 1), 0)
        self.factorised: Any = None

    def __call__(self, right: Array, tolerance: float = TOLERANCE) -> Array:
        """Return L⁺ ``right`` for every column of ``right``."""
        laplacian = self.laplacian
        right, found, slow = centred(laplacian, right), np.zeros(right.shape), 0
        for k, column in enumerate(right.T):
            if self.factorised is None:
                found[:, k], left = self.conjugate_gradients(column, tolerance)
                if not left:
                    continue
                if laplacian.weight.size > MESH_DEGREE * laplacian.num_nodes:
                    slow += 1
                    continue
                self.factorise()
            found[self.kept, k] = self.factorised.solve(column[self.kept])
        if slow:
            warnings.warn(
                f"{slow} of {right.shape[1]} systems were not solved to {tolerance:g} in {STEPS} "
                "steps: the graph has very long paths, and resistances across them are too small.",
                stacklevel=3,
            )
        return centred(laplacian, found)

    def conjugate_gradients(self, column: Array, tolerance: float) -> tuple[Array, bool]:
        """Return the solution, and whether more steps would be needed."""
        matrix = self.laplacian.matrix
        jacobi = LinearOperator(matrix.shape, matvec=lambda x: self.scale * x.ravel())
        x, status = cg(matrix, column, rtol=tolerance, maxiter=STEPS, M=jacobi)
        return x, status > 0

    def factorise(self) -> None:
        """Factorise L without the first node of every component, where the solution is 0."""
        first = np.unique(self.laplacian.component, return_index=True)[1]
        self.kept = np.setdiff1d(np.arange(self.laplacian.num_nodes), first)
        inner = csc_array(self.laplacian.matrix[self.kept][:, self.kept])
        self.factorised = splu(
            inner,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
