"""Your own graph: an ``.npz`` file of plain arrays, checked before it is used."""

import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from eamp.data.cache import StrPath
from eamp.data.errors import DataError
from eamp.data.splits import MASKS, Array

REQUIRED = ("edge_index", "x", "y")
OPTIONAL = ("edge_weight", *MASKS)
# A compressed file larger than this must not be this many times smaller than its arrays. Deflate
# reaches 1000 for zeros; bag-of-words features reach some 50.
UNPACKED, RATIO = 2**30, 100
SAVE = "numpy.savez(path, edge_index=..., x=..., y=...)"


def from_npz(path: StrPath) -> Data:
    """Return the graph in an ``.npz`` file that ``numpy.savez`` wrote, without pickled objects.

    It holds ``edge_index`` ``[2, m]``, ``x`` ``[n, features]`` and ``y`` ``[n]`` (classes from 0,
    and -1 for nodes without a label); it may hold ``edge_weight`` ``[m]``, and ``train_mask``,
    ``val_mask`` and ``test_mask``, each ``[n]`` or for several splits ``[n, splits]``.
    """
    arrays = read_arrays(Path(os.path.expanduser(path)))
    try:
        return data_from_arrays(arrays)
    except DataError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None


def read_arrays(path: Path) -> dict[str, Array]:
    """Return all arrays of an ``.npz`` file by name."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would wait without end
            raise DataError(f"{path} is not a regular file. Write one with {SAVE}.")
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.lib.npyio.NpzFile):
                check_unpacked_size(path)
                return {name: stored[name] for name in stored.files}
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"there is no file {path}. Write it with {SAVE}.") from None
    except Exception as error:  # a damaged zip or array header can raise nearly anything
        raise DataError(
            f"{path} cannot be read as an .npz file of plain arrays: {error}. Write it with {SAVE}."
        ) from error
    raise DataError(f"{path} holds a single array, expected several. Write it with {SAVE}.")


def check_unpacked_size(path: Path) -> None:
    """Raise an error for a file that would fill the memory with what takes no space on the disk."""
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > UNPACKED and unpacked > RATIO * path.stat().st_size:
        raise DataError(
            f"{path} unpacks to {unpacked / 2**30:.1f} GiB, over {RATIO} times its size. If you "
            f"trust it, write it again without compression, with {SAVE}."
        )


def data_from_arrays(arrays: dict[str, Array]) -> Data:
    """Check plain arrays and return them as a PyG ``Data``."""
    if missing := [name for name in REQUIRED if name not in arrays]:
        raise DataError(
            f"{', '.join(missing)} missing; found {', '.join(sorted(arrays)) or 'nothing'}. "
            f"A graph needs {', '.join(REQUIRED)}."
        )
    if unknown := sorted(set(arrays) - {*REQUIRED, *OPTIONAL}):
        raise DataError(
            f"unknown array {', '.join(unknown)}; known are {', '.join((*REQUIRED, *OPTIONAL))}. "
            "Rename it or leave it out."
        )
    masks = {name: arrays[name] for name in MASKS if name in arrays}
    if masks and len(masks) < len(MASKS):
        raise DataError(
            f"found only {', '.join(masks)}. "
            f"Give all of {', '.join(MASKS)}, or none to have a split drawn."
        )
    x = checked_features(arrays["x"])
    edges, y = checked_edges(arrays["edge_index"], len(x)), checked_labels(arrays["y"], len(x))
    data = Data(torch.from_numpy(x), torch.from_numpy(edges), y=torch.from_numpy(y))
    if "edge_weight" in arrays:
        weight, count = arrays["edge_weight"], data.num_edges
        valid = weight.shape == (count,) and weight.dtype.kind in "fiub"
        check_array("edge_weight", weight, valid, f"one number per edge, shape [{count}]")
        data.edge_weight = torch.from_numpy(finite("edge_weight", weight, "edges"))
    for name, mask in masks.items():
        data[name] = torch.from_numpy(checked_mask(name, mask, len(x)))
    if len({mask.shape for mask in masks.values()}) > 1:
        shapes = ", ".join(f"{name} {list(mask.shape)}" for name, mask in masks.items())
        raise DataError(f"the masks have different shapes: {shapes}. Give all three one shape.")
    return data


def check_array(
    name: str, array: Array, valid: bool, expected: str, transposed: bool = False
) -> None:
    """Raise an error unless ``valid``, with a hint if the array looks ``transposed``."""
    if not valid:
        hint = f" It looks transposed: save {name}.T." if transposed else ""
        raise DataError(
            f"{name} must hold {expected}; got {list(array.shape)} of {array.dtype}.{hint}"
        )


def checked_features(x: Array) -> npt.NDArray[np.float32]:
    """Return finite float32 features ``[nodes, features]``."""
    valid = x.ndim == 2 and x.dtype.kind in "fiub"
    check_array("x", x, valid, "numbers, shape [nodes, features]")
    if x.shape[1] == 0:
        raise DataError(
            "x has no features; give every node at least one, for example the number 1."
        )
    return finite("x", x, "nodes")


def finite(name: str, values: Array, rows: str) -> npt.NDArray[np.float32]:
    """Return ``values`` in float32, and raise an error if one is NaN or infinite."""
    with np.errstate(over="ignore"):  # values beyond float32 become infinite and fail the check
        values = np.ascontiguousarray(values, dtype=np.float32)
    wrong = np.flatnonzero(~np.isfinite(values).all(axis=tuple(range(1, values.ndim))))
    if wrong.size:
        raise DataError(
            f"{name} must be finite in float32; {wrong.size} {rows} have a value that is not, "
            f"the first is {wrong[0]}. Replace NaN and infinite values."
        )
    return values


def checked_edges(edge_index: Array, nodes: int) -> npt.NDArray[np.int64]:
    """Return an int64 ``edge_index`` whose nodes all exist."""
    valid = edge_index.ndim == 2 and len(edge_index) == 2 and edge_index.dtype.kind in "iu"
    transposed = edge_index.ndim == 2 and edge_index.shape[1] == 2
    check_array("edge_index", edge_index, valid, "integers, shape [2, edges]", transposed)
    outside = np.flatnonzero(((edge_index < 0) | (edge_index >= nodes)).any(axis=0))
    if outside.size:
        raise DataError(
            f"edge_index names nodes outside 0 … {nodes - 1} (x has {nodes} rows) on "
            f"{outside.size} edges; the first is edge {outside[0]}, "
            f"{edge_index[:, outside[0]].tolist()}. Number the nodes as the rows of x, from 0."
        )
    return np.ascontiguousarray(edge_index, dtype=np.int64)


def checked_labels(y: Array, nodes: int) -> npt.NDArray[np.int64]:
    """Return int64 labels ``[nodes]`` with at least one node of every class."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    valid = y.shape == (nodes,) and y.dtype.kind in "iub"
    check_array("y", y, valid, f"one integer class per node, shape [{nodes}]")
    if nodes == 0 or y.min() < -1 or y.max() < 0:
        found = f"values from {y.min()} to {y.max()}" if nodes else "nothing"
        raise DataError(
            "y must hold classes from 0 (and -1 for nodes without a label), with at least one "
            f"labelled node; got {found}."
        )
    classes = np.unique(y[y >= 0])
    if classes[-1] != len(classes) - 1:
        empty = np.setdiff1d(np.arange(len(classes)), classes)  # not up to the largest, maybe 2**60
        raise DataError(
            f"the largest label is {classes[-1]}, but y has no node of class "
            f"{', '.join(map(str, empty[:5]))}; number the classes 0 … {len(classes) - 1}."
        )
    return np.ascontiguousarray(y, dtype=np.int64)


def checked_mask(name: str, mask: Array, nodes: int) -> npt.NDArray[np.bool_]:
    """Return a boolean mask ``[nodes]`` or ``[nodes, splits]``."""
    binary = mask.dtype.kind == "b" or (mask.dtype.kind in "iu" and np.isin(mask, (0, 1)).all())
    valid = mask.ndim in (1, 2) and len(mask) == nodes and mask.size > 0 and bool(binary)
    expected = f"true or false per node, not node ids, shape [{nodes}] or [{nodes}, splits]"
    check_array(name, mask, valid, expected, mask.ndim == 2 and mask.shape[1] == nodes)
    return np.ascontiguousarray(mask, dtype=np.bool_)
