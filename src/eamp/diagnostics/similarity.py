"""Angles and distances between nodes: are neighbours alike, are remote nodes, are classes apart?"""

from __future__ import annotations

import torch
from torch import Tensor

from eamp import ops
from eamp.diagnostics.energies import rescaled
from eamp.graph import Adjacency, Graph, as_graph, graph_for

REMOTE_HOPS = 8  # "remote" in Chen et al. (2020): eight or more steps away
SAMPLED_SOURCES = 64  # nodes from which remote nodes are looked for
SAMPLED_NODES = 1000  # nodes between which class distances are taken: 8 MB of distances
SEED = 0  # of both samples, so that the same graph gives the same numbers

Remote = tuple[Tensor, Tensor]


def mad(x: Tensor, graph: Adjacency) -> Tensor:
    r"""Mean average distance, after `Chen et al. (2020) <https://arxiv.org/abs/1909.03211>`_: the cosine distance
    :math:`1 - \cos(x_i, x_j)`, averaged over the neighbours of every node, then over the nodes that have neighbours.

    Computed as :math:`\frac12 \lVert u_i - u_j \rVert^2` of the rows divided by their lengths; so a row of zeros is at
    distance 0 from another and 1/2 from anything else. The original leaves pairs at distance 0 out of the average; here they count,
    or else a graph that has partly collapsed would look like the part that has not.

    *Tells* whether neighbours point the same way, whatever the length of their rows; 0 is collapse, 1 unrelated directions.
    *Cannot tell* nodes that point the same way but differ in length from nodes that are equal, and in one dimension sees only signs.
    Use :func:`~eamp.diagnostics.energies.relative_energy` for both.

    Args:
        x: features, ``[n, F]``.
        graph: an :class:`eamp.Graph`, or anything one can be made of.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> mad(torch.tensor([[1.0, 0.0], [5.0, 0.0], [0.0, 2.0]]), path)     # of 0, 1/2 and 1
        tensor(0.5000, dtype=torch.float64)
    """
    graph = graph_for(x, graph)
    graph.require_all_rows("the mean average distance")
    # D(u)_i / k_i = mean of 2 (1 − cos), weighted by the edges
    mean_distance = ops.squared_differences(directions(x), graph) / 2 / graph.degree
    return mean_distance[graph.degree > 0].mean()


def mad_gap(
    x: Tensor,
    graph: Adjacency,
    remote_hops: int = REMOTE_HOPS,
    num_sources: int = SAMPLED_SOURCES,
    seed: int = SEED,
) -> Tensor:
    r"""Cosine distance to remote nodes less cosine distance to neighbours, after `Chen et al. (2020) <https://arxiv.org/abs/1909.03211>`_.

    Remote are the nodes at least ``remote_hops`` steps away, or not reachable at all. To stay cheap on large graphs they are looked
    for from a sample of ``num_sources`` nodes only, drawn once with a fixed seed; on smaller graphs from every node.

    *Tells* whether smoothing is useful or harmful: large where neighbours are alike and distant nodes are not, near 0 where everything
    is alike. *Cannot tell* collapse (everything alike) from noise (nothing alike), which both give 0: read it beside :func:`mad`.
    NaN where no node is remote, as in graphs of small diameter: lower ``remote_hops`` there.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> mad_gap(x, path, remote_hops=2)               # remote: always 1; neighbours: 0, 1/2, 1/2, 0
        tensor(0.7500, dtype=torch.float64)
    """
    sources, is_remote = remote_nodes(as_graph(graph, x.size(0)), remote_hops, num_sources, seed)
    unit = directions(x)
    length = (unit * unit).sum(1)  # 1, or 0 for a row of zeros
    count = is_remote.sum(0)
    # ½‖u_i − u_j‖² = ½‖u_i‖² + ½‖u_j‖² − u_i·u_j, averaged over the remote nodes j of source i
    dot = (unit[sources] * (is_remote.T @ unit)).sum(1)
    distance = length[sources] / 2 + ((is_remote.T @ length) / 2 - dot) / count
    return distance[count > 0].mean() - mad(x, graph)


def group_distance_ratio(x: Tensor, labels: Tensor, seed: int = SEED) -> Tensor:
    r"""Mean distance between nodes of different classes over mean distance between nodes of one class, after
    `Zhou et al. (2020) <https://arxiv.org/abs/2006.06972>`_.

    Both means give every class, or pair of classes, the same say. A node is not compared with itself, and the original's factor
    C/(C − 1) is left out, so that 1 means that the labels say nothing about distances. Negative labels (unlabelled nodes) are left out;
    above a thousand nodes a sample with a fixed seed is taken.

    *Tells* whether the embedding separates the classes, whatever its scale. *Cannot tell* anything without labels, nor
    whether a decoder could use what is left: a ratio near 1 may still be separable, along few directions.
    NaN with fewer than two classes, or no class with two nodes.

    Args:
        x: features, ``[n, F]``.
        labels: ``[n]``, the class of each node.
        seed: of the sample.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0], [1.0], [10.0], [11.0]])
        >>> round(group_distance_ratio(x, torch.tensor([0, 0, 1, 1])).item(), 9)      # (10 + 11 + 9 + 10)/4 over 1
        10.0
    """
    labelled = (labels >= 0).nonzero().squeeze(1)
    if labelled.numel() > SAMPLED_NODES:
        labelled = labelled[sample(labelled.numel(), SAMPLED_NODES, seed).to(labelled.device)]
    classes, label = labels[labelled].unique(return_inverse=True)
    x = rescaled(x[labelled])
    x = x - x.mean(0)  # distances stay, and survive the product that cdist expands them into
    member = (label.unsqueeze(1) == torch.arange(classes.numel(), device=label.device)).double()
    total = member.T @ torch.cdist(x, x) @ member
    size = member.sum(0)
    own = torch.eye(classes.numel(), dtype=torch.bool, device=x.device)
    pairs = size.outer(size) - torch.diag(size)
    mean_distance = total / pairs  # NaN for a class of one node with itself
    return mean_distance[~own].mean() / mean_distance.diagonal()[size > 1].mean()


def directions(x: Tensor) -> Tensor:
    """Rows divided by their lengths, in float64; rows of zeros stay zeros."""
    return torch.nn.functional.normalize(rescaled(x), dim=1, eps=torch.finfo(torch.float64).tiny)


def sample(size: int, count: int, seed: int) -> Tensor:
    """``count`` of ``size`` indices, ascending; a generator of its own leaves torch's random numbers as they were."""
    return torch.randperm(size, generator=torch.Generator().manual_seed(seed))[:count].sort().values


def remote_nodes(graph: Graph, hops: int, num_sources: int, seed: int) -> Remote:
    """Sampled sources ``[s]``, and a 0/1 matrix ``[n, s]`` of the nodes at least ``hops`` steps from each; once per graph."""

    def compute() -> Remote:
        sources = sample(graph.num_nodes, num_sources, seed).to(graph.device)
        return sources, 1 - reached(graph, sources, hops - 1)

    return graph.remember(("remote_nodes", hops, num_sources, seed), compute)


def reached(graph: Graph, sources: Tensor, hops: int) -> Tensor:
    """0/1 matrix ``[n, s]`` of the nodes at most ``hops`` steps from each source."""
    ones = torch.ones_like(graph.degree)
    within = ones.new_zeros(ones.numel(), sources.numel())
    within[sources, torch.arange(sources.numel(), device=sources.device)] = 1
    for _ in range(hops):
        within = (ops.neighbour_sums(ones, within, ones, graph, self_loops=True) > 0).double()
    return within
