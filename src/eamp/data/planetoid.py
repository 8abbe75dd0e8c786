"""Cora, CiteSeer and PubMed: from the verified Planetoid files to arrays, with the public split.

The graphs and the split are those of Yang, Cohen and Salakhutdinov, "Revisiting Semi-Supervised
Learning with Graph Embeddings", ICML 2016 (arXiv:1603.08861).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from eamp.data.cora_labels import cora_labels
from eamp.data.errors import RefusedError
from eamp.data.safe_pickle import PickledMatrix, unpickle
from eamp.data.splits import MASKS

SUFFIXES = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
NUM_VAL = 500  # of the public split, see the paper above
SIZES = {  # numbers of nodes, undirected edges, features and classes
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "pubmed": (19717, 44324, 500, 3),
}


class PlanetoidArrays(NamedTuple):
    """The arrays of a dataset in one canonical form, equal bit for bit whatever their source.

    Attributes:
        edge_index: ``[2, m]`` int32, both directions, sorted, no self-loops, no duplicates.
        x_shape: ``[2]`` int64, number of nodes and of features.
        x_index: ``[2, nnz]`` int32, row and column of every non-zero feature, sorted.
        x_value: ``[nnz]`` float32.
        y: ``[n]`` int64.
        train_mask: ``[n]`` bool, like ``val_mask`` and ``test_mask``.
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
        """Return the graph as a PyG ``Data`` with dense features."""
        x = np.zeros(self.x_shape, dtype=np.float32)
        x[self.x_index[0], self.x_index[1]] = self.x_value
        edge_index = torch.from_numpy(self.edge_index).long()
        data = Data(x=torch.from_numpy(x), edge_index=edge_index, y=torch.from_numpy(self.y))
        for name in MASKS:
            data[name] = torch.from_numpy(getattr(self, name))
        return data


def assemble(name: str, files: Mapping[str, bytes]) -> PlanetoidArrays:
    """Build a dataset's arrays from the verified contents of its files, by file name.

    The files are all eight ``ind.<name>.*``, or for Cora ``cora.content`` in place of the three
    label files.
    """
    try:
        return arrays_from_files(name, files)
    except RefusedError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(
            f"the files ind.{name}.* are refused: they do not fit together ({error})."
        ) from error


def arrays_from_files(name: str, files: Mapping[str, bytes]) -> PlanetoidArrays:
    """Build a dataset's arrays; wrong files raise whatever NumPy and Python raise."""

    def content(suffix: str) -> Any:
        return unpickle(f"ind.{name}.{suffix}", files[f"ind.{name}.{suffix}"])

    def features(suffix: str) -> npt.NDArray[np.float32]:
        matrix = content(suffix)
        if not isinstance(matrix, PickledMatrix):
            raise TypeError(
                f"ind.{name}.{suffix} holds {type(matrix).__name__}, expected a sparse matrix"
            )
        return matrix.dense()

    known, test_rows, num_train = features("allx"), features("tx"), features("x").shape[0]
    test = np.array(files[f"ind.{name}.test.index"].split(), dtype=np.int64)
    nodes = int(test.max()) + 1

    # Row k of tx belongs to node test[k]. Nodes that test.index leaves out (15 isolated nodes of
    # CiteSeer) keep rows of zeros.
    x = np.zeros((nodes, known.shape[1]), dtype=np.float32)
    x[: len(known)], x[test] = known, test_rows
    if "cora.content" in files:
        y = cora_labels(x, files["cora.content"])
    else:
        one_hot = np.zeros((nodes, content("ally").shape[1]), dtype=np.int64)
        one_hot[: len(known)], one_hot[test] = content("ally"), content("ty")
        y = one_hot.argmax(axis=1)

    x_index = np.stack(x.nonzero())
    ids = np.arange(nodes)
    return PlanetoidArrays(
        edge_index=undirected_edges(content("graph"), nodes).astype(np.int32),
        x_shape=np.array(x.shape, dtype=np.int64),
        x_index=x_index.astype(np.int32),
        x_value=x[x_index[0], x_index[1]],
        y=y.astype(np.int64),
        train_mask=ids < num_train,
        val_mask=(ids >= num_train) & (ids < num_train + NUM_VAL),
        test_mask=np.isin(ids, test),
    )


def undirected_edges(neighbours: Mapping[int, list[int]], nodes: int) -> npt.NDArray[np.int64]:
    """Return sorted edges in both directions; the files hold duplicates and self-loops too."""
    pairs = [(i, j) for i, ids in neighbours.items() for j in ids if i != j]
    edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()
    if ((edges < 0) | (edges >= nodes)).any():
        raise ValueError(f"the graph names nodes outside 0 … {nodes - 1}")
    return to_undirected(edges, num_nodes=nodes).numpy()
