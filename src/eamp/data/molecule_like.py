"""``wiener``: generated graphs in the shape of molecules, with a number to predict."""

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from eamp.data.digests import digest_of
from eamp.data.errors import DataError
from eamp.data.graph_sets import GraphSet, split_arrays
from eamp.data.splits import Array
from eamp.data.synthetic import check_size, check_types

KINDS = 4  # of nodes; they say nothing about the target
MOST_BONDS = 4  # neighbours of a node, as a carbon atom has


def wiener(graphs: int = 1000, nodes: int = 24, seed: int = 0) -> GraphSet:
    r"""Return generated graphs of rings and branches; the target is their mean distance.

    They look like molecules and are none. A graph grows by rings of five or six nodes and by
    branches until it has ``nodes`` nodes, give or take a quarter. The target of a graph is the mean
    number of hops between two of its nodes, the Wiener index of chemistry divided by the number of
    pairs. A network has to see the whole graph to know it.

    Args:
        graphs: number of graphs.
        nodes: number of nodes of a graph on average, at least 8.
        seed: seed of everything drawn.

    Returns:
        Graphs with one feature per kind of node, drawn at random, and ``y`` ``[1]`` in float32.

    Example:
        >>> graphs = wiener(graphs=3)
        >>> graphs[0].num_nodes, graphs[0].y
        (29, tensor([5.3498]))
    """
    check_types(wiener, locals())
    if graphs < 1 or nodes < 8 or seed < 0:
        raise DataError(
            f"wiener needs graphs >= 1, nodes >= 8 and seed >= 0; got {graphs=}, {nodes=}, {seed=}."
        )
    check_size("wiener", graphs * nodes, KINDS)
    rng = np.random.default_rng(seed)
    spread = nodes // 4
    sizes = rng.integers(nodes - spread, nodes + spread + 1, size=graphs)
    pairs = [grown(int(size), rng) for size in sizes]
    first = np.cumsum(sizes) - sizes
    joined = np.concatenate([pair + start for pair, start in zip(pairs, first, strict=True)], 1)
    joined = np.concatenate([joined, joined[::-1]], 1)
    arrays = {
        "edge_index": joined[:, np.lexsort((joined[1], joined[0]))].astype(np.int32),
        "graph": np.repeat(np.arange(graphs), sizes).astype(np.int32),
        "kind": rng.integers(KINDS, size=int(sizes.sum())).astype(np.int32),
        "y": np.array([mean_distance(pair) for pair in pairs], dtype=np.float32),
    }
    arrays["kind"][:KINDS] = np.arange(KINDS)  # all kinds occur
    return GraphSet(split_arrays(arrays), "wiener", "generated", digest_of(arrays), 1)


def grown(size: int, rng: np.random.Generator) -> Array:
    """Return the edges ``[2, m]``, each once, of a connected graph of rings and branches."""
    edges: list[tuple[int, int]] = []
    bonds = [0]

    def join(i: int, j: int) -> None:
        edges.append((i, j))
        bonds[i] += 1
        bonds[j] += 1

    while len(bonds) < size:
        free = [node for node, count in enumerate(bonds) if count < MOST_BONDS - 1]
        at = free[int(rng.integers(len(free)))]
        new, ring = len(bonds), int(rng.integers(5, 7))
        length = ring if rng.random() < 0.3 and new + ring <= size else 1
        bonds.extend([0] * length)
        join(at, new)
        for i in range(1, length):
            join(new + i - 1, new + i)
        if length > 1:
            join(new, new + length - 1)
    return np.array(edges, dtype=np.int64).T


def mean_distance(pairs: Array) -> float:
    """Return the mean number of hops between two different nodes of a connected graph."""
    size = int(pairs.max()) + 1
    matrix = csr_matrix((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), (size, size))
    hops = shortest_path(matrix, method="D", directed=False, unweighted=True)
    return float(hops.sum()) / (size * (size - 1))
