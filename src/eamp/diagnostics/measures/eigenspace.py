"""The share of an embedding that lies in the slowest eigenvectors of graph convolution."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from eamp.diagnostics.measures.embedding import rescaled
from eamp.graph import Adjacency, Graph, graph_for
from eamp.graph.components import components
from eamp.nn.conv.gcn_conv import gcn_propagate

SEED = 0  # of the vector at which the search for eigenvectors starts


def eigenspace_share(x: Tensor, graph: Adjacency, k: int = 8) -> Tensor:
    r"""Return the share of the squared norm in the leading eigenvectors of :math:`\hat{A}`.

    .. math:: \lVert V V^\top X \rVert_F^2 / \lVert X \rVert_F^2

    The columns of V are the eigenvectors of the matrix :math:`\hat{A}` of graph convolution whose
    eigenvalue is 1, one for each connected component, and the ``k`` next ones. Repeated convolution
    keeps them longest. The share tells whether an embedding consists of slow waves over the graph
    though its energy is not yet 0. It cannot tell harmful from useful smoothness: classes that are
    communities lie in the same space. It says little about layers that aggregate otherwise. NaN
    for zeros and for non-finite values.

    The eigenvectors are found once per graph with SciPy's ``eigsh``. This takes some hundred passes
    over the edges, so a probe measures the share on request only.

    Args:
        x: features, ``[n, F]``.
        graph: the graph.
        k: the number of eigenvectors with eigenvalues below 1.

    Example:
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> eigenspace_share(torch.tensor([[1.0], [3.0]]), pair, k=0)  # (4/√2)² / (1 + 9)
        tensor(0.8000, dtype=torch.float64)
    """
    graph = graph_for(x, graph)
    graph.require_all_rows("the share of leading eigenvectors")
    x = rescaled(x)
    inside = on_components(x, graph).square().sum()
    if k > 0:
        vectors = graph.remember((eigenspace_share, k), lambda: next_eigenvectors(graph, k))
        inside = inside + (vectors.T @ x).square().sum()
    return inside / x.square().sum()


def on_components(x: Tensor, graph: Graph) -> Tensor:
    """Return the coefficients ``[c, F]`` of the eigenvectors with eigenvalue 1."""
    component, vector = graph.remember(on_components, lambda: component_vectors(graph))
    out = x.new_zeros(int(component.max()) + 1, x.size(1))
    return out.index_add_(0, component, x * vector.unsqueeze(1))


def component_vectors(graph: Graph) -> tuple[Tensor, Tensor]:
    """Return the component of every node, and its entry sqrt(1 + k_i) in a vector of length 1."""
    component = components(graph)
    square = (graph.degree + 1).double()
    total = square.new_zeros(int(component.max()) + 1).index_add_(0, component, square)
    return component, (square / total[component]).sqrt()


def next_eigenvectors(graph: Graph, k: int) -> Tensor:
    """Return the ``k`` eigenvectors ``[n, k]`` with the highest eigenvalues below 1."""
    # slow to load, and needed here only
    from scipy.sparse.linalg import LinearOperator, eigsh

    component, vector = graph.remember(on_components, lambda: component_vectors(graph))

    def multiply(z: Any) -> Any:
        x = torch.as_tensor(z, dtype=torch.float64, device=graph.device).reshape(-1, 1)
        # Eigenvalue 1 becomes −1, so that these vectors come last.
        kept = on_components(x, graph)[component] * vector.unsqueeze(1)
        return (gcn_propagate(x, graph) - 2 * kept).cpu().numpy().reshape(z.shape)

    n = graph.num_nodes
    rest = n - int(component.max()) - 1
    k = min(k, rest)
    if k == 0:
        return torch.zeros(n, 0, dtype=torch.float64, device=graph.device)
    if n <= 4 * k + 20:  # too small for Lanczos, which needs some room
        values, vectors = np.linalg.eigh(np.stack([multiply(row) for row in np.eye(n)]))
        vectors = vectors[:, np.argsort(values)[n - k :]]
    else:
        start = np.random.default_rng(SEED).standard_normal(n)
        operator = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
        _, vectors = eigsh(operator, k=k, which="LA", v0=start)
    return torch.as_tensor(np.ascontiguousarray(vectors), device=graph.device)
