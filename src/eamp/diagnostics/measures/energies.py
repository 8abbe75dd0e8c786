"""Five energies: how much an embedding differs along the edges of its graph.

All take features ``x``, ``[n, F]``, and an :class:`eamp.Graph` or anything one can be made of. All
return one number as a 0-dimensional float64 tensor, through which gradients flow. They are computed
in float64 on an embedding of largest entry 1, because one of size 1e-30 has squares that float32
cannot hold.
"""

from torch import Tensor

from eamp.diagnostics.measures.embedding import Embedding
from eamp.graph import Adjacency, graph_for


def mean_energy(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Return the mean over the nodes of :func:`eamp.dirichlet_energy`, the paper's energy.

    .. math:: E = \frac{1}{n} \sum_i E_i

    It measures how far neighbours are apart, in the unit of the temperature: the entropy step
    pushes nodes with energy below T apart. It is quadratic in the scale of the embedding, so it
    falls both when neighbours become alike and when everything shrinks; :func:`relative_energy`
    falls in the first case only.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> mean_energy(torch.tensor([[0.0], [1.0], [3.0]]), path)  # of 0.5, 5/(2√2) and 2
        tensor(1.4226, dtype=torch.float64)
    """
    return Embedding(x, graph_for(x, graph)).energy()


def rusch_energy(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Return the Dirichlet energy of the survey by Rusch et al. (2023).

    .. math:: \frac{1}{n} \sum_i \sum_{j \in N_i} a_{ij} \lVert x_i - x_j \rVert^2

    It is :func:`mean_energy` without normalisation by degree and width. Use it to compare with
    published curves, but not between graphs or widths. Some papers report its square root.
    Reference: https://arxiv.org/abs/2303.10993.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> rusch_energy(torch.tensor([[0.0], [1.0], [3.0]]), path)  # (1 + 5 + 4) / 3
        tensor(3.3333, dtype=torch.float64)
    """
    return Embedding(x, graph_for(x, graph)).rusch_energy()


def laplacian_energy(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Return the energy under the normalised Laplacian with self-loops, of Cai & Wang (2020).

    .. math::
        \operatorname{tr} X^\top \tilde\Delta X = \frac12 \sum_{ij} a_{ij}
        \Big\lVert \frac{x_i}{\sqrt{1 + k_i}} - \frac{x_j}{\sqrt{1 + k_j}} \Big\rVert^2

    It measures the distance from the limit of repeated graph convolution, which is not equal rows
    but rows proportional to :math:`\sqrt{1 + k_i}`. It grows with the scale of the embedding and
    with the number of nodes; :func:`rayleigh_quotient` depends on neither.
    Reference: https://arxiv.org/abs/2006.13318.

    Example:
        >>> import torch
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> laplacian_energy(torch.tensor([[0.0], [3.0]]), pair)  # (3/√2)²
        tensor(4.5000, dtype=torch.float64)
    """
    return Embedding(x, graph_for(x, graph)).laplacian_energy()


def relative_energy(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Return the share of the embedding that differs across an edge, between 0 and 2.

    .. math::
        \frac{\frac12 \sum_{ij} a_{ij} \lVert x_i - x_j \rVert^2}{\sum_i k_i \lVert x_i \rVert^2}

    It is the Rayleigh quotient of the normalised Laplacian at :math:`D^{1/2} X`. 0 means that
    neighbours are equal, about 1 that they are unrelated (like independent nodes of mean zero),
    and 2 that they are opposite. It does not depend on the scale of the embedding, so a fall means
    that neighbours became alike.

    It does not detect collapse onto rows that are parallel but of different length. Graph
    convolutions end in rows of length :math:`\sqrt{1 + k_i}`, which :func:`rayleigh_quotient`
    detects; the effective rank detects a single direction. NaN for an embedding of zeros.

    Example:
        >>> import torch
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> relative_energy(torch.tensor([[1.0], [3.0]]), pair)  # (3 − 1)² / (1² + 3²)
        tensor(0.4000, dtype=torch.float64)
        >>> relative_energy(torch.tensor([[1e-30], [3e-30]]), pair)
        tensor(0.4000, dtype=torch.float64)
    """
    return Embedding(x, graph_for(x, graph)).relative_energy()


def rayleigh_quotient(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Return :func:`laplacian_energy` over the squared norm, at least 0 and below 2.

    .. math:: \frac{\operatorname{tr} X^\top \tilde\Delta X}{\operatorname{tr} X^\top X}

    0 means that rows are proportional to :math:`\sqrt{1 + k_i}`, the limit of repeated graph
    convolution. Like :func:`relative_energy` it does not depend on the scale, but it is made for
    layers with symmetric normalisation (GCN, SGC, APPNP): on an irregular graph the equal rows in
    which averaging layers (SAGE, GAT) end have a positive quotient. A diagnosis takes the smaller
    of the two. NaN for an embedding of zeros.

    Example:
        >>> import torch
        >>> star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
        >>> x = torch.tensor([[4.0], [2.0], [2.0], [2.0]]).sqrt()
        >>> round(rayleigh_quotient(x, star).item(), 9)
        0.0
    """
    return Embedding(x, graph_for(x, graph)).rayleigh_quotient()
