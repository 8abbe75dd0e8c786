"""Cora, CiteSeer and PubMed: from the verified Planetoid files to the arrays of the graph, with the public split.

The graphs and the split are those of Yang, Cohen and Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph
Embeddings", ICML 2016 (arXiv:1603.08861).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from eamp.data.cora_labels import cora_labels
from eamp.data.digests import RefusedError
from eamp.data.safe_pickle import SparseRows, unpickle

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
NUM_VAL = 500


class Size(NamedTuple):
    """What is known of a dataset before it is there."""

    nodes: int
    edges: int
    features: int
    classes: int


SIZES = {
    "cora": Size(2708, 5278, 1433, 7),
    "citeseer": Size(3327, 4552, 3703, 6),
    "pubmed": Size(19717, 44324, 500, 3),
}


class Canonical(NamedTuple):
    """A dataset as it is cached and compared: the same arrays to the last bit, whatever source they came from.

    Attributes:
        edge_index: ``[2, m]`` int32, both directions, sorted by row, then column; no self-loops, no duplicates.
        x_shape: ``[2]`` int64, nodes and features.
        x_index: ``[2, nnz]`` int32, row and column of every non-zero feature, sorted.
        x_value: ``[nnz]`` float32.
        y: ``[n]`` int64.
        train_mask: ``[n]`` bool, and likewise ``val_mask`` and ``test_mask``.
    """

    edge_index: npt.NDArray[Any]
    x_shape: npt.NDArray[Any]
    x_index: npt.NDArray[Any]
    x_value: npt.NDArray[Any]
    y: npt.NDArray[Any]
    train_mask: npt.NDArray[Any]
    val_mask: npt.NDArray[Any]
    test_mask: npt.NDArray[Any]

    def to_data(self) -> Data:
        """The graph as PyG's layers take it, with dense features."""
        x = torch.zeros(*self.x_shape.tolist())
        x[torch.from_numpy(self.x_index[0]).long(), torch.from_numpy(self.x_index[1]).long()] = (
            torch.from_numpy(self.x_value)
        )
        masks = {
            name: torch.from_numpy(getattr(self, name))
            for name in ("train_mask", "val_mask", "test_mask")
        }
        return Data(
            x=x,
            edge_index=torch.from_numpy(self.edge_index).long(),
            y=torch.from_numpy(self.y),
            **masks,
        )


def assemble(name: str, files: Mapping[str, bytes]) -> Canonical:
    """Put a dataset together from its files.

    Args:
        name: ``cora``, ``citeseer`` or ``pubmed``.
        files: verified contents by file name: all eight ``ind.<name>.*``, or, for Cora, ``cora.content`` in place of
            the three label files.
    """
    try:
        return _assemble(name, files)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, RefusedError):
            raise
        raise RefusedError(
            f"the files ind.{name}.* are refused: they do not fit together ({error})."
        ) from error


def _assemble(name: str, files: Mapping[str, bytes]) -> Canonical:
    def part(suffix: str) -> Any:
        file = f"ind.{name}.{suffix}"
        return unpickle(file, files[file])

    def features(suffix: str) -> npt.NDArray[np.float32]:
        matrix = part(suffix)
        if not isinstance(matrix, SparseRows):
            raise TypeError(
                f"ind.{name}.{suffix} holds {type(matrix).__name__}, not a sparse matrix"
            )
        return matrix.dense()

    known, test_rows, num_train = features("allx"), features("tx"), features("x").shape[0]
    test = np.array(files[f"ind.{name}.test.index"].split(), dtype=np.int64)
    nodes = int(test.max()) + 1

    # Row k of tx belongs to node test[k]. Ids that test.index leaves out (15 isolated nodes of CiteSeer) keep zero rows.
    x = np.zeros((nodes, known.shape[1]), dtype=np.float32)
    x[: len(known)], x[test] = known, test_rows
    if "cora.content" in files:
        y = cora_labels(x, files["cora.content"])
    else:
        one_hot = np.zeros((nodes, part("ally").shape[1]), dtype=np.int64)
        one_hot[: len(known)], one_hot[test] = part("ally"), part("ty")
        y = one_hot.argmax(axis=1)

    x_index = np.stack(x.nonzero())
    ids = np.arange(nodes)
    return Canonical(
        edge_index=edges_of(part("graph"), nodes).astype(np.int32),
        x_shape=np.array(x.shape, dtype=np.int64),
        x_index=x_index.astype(np.int32),
        x_value=x[x_index[0], x_index[1]],
        y=y.astype(np.int64),
        train_mask=ids < num_train,
        val_mask=(ids >= num_train) & (ids < num_train + NUM_VAL),
        test_mask=np.isin(ids, test),
    )


def edges_of(neighbours: Mapping[int, list[int]], nodes: int) -> npt.NDArray[np.int64]:
    """Sorted edges in both directions; the files list some twice, some one way only, and some self-loops."""
    row = np.repeat(np.fromiter(neighbours, np.int64), [len(ids) for ids in neighbours.values()])
    col = np.array([j for ids in neighbours.values() for j in ids], dtype=np.int64)
    if row.size and not 0 <= min(row.min(), col.min()) <= max(row.max(), col.max()) < nodes:
        raise ValueError(f"the graph names nodes outside 0 … {nodes - 1}")
    row, col = row[row != col], col[row != col]
    key = np.unique(np.concatenate([row * nodes + col, col * nodes + row]))
    return np.stack([key // nodes, key % nodes])
