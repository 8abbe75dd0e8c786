"""The arrays of a named dataset in one form, whatever files and source they come from."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from eamp.data.splits import MASKS, Array


class GraphArrays(NamedTuple):
    """The arrays of a dataset in one canonical form, equal bit for bit whatever their source.

    Attributes:
        edge_index: ``[2, m]`` int32, both directions, sorted, no self-loops, no duplicates.
        x_shape: ``[2]`` int64, number of nodes and of features.
        x_index: ``[2, nnz]`` int32, row and column of every non-zero feature, sorted.
        x_value: ``[nnz]`` float32.
        y: ``[n]`` int64.
        train_mask: ``[n]`` or ``[n, splits]`` bool, like ``val_mask`` and ``test_mask``.
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


def canonical(x: Array, pairs: Array, y: Array, masks: tuple[Array, Array, Array]) -> GraphArrays:
    """Return the canonical arrays of dense features, edges in one or both directions, and so on."""
    x_index = np.stack(x.nonzero())
    return GraphArrays(
        undirected_edges(pairs, len(x)).astype(np.int32),
        np.array(x.shape, dtype=np.int64),
        x_index.astype(np.int32),
        x[x_index[0], x_index[1]].astype(np.float32),
        y.astype(np.int64),
        *masks,
    )


def undirected_edges(pairs: Array, nodes: int) -> npt.NDArray[np.int64]:
    """Return sorted edges in both directions, without duplicates and self-loops."""
    edges = torch.from_numpy(pairs[:, pairs[0] != pairs[1]])
    if ((edges < 0) | (edges >= nodes)).any():
        raise ValueError(f"the graph names nodes outside 0 … {nodes - 1}")
    return to_undirected(edges, num_nodes=nodes).numpy()
