"""Angles between neighbours and remote nodes, and distances between classes.

All take features ``x``, ``[n, F]``, and return a 0-dimensional float64 tensor.
"""

import torch
from torch import Tensor

from eamp import ops
from eamp.diagnostics.measures.embedding import rescaled
from eamp.graph import Adjacency, Graph, as_graph, graph_for

REMOTE_HOPS = 8  # the definition of "remote" by Chen et al. (2020)
SAMPLED_SOURCES = 64  # nodes whose remote nodes are searched, at REMOTE_HOPS passes over the edges
SAMPLED_NODES = 1000  # nodes whose pairwise distances are taken, 8 MB in float64
SEED = 0  # of both samples, so that the same graph gives the same numbers


def mad(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Return MAD, the mean average cosine distance between neighbours, of Chen et al. (2020).

    The distance :math:`1 - \cos(x_i, x_j)` is averaged over the neighbours of every node, and then
    over the nodes that have neighbours. 0 means that neighbours point in the same direction, 1
    that their directions are unrelated. A row of zeros is at distance 0 from another one and 1/2
    from any other row. Unlike the original, pairs at distance 0 count, because otherwise a partly
    collapsed graph would look like the part that has not collapsed.

    MAD does not see the length of rows, and in one dimension it sees only their sign;
    :func:`~eamp.diagnostics.relative_energy` sees both. Reference:
    https://arxiv.org/abs/1909.03211.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> mad(torch.tensor([[1.0, 0.0], [5.0, 0.0], [0.0, 2.0]]), path)  # of 0, 1/2 and 1
        tensor(0.5000, dtype=torch.float64)
    """
    graph = graph_for(x, graph)
    # For rows u of length 1: 1 − cos(u_i, u_j) = ½‖u_i − u_j‖²
    distance = ops.squared_differences(unit_rows(x), graph) / 2 / graph.degree.clamp(min=1e-300)
    return graph.total(distance) / graph.total((graph.degree > 0).double())


def mad_gap(
    x: Tensor,
    graph: Adjacency,
    remote_hops: int = REMOTE_HOPS,
    num_sources: int = SAMPLED_SOURCES,
    seed: int = SEED,
) -> Tensor:
    r"""Return MADGap: cosine distance to remote nodes minus :func:`mad`, of Chen et al. (2020).

    It is large if neighbours are alike and remote nodes are not, the useful kind of smoothing. It
    is near 0 both if everything is alike and if nothing is, so read it together with :func:`mad`.
    NaN if no node is remote, as in graphs of small diameter; lower ``remote_hops`` for these.

    Remote nodes are at least ``remote_hops`` steps away or unreachable. They are searched from a
    sample of ``num_sources`` nodes, drawn with ``seed``.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> mad_gap(x, path, remote_hops=2)  # remote: always 1; neighbours: 0, 1/2, 1/2, 0
        tensor(0.7500, dtype=torch.float64)
    """
    sources, is_remote = remote_nodes(as_graph(graph, x.size(0)), remote_hops, num_sources, seed)
    unit = unit_rows(x)
    length = (unit * unit).sum(1)  # 1, or 0 for a row of zeros
    count = is_remote.sum(0)
    # ½‖u_i − u_j‖² = ½‖u_i‖² + ½‖u_j‖² − u_i·u_j, averaged over the remote nodes j of source i
    dot = (unit[sources] * (is_remote.T @ unit)).sum(1)
    distance = length[sources] / 2 + ((is_remote.T @ length) / 2 - dot) / count
    return distance[count > 0].mean() - mad(x, graph)


def group_distance_ratio(x: Tensor, labels: Tensor, seed: int = SEED) -> Tensor:
    r"""Return the mean distance between classes over that within classes, of Zhou et al. (2020).

    It measures how well the embedding separates the classes, whatever its scale. Both means weigh
    every class, or pair of classes, equally. A node is not compared with itself, and the factor
    C/(C − 1) of the original is left out, so that 1 means that labels and distances are unrelated.
    NaN with fewer than two classes, or without a class of two nodes. Nodes with negative labels
    are left out; of more than a thousand others a sample is drawn with ``seed``. Reference:
    https://arxiv.org/abs/2006.06972.

    Example:
        >>> x, labels = torch.tensor([[0.0], [1.0], [10.0], [11.0]]), torch.tensor([0, 0, 1, 1])
        >>> round(group_distance_ratio(x, labels).item(), 9)  # (10 + 11 + 9 + 10)/4 over 1
        10.0
    """
    labelled = (labels >= 0).nonzero().squeeze(1)
    if labelled.numel() > SAMPLED_NODES:
        chosen = sample_indices(labelled.numel(), SAMPLED_NODES, seed)
        labelled = labelled[chosen.to(labelled.device)]
    classes, label = labels[labelled].unique(return_inverse=True)
    x = rescaled(x[labelled])
    x = x - x.mean(0)  # keeps the precision of the matrix product by which cdist finds distances
    member = (label.unsqueeze(1) == torch.arange(classes.numel(), device=label.device)).double()
    total = member.T @ torch.cdist(x, x) @ member
    size = member.sum(0)
    own = torch.eye(classes.numel(), dtype=torch.bool, device=x.device)
    pairs = size.outer(size) - torch.diag(size)
    mean_distance = total / pairs  # NaN for a class of one node with itself
    return mean_distance[~own].mean() / mean_distance.diagonal()[size > 1].mean()


def unit_rows(x: Tensor) -> Tensor:
    """Return the rows divided by their lengths, in float64; rows of zeros stay zeros."""
    return torch.nn.functional.normalize(rescaled(x), dim=1, eps=torch.finfo(torch.float64).tiny)


def sample_indices(size: int, count: int, seed: int) -> Tensor:
    """Return ``count`` of ``size`` indices, sorted, without touching torch's global generator."""
    return torch.randperm(size, generator=torch.Generator().manual_seed(seed))[:count].sort().values


def remote_nodes(graph: Graph, hops: int, num_sources: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return sampled sources ``[s]`` and a 0/1 matrix ``[n, s]`` of the nodes remote from each."""

    def compute() -> tuple[Tensor, Tensor]:
        sources = sample_indices(graph.num_nodes, num_sources, seed).to(graph.device)
        return sources, 1 - within_hops(graph, sources, hops - 1)

    graph.require_all_rows("the distance to remote nodes")
    return graph.remember((remote_nodes, hops, num_sources, seed), compute)


def within_hops(graph: Graph, sources: Tensor, hops: int) -> Tensor:
    """Return a 0/1 matrix ``[n, s]`` of the nodes at most ``hops`` steps from each source."""
    ones = torch.ones_like(graph.degree)
    within = ones.new_zeros(ones.numel(), sources.numel())
    within[sources, torch.arange(sources.numel(), device=sources.device)] = 1
    for _ in range(hops):
        within = (ops.neighbour_sums(ones, within, ones, graph, self_loops=True) > 0).double()
    return within
