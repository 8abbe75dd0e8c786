"""Graphs generated from a seed: the four-neighbour grid and the contextual stochastic block model.

The same options give the same graph on every platform; a test holds their digests.
"""

import inspect
import numbers
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from eamp.data.errors import DataError
from eamp.data.splits import Array, Fractions, set_masks

LARGEST = 10**9  # features or edges; generating them needs some 30 GB


def grid(rows: int = 10, columns: int = 10, features: int = 1, seed: int = 0) -> Data:
    """Return a four-neighbour grid with random features in [0, 1).

    The label of a node is the quadrant it lies in. The features hold no information about it: the
    grid serves to watch what layers do to an embedding, and the labels let training code run.

    Args:
        rows: height; node ``r * columns + c`` lies in row r, column c.
        columns: width.
        features: features per node.
        seed: seed of the features.

    Example:
        >>> grid(2, 3).edge_index[:, :4]
        tensor([[0, 0, 1, 1],
                [1, 3, 0, 2]])
    """
    check_types(grid, locals())
    if rows < 1 or columns < 1 or features < 1 or seed < 0:
        raise DataError(
            "a grid needs at least one row, column and feature, and seed >= 0; "
            f"got {rows} x {columns} with {features=} and {seed=}. Write, say, grid:10x10,seed=1."
        )
    check_size("grid", rows * columns, max(features, 2))  # a node has two edges
    ids = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    horizontal = np.stack([ids[:, :-1], ids[:, 1:]]).reshape(2, -1)
    vertical = np.stack([ids[:-1], ids[1:]]).reshape(2, -1)
    x = np.random.default_rng(seed).random((ids.size, features), dtype=np.float32)
    row, column = np.divmod(ids.reshape(-1), columns)
    quadrant = 2 * (2 * row >= rows) + (2 * column >= columns)
    pairs = torch.from_numpy(np.concatenate([horizontal, vertical], axis=1))
    edge_index = to_undirected(pairs, num_nodes=ids.size)
    return Data(torch.from_numpy(x), edge_index, y=torch.from_numpy(quadrant).long())


def csbm(
    nodes: int = 1000,
    classes: int = 5,
    degree: float = 4.0,
    homophily: float = 0.8,
    features: int = 64,
    signal: float = 0.25,
    label_rate: float = 0.05,
    seed: int = 0,
) -> Data:
    r"""Return a contextual stochastic block model: classes show in the edges and in the features.

    After Deshpande, Montanari, Mossel and Sen, "Contextual Stochastic Block Models", NeurIPS 2018
    (arXiv:1807.09596), for any number of classes, and with a fixed number of edges, so that degree
    and homophily come out as given:

    .. math:: x_i = s\,u_{y_i} + z_i, \qquad u_c, z_i \sim \mathcal N(0, I/F)

    Args:
        nodes: number of nodes, divided evenly among the classes.
        classes: number of classes.
        degree: average degree.
        homophily: fraction of edges inside a class; at ``1 / classes`` edges are independent of it.
        features: F.
        signal: s, the length of the class means; the noise has length 1.
        label_rate: fraction of every class that trains; validation and test share the rest evenly.
        seed: seed of everything drawn.

    Example:
        >>> csbm(nodes=100, degree=4).num_edges // 2
        200
    """
    check_types(csbm, locals())
    valid = 1 <= classes <= nodes and features >= 1 and degree >= 0 and abs(signal) <= 1e30
    if not (valid and 0 <= homophily <= 1 and 0 < label_rate < 1 and seed >= 0):
        raise DataError(
            "csbm needs 1 <= classes <= nodes, features >= 1, degree >= 0, 0 <= homophily <= 1, "
            f"|signal| <= 1e30, 0 < label_rate < 1 and seed >= 0; got {nodes=}, {classes=}, "
            f"{features=}, {degree=}, {homophily=}, {signal=}, {label_rate=}, {seed=}."
        )
    check_size("csbm", nodes, max(features, degree))
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(nodes, dtype=np.int64) % classes)
    edges = community_edges(y, round(nodes * degree / 2), homophily, rng)
    scale = 1 / np.sqrt(features)
    means = rng.standard_normal((classes, features)) * scale
    noise = rng.standard_normal((nodes, features)) * scale
    x = torch.from_numpy((signal * means[y] + noise).astype(np.float32))
    edge_index = to_undirected(torch.from_numpy(edges), num_nodes=nodes)
    data = Data(x, edge_index, y=torch.from_numpy(y))
    rest = (1 - label_rate) / 2
    set_masks(data, Fractions(label_rate, rest, rest).draw(y, rng))
    return data


def check_types(make: Callable[..., Data], options: Mapping[str, object]) -> None:
    """Raise an error unless every option is of the kind of its default."""
    kinds = {int: (numbers.Integral, "a whole number"), float: (numbers.Real, "a number")}
    for name, parameter in inspect.signature(make).parameters.items():
        kind, expected = kinds.get(type(parameter.default), (str, "text"))
        if not isinstance(options[name], kind) or isinstance(options[name], bool):
            raise DataError(
                f"{make.__name__} needs {expected} as {name}, for example {parameter.default}; "
                f"got {options[name]!r}."
            )


def check_size(kind: str, nodes: int, per_node: float) -> None:
    """Raise an error if a graph would need more memory than machines usually have."""
    if nodes > LARGEST or nodes * per_node > LARGEST:
        raise DataError(
            f"{kind} would hold more than {LARGEST:.0e} features or edges. "
            "Ask for fewer nodes, features or edges."
        )


def community_edges(y: Array, count: int, homophily: float, rng: np.random.Generator) -> Array:
    """Draw ``[2, count]`` distinct pairs, the fraction ``homophily`` of them inside a class."""
    nodes, sizes = len(y), np.bincount(y)
    inside = round(homophily * count)
    possible_inside = int((sizes * (sizes - 1) // 2).sum())
    possible_across = nodes * (nodes - 1) // 2 - possible_inside
    if inside > possible_inside or count - inside > possible_across:
        raise DataError(
            f"csbm cannot place {inside} edges inside classes and {count - inside} across: only "
            f"{possible_inside} and {possible_across} pairs exist. Lower the degree or add nodes."
        )
    by_class, starts = np.argsort(y, kind="stable"), np.cumsum(sizes) - sizes

    def draw_inside(size: int) -> Array:
        first = rng.integers(nodes, size=size)
        return np.stack([first, by_class[starts[y[first]] + rng.integers(sizes[y[first]])]])

    def draw_across(size: int) -> Array:
        pairs = rng.integers(nodes, size=(2, size))
        return pairs[:, y[pairs[0]] != y[pairs[1]]]

    within = distinct_pairs(draw_inside, inside, nodes)
    return np.concatenate([within, distinct_pairs(draw_across, count - inside, nodes)], axis=1)


def distinct_pairs(draw: Callable[[int], Array], count: int, nodes: int) -> Array:
    """Return the first ``count`` distinct pairs that ``draw`` gives, without self-loops."""
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < count:
        first, second = draw(max(2 * (count - len(keys)), 64))
        pair = np.minimum(first, second) * nodes + np.maximum(first, second)
        keys = np.concatenate([keys, pair[first != second]])
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]  # in the order of drawing
    return np.stack([keys[:count] // nodes, keys[:count] % nodes])
