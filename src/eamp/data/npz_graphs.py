"""Your own graph: an ``.npz`` of plain arrays, checked before it is used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from eamp.data.digests import DataError
from eamp.data.splits import MASKS

NEEDED = ("edge_index", "x", "y")
OPTIONAL = ("edge_weight", *MASKS)


def from_npz(path: str | os.PathLike[str]) -> Data:
    """The graph in an ``.npz`` file.

    Args:
        path: a file that ``numpy.savez`` wrote, with ``edge_index`` ``[2, m]``, ``x`` ``[n, features]``, ``y`` ``[n]`` (classes from 0;
            -1 for a node without a label), and if you like ``edge_weight`` ``[m]`` and ``train_mask``, ``val_mask``, ``test_mask``,
            ``[n]`` or, for several splits, ``[n, splits]``. Pickled objects are refused.

    Raises:
        DataError: naming the array, what it holds, and what it should.
    """
    arrays = read_arrays(Path(path).expanduser())
    try:
        return graph_of(arrays)
    except DataError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.lib.npyio.NpzFile):
                return {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise DataError(f"there is no file {path}.") from None
    except Exception as error:  # a damaged zip or array header can raise nearly anything
        raise DataError(f"{path} cannot be read as an .npz of plain arrays: {error}.") from error
    raise DataError(
        f"{path} holds a single array, not several. Write it with numpy.savez(path, edge_index=..., x=..., y=...)."
    )


def graph_of(arrays: dict[str, npt.NDArray[Any]]) -> Data:
    """A checked graph out of plain arrays."""
    if missing := [name for name in NEEDED if name not in arrays]:
        raise DataError(
            f"{', '.join(missing)} missing; there is {', '.join(sorted(arrays)) or 'nothing'}."
        )
    if unknown := sorted(set(arrays) - {*NEEDED, *OPTIONAL}):
        raise DataError(
            f"unknown array {', '.join(unknown)}; known are {', '.join((*NEEDED, *OPTIONAL))}."
        )
    present = [name for name in MASKS if name in arrays]
    if present and len(present) < len(MASKS):
        raise DataError(
            f"only {', '.join(present)} there; give all of {', '.join(MASKS)}, or none to have a split drawn."
        )

    x = features(arrays["x"])
    nodes = len(x)
    data = Data(
        x=torch.from_numpy(x), edge_index=torch.from_numpy(edges(arrays["edge_index"], nodes))
    )
    data.y = torch.from_numpy(labels(arrays["y"], nodes))
    if "edge_weight" in arrays:
        data.edge_weight = torch.from_numpy(weights(arrays["edge_weight"], data.num_edges))
    for name in present:
        data[name] = torch.from_numpy(mask(name, arrays[name], nodes))
    if len({data[name].shape for name in present}) > 1:
        raise DataError(
            f"the masks have different shapes: {', '.join(f'{name} {list(data[name].shape)}' for name in present)}."
        )
    return data


def features(x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    if x.ndim != 2 or x.dtype.kind not in "fiub":
        raise DataError(
            f"x must hold numbers, shape [nodes, features]; got {list(x.shape)} of {x.dtype}."
        )
    with np.errstate(over="ignore"):  # what overflows float32 becomes infinite, and is told below
        x = np.ascontiguousarray(x, dtype=np.float32)
    if not np.isfinite(x).all():
        raise DataError(
            f"x must be finite in float32; the first node with a value that is not is {int(np.flatnonzero(~np.isfinite(x).all(1))[0])}."
        )
    return x


def edges(edge_index: npt.NDArray[Any], nodes: int) -> npt.NDArray[np.int64]:
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype.kind not in "iu":
        hint = " It looks transposed." if edge_index.ndim == 2 and edge_index.shape[1] == 2 else ""
        raise DataError(
            f"edge_index must hold integers, shape [2, edges]; got {list(edge_index.shape)} of {edge_index.dtype}.{hint}"
        )
    edge_index = np.ascontiguousarray(edge_index, dtype=np.int64)
    outside = ((edge_index < 0) | (edge_index >= nodes)).any(axis=0)
    if outside.any():
        first = int(np.flatnonzero(outside)[0])
        raise DataError(
            f"edge_index names nodes outside 0 … {nodes - 1} (x has {nodes} rows) on {int(outside.sum())} edges; the first is "
            f"edge {first}, {edge_index[:, first].tolist()}."
        )
    return edge_index


def labels(y: npt.NDArray[Any], nodes: int) -> npt.NDArray[np.int64]:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (nodes,) or y.dtype.kind not in "iub":
        raise DataError(
            f"y must hold one integer class per node, shape [{nodes}]; got {list(y.shape)} of {y.dtype}."
        )
    y = np.ascontiguousarray(y, dtype=np.int64)
    if nodes == 0 or y.min() < -1 or y.max() < 0:
        raise DataError(
            "y must hold classes from 0 (and -1 for nodes without a label), and at least one of them."
        )
    if empty := sorted(set(range(int(y.max()) + 1)) - set(y.tolist())):
        raise DataError(
            f"y has no node of class {', '.join(map(str, empty[:5]))}; number the classes 0 … {len(set(y[y >= 0].tolist())) - 1}."
        )
    return y


def weights(edge_weight: npt.NDArray[Any], num_edges: int) -> npt.NDArray[np.float32]:
    if edge_weight.shape != (num_edges,) or edge_weight.dtype.kind not in "fiub":
        raise DataError(
            f"edge_weight must hold one number per edge, shape [{num_edges}]; got {list(edge_weight.shape)} of {edge_weight.dtype}."
        )
    return np.ascontiguousarray(edge_weight, dtype=np.float32)


def mask(name: str, values: npt.NDArray[Any], nodes: int) -> npt.NDArray[np.bool_]:
    if values.ndim not in (1, 2) or len(values) != nodes:
        hint = " It looks transposed." if values.ndim == 2 and values.shape[1] == nodes else ""
        raise DataError(
            f"{name} must have shape [{nodes}], or [{nodes}, splits]; got {list(values.shape)}.{hint}"
        )
    if values.dtype.kind not in "biu" or (
        values.dtype.kind != "b" and not np.isin(values, (0, 1)).all()
    ):
        raise DataError(
            f"{name} must hold true and false (or 1 and 0), one per node; got {values.dtype}. Node ids are not a mask."
        )
    return np.ascontiguousarray(values, dtype=np.bool_)
