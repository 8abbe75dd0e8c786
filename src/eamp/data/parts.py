"""Training, validation and test parts of many graphs, and of the links of one graph."""

import copy
from collections.abc import Sequence
from numbers import Integral

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data, Dataset
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import coalesce, is_undirected, remove_self_loops

from eamp.data.errors import DataError
from eamp.data.seeding import seeded

FOLDS = 10


def k_fold(
    graphs: "Sequence[Data] | Dataset", split: int = 0, *, folds: int = FOLDS, seed: int = 0
) -> tuple[list[Data], list[Data], list[Data]]:
    """Return training, validation and test graphs of one of the folds of cross-validation.

    The graphs are cut into ``folds`` parts of the same size at random; with classes (whole numbers
    as ``y``), every part has its share of every class. Part ``split`` is for the test, the next one
    for validation, and the others for training.

    Args:
        graphs: graphs with a label each.
        split: which part is for the test, from 0 to ``folds - 1``.
        folds: number of parts, at least 3.
        seed: seed of the cut.

    Raises:
        DataError: if there are fewer graphs than folds, or no such fold.

    Example:
        >>> import torch
        >>> graphs = [Data(y=torch.tensor([number % 2])) for number in range(40)]
        >>> [len(part) for part in k_fold(graphs, split=3)]
        [32, 4, 4]
    """
    for name, value in (("folds", folds), ("split", split)):
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise DataError(f"{name} must be a whole number; got {value!r}.")
    if not 3 <= folds <= len(graphs):
        raise DataError(
            f"{len(graphs)} graphs cannot be cut into {folds} folds; pass folds from 3 to the "
            "number of graphs."
        )
    if not 0 <= split < folds:
        raise DataError(
            f"there is no split {split}: there are {folds} folds. Pass a number from 0 to "
            f"{folds - 1}."
        )
    fold = fold_of_graphs(graphs, folds, seed)
    test, val = fold == split, fold == (split + 1) % folds
    train, val, test = (
        [graphs[int(number)] for number in np.flatnonzero(part)]
        for part in (~(test | val), val, test)
    )
    return train, val, test


def fold_of_graphs(
    graphs: "Sequence[Data] | Dataset", folds: int, seed: int
) -> npt.NDArray[np.int64]:
    """Return the number of the fold of every graph."""
    order = np.random.default_rng(seed).permutation(len(graphs))
    labels = [graphs[int(number)].y for number in order]
    if all(y is not None and y.numel() == 1 and not y.is_floating_point() for y in labels):
        classes = np.array([int(y) for y in labels])
        order = order[np.argsort(classes, kind="stable")]  # one class after the other
    fold = np.empty(len(graphs), dtype=np.int64)
    fold[order] = np.arange(len(graphs)) % folds
    return fold


def link_split(
    data: Data, split: int = 0, *, val: float = 0.05, test: float = 0.1
) -> tuple[Data, Data, Data]:
    """Return training, validation and test graphs for link prediction.

    PyG's ``RandomLinkSplit`` takes links out of the graph, and draws as many other pairs of nodes.
    Messages pass along the training links; in the test also along those of the validation.

    Args:
        data: an undirected graph with features.
        split: seed of the draw.
        val: share of the links that are for validation.
        test: share of the links that are for the test.

    Raises:
        DataError: if the graph is directed, or has too few edges or too many.

    Example:
        >>> import eamp
        >>> train, val, test = link_split(eamp.data.load("grid:10x10"))
        >>> train.num_edges, val.edge_label_index.shape
        (306, torch.Size([2, 18]))
    """
    edges, weights = remove_self_loops(data.edge_index, data.edge_weight)
    if not is_undirected(edges, num_nodes=data.num_nodes):
        raise DataError(
            "link prediction needs an undirected graph; load it with symmetrize=True, or pass "
            "torch_geometric.transforms.ToUndirected()(data)."
        )
    merged, added = coalesce(edges, weights, data.num_nodes)
    if merged.size(1) < edges.size(1):  # a link that is listed twice would train and be tested
        edges, weights = merged, added
    links = edges.size(1) // 2
    if not (val > 0 and test > 0 and val + test < 1 and min(val, test) * links >= 1):
        raise DataError(
            f"shares {val:g} and {test:g} of {links} links leave a part without a link; pass val= "
            "and test= above 0 and below 1 together."
        )
    graph = copy.copy(data)
    graph.edge_index = edges
    if weights is not None:
        graph.edge_weight = weights
    cut = RandomLinkSplit(val, test, is_undirected=True, add_negative_train_samples=False)
    with seeded(split):
        train_part, val_part, test_part = cut(graph)
    for name, part in (("validation", val_part), ("test", test_part)):
        if not bool((part.edge_label == 0).any()):
            raise DataError(
                f"nearly all pairs of the {data.num_nodes} nodes are linked, so none is left "
                f"without a link for {name}; pass a graph with fewer links."
            )
    return train_part, val_part, test_part
