"""Generated graphs whose labels depend on features many hops away.

Each consists of many separate graphs, and a graph trains, validates or tests as a whole, so that no
test node is near a label. The same options give the same graph on every platform; a test holds
their digests.
"""

import math

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from eamp.data.errors import DataError
from eamp.data.splits import Array, Fractions, set_masks
from eamp.data.synthetic import check_size, check_types

SHAPES = ("tree", "grid")


def chains(
    count: int = 100,
    length: int = 20,
    classes: int = 2,
    features: int = 16,
    noise: float = 0.0,
    seed: int = 0,
) -> Data:
    r"""Return separate paths whose class is written at one end, and asked for at every node.

    From `"Implicit Graph Neural Networks" <https://arxiv.org/abs/2009.06211>`_ (Gu et al., 2020).
    The first node of a chain of class c has feature c equal to 1; all other features are 0. A
    network that sees no further than *d* hops can do no better than guess at all but *d* + 1 nodes
    of a chain. Per class 60 % of the chains train, and 20 % each validate and test.

    Args:
        count: number of chains, at least 4 per class, which differ by at most one in number.
        length: nodes of a chain.
        classes: number of classes.
        features: features per node, at least one per class.
        noise: standard deviation of Gaussian noise on all features of all nodes.
        seed: seed of everything drawn.

    Example:
        >>> data = chains(count=8, length=3, features=2)
        >>> data.x[:3].tolist(), data.y[:3].tolist()
        ([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [0, 0, 0])
    """
    check_types(chains, locals())
    valid = 1 <= classes <= min(count // 4, features) and length >= 2
    if not (valid and 0 <= noise <= 1e30 and seed >= 0):
        raise DataError(
            "chains needs count >= 4 * classes, length >= 2, 1 <= classes <= features, "
            f"0 <= noise <= 1e30 and seed >= 0; got {count=}, {length=}, {classes=}, {features=}, "
            f"{noise=}, {seed=}."
        )
    check_size("chains", count * length, max(features, 2))
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(count, dtype=np.int64) % classes)
    nodes = np.arange(count * length, dtype=np.int64).reshape(count, length)
    parts = Fractions().draw(y, rng)
    x = np.zeros((count * length, features))
    x[nodes[:, 0], y] = 1
    x += noise * rng.standard_normal(x.shape)
    return assemble(x, (nodes[:, :-1], nodes[:, 1:]), np.repeat(y, length), nodes, parts)


def distance(
    graphs: int = 40,
    nodes: int = 64,
    shape: str = "tree",
    sources: int = 2,
    classes: int = 10,
    seed: int = 0,
) -> Data:
    r"""Return separate graphs whose label is the number of hops to the nearest source.

    A node-level task of `"Principal Neighbourhood Aggregation for Graph Nets"
    <https://arxiv.org/abs/2004.05718>`_ (Corso et al., 2020): the lengths of shortest paths, here
    as classes. The only feature is 1 at the sources and else 0. A network that sees no further than
    *d* hops cannot tell apart the distances above *d*. Of the graphs 60 % train, and 20 % each
    validate and test.

    Args:
        graphs: number of graphs, at least 4.
        nodes: nodes of each graph.
        shape: ``"tree"``, all trees being equally likely, or ``"grid"``, a square grid.
        sources: number of sources in each graph.
        classes: number of classes; the last one is for all distances from ``classes - 1``.
        seed: seed of everything drawn.

    Example:
        >>> data = distance(graphs=4, nodes=9, shape="grid", sources=1, classes=4)
        >>> data.x[:9, 0].reshape(3, 3).tolist()
        [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
        >>> data.y[:9].reshape(3, 3).tolist()
        [[2, 1, 2], [1, 0, 1], [2, 1, 2]]
    """
    check_types(distance, locals())
    if not (graphs >= 4 and 1 <= sources <= nodes and classes >= 2 and seed >= 0):
        raise DataError(
            "distance needs graphs >= 4, 1 <= sources <= nodes, classes >= 2 and seed >= 0; got "
            f"{graphs=}, {nodes=}, {sources=}, {classes=}, {seed=}."
        )
    if shape not in SHAPES or (shape == "grid" and math.isqrt(nodes) ** 2 != nodes):
        raise DataError(
            f"distance needs shape=tree, or shape=grid and a square number of nodes, such as 64; "
            f"got {shape=} and {nodes=}."
        )
    check_size("distance", graphs * nodes, 2)
    rng = np.random.default_rng(seed)
    members = np.arange(graphs * nodes, dtype=np.int64).reshape(graphs, nodes)
    first, second = trees(members, rng) if shape == "tree" else grids(members)
    marked = rng.permuted(members, axis=1)[:, :sources].reshape(-1)
    parts = Fractions().draw(np.zeros(graphs, dtype=np.int64), rng)
    x = np.zeros((graphs * nodes, 1))
    x[marked] = 1
    y = np.full(graphs * nodes, min(classes, nodes) - 1)
    y[marked] = 0
    for hops in range(1, min(classes, nodes) - 1):  # one step of breadth-first search each
        for near, far in ((first, second), (second, first)):
            reached = far[y[near] == hops - 1]
            y[reached] = np.minimum(y[reached], hops)
    return assemble(x, (first, second), y, members, parts)


def trees(members: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the edges of a random tree on each row of ``members``.

    From Aldous, "The random walk construction of uniform spanning trees and uniform labelled
    trees", 1990: node k is joined to node min(U, k - 1), with U uniform among all nodes. With its
    nodes in random order, every tree would be equally likely.
    """
    graphs, nodes = members.shape
    drawn = rng.integers(nodes, size=(graphs, nodes - 1))
    parents = np.minimum(drawn, np.arange(nodes - 1))
    return np.take_along_axis(members, parents, axis=1), members[:, 1:]


def grids(members: Array) -> tuple[Array, Array]:
    """Return the edges of a square grid on each row of ``members``."""
    side = math.isqrt(members.shape[1])
    square = members.reshape(-1, side, side)
    along, down = square[:, :, :-1].reshape(-1), square[:, :-1].reshape(-1)
    return np.concatenate([along, down]), np.concatenate([along + 1, down + side])


def assemble(
    x: Array, pairs: tuple[Array, Array], y: Array, members: Array, parts: tuple[Array, ...]
) -> Data:
    """Return the graph, with the masks of three ``parts`` of the rows of ``members``."""
    edges = torch.from_numpy(np.stack([each.reshape(-1) for each in pairs]))
    data = Data(torch.from_numpy(x.astype(np.float32)), to_undirected(edges, num_nodes=len(x)))
    data.y = torch.from_numpy(y.astype(np.int64))
    set_masks(data, [members[part].reshape(-1) for part in parts])
    return data
