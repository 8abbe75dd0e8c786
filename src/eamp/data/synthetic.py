"""Graphs made on the spot from a seed: the four-neighbour grid and the contextual stochastic block model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from eamp.data.digests import DataError
from eamp.data.splits import MASKS, Fractions


def grid(rows: int = 10, columns: int = 10, features: int = 1, seed: int = 0) -> Data:
    """A grid whose nodes are joined to the neighbours above, below, left and right, with random features in [0, 1).

    The label of a node is the quadrant it lies in. The features say nothing about it: the grid is for watching what layers
    do to an embedding, the labels only let code run that wants some.

    Args:
        rows: height; node ``r * columns + c`` lies in row r, column c.
        columns: width.
        features: features per node.
        seed: decides the features.

    Example:
        >>> grid(2, 3).edge_index[:, :4]
        tensor([[0, 0, 1, 1],
                [1, 3, 0, 2]])
    """
    if rows < 1 or columns < 1 or features < 1:
        raise DataError(
            f"a grid needs at least one row, column and feature; got {rows} x {columns} with {features}."
        )
    ids = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    pairs = np.concatenate(
        [
            np.stack([ids[:, :-1], ids[:, 1:]]).reshape(2, -1),
            np.stack([ids[:-1], ids[1:]]).reshape(2, -1),
        ],
        axis=1,
    )
    x = np.random.default_rng(seed).random((ids.size, features), dtype=np.float32)
    row, column = np.divmod(ids.reshape(-1), columns)
    y = 2 * (2 * row >= rows) + (2 * column >= columns)
    return Data(
        x=torch.from_numpy(x),
        edge_index=both_directions(pairs, ids.size),
        y=torch.from_numpy(y).long(),
    )


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
    r"""The contextual stochastic block model: communities that show both in the edges and, noisily, in the features.

    After Deshpande, Montanari, Mossel and Sen, "Contextual Stochastic Block Models", NeurIPS 2018 (arXiv:1807.09596), for any number of
    classes and with the number of edges fixed, so that degree and homophily come out as asked:

    .. math:: x_i = s\,u_{y_i} + z_i, \qquad u_c, z_i \sim \mathcal N(0, I/F)

    Args:
        nodes: number of nodes, spread evenly over the classes.
        classes: number of classes.
        degree: average degree.
        homophily: fraction of edges inside a class; ``1 / classes`` means that edges know nothing of classes.
        features: F.
        signal: s, the length of the class means against noise of length 1.
        label_rate: fraction of every class that trains; half of the rest validates, half tests.
        seed: decides everything drawn.

    Example:
        >>> csbm(nodes=100, degree=4).num_edges // 2
        200
    """
    if not (
        1 <= classes <= nodes
        and features >= 1
        and degree >= 0
        and 0 <= homophily <= 1
        and 0 < label_rate < 1
    ):
        raise DataError(
            f"csbm needs 1 <= classes <= nodes, features >= 1, degree >= 0, 0 <= homophily <= 1 and 0 < label_rate < 1; got "
            f"{nodes=}, {classes=}, {features=}, {degree=}, {homophily=}, {label_rate=}."
        )
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(nodes, dtype=np.int64) % classes)
    edges = community_edges(y, round(nodes * degree / 2), homophily, rng)
    scale = 1 / np.sqrt(features)
    means, noise = (
        rng.standard_normal((classes, features)) * scale,
        rng.standard_normal((nodes, features)) * scale,
    )
    x = (signal * means[y] + noise).astype(np.float32)
    data = Data(
        x=torch.from_numpy(x), edge_index=both_directions(edges, nodes), y=torch.from_numpy(y)
    )
    rest = (1 - label_rate) / 2
    for name, ids in zip(MASKS, Fractions(label_rate, rest, rest).draw(y, rng), strict=True):
        data[name] = torch.zeros(nodes, dtype=torch.bool)
        data[name][torch.from_numpy(ids)] = True
    return data


def community_edges(
    y: npt.NDArray[Any], count: int, homophily: float, rng: np.random.Generator
) -> npt.NDArray[Any]:
    """``[2, count]`` distinct pairs, the fraction ``homophily`` of them inside a class."""
    nodes, sizes = len(y), np.bincount(y)
    inside = round(homophily * count)
    possible_inside = int((sizes * (sizes - 1) // 2).sum())
    possible_across = nodes * (nodes - 1) // 2 - possible_inside
    if inside > possible_inside or count - inside > possible_across:
        raise DataError(
            f"csbm cannot place {inside} edges inside classes and {count - inside} across: only {possible_inside} and "
            f"{possible_across} pairs exist. Lower the degree or add nodes."
        )
    by_class, starts = np.argsort(y, kind="stable"), np.cumsum(sizes) - sizes

    def draw_inside(size: int) -> npt.NDArray[Any]:
        first = rng.integers(nodes, size=size)
        return np.stack([first, by_class[starts[y[first]] + rng.integers(sizes[y[first]])]])

    def draw_across(size: int) -> npt.NDArray[Any]:
        pairs = rng.integers(nodes, size=(2, size))
        return pairs[:, y[pairs[0]] != y[pairs[1]]]

    return np.concatenate(
        [distinct(draw_inside, inside, nodes), distinct(draw_across, count - inside, nodes)], axis=1
    )


def distinct(draw: Callable[[int], npt.NDArray[Any]], count: int, nodes: int) -> npt.NDArray[Any]:
    """The first ``count`` different pairs that ``draw`` comes up with, self-loops left out."""
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < count:
        first, second = draw(max(2 * (count - len(keys)), 64))
        pair = np.minimum(first, second) * nodes + np.maximum(first, second)
        keys = np.concatenate([keys, pair[first != second]])
        keys = keys[
            np.sort(np.unique(keys, return_index=True)[1])
        ]  # duplicates out, order of drawing kept
    return np.stack([keys[:count] // nodes, keys[:count] % nodes])


def both_directions(pairs: npt.NDArray[Any], nodes: int) -> torch.Tensor:
    """Sorted ``edge_index`` of undirected ``pairs``."""
    key = np.sort(np.concatenate([pairs[0] * nodes + pairs[1], pairs[1] * nodes + pairs[0]]))
    return torch.from_numpy(np.stack([key // nodes, key % nodes]))
