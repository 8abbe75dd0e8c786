"""Reading the pickles of the Planetoid files without letting them run anything.

A pickle names the functions that rebuild its objects. Only the few that these files need can be named here; anything
else, ``os.system`` say, is refused before it is called. SciPy's matrix class is replaced by a plain record, so no
SciPy code runs and SciPy need not be installed.
"""

from __future__ import annotations

import collections
import io
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt

from eamp.data.digests import RefusedError


class SparseRows:
    """What a pickled ``csr_matrix`` holds."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.shape: tuple[int, int] = state["_shape"]
        self.values: npt.NDArray[Any] = state["data"]
        self.columns: npt.NDArray[Any] = state["indices"]
        self.row_starts: npt.NDArray[Any] = state["indptr"]

    def dense(self) -> npt.NDArray[np.float32]:
        """``[rows, columns]`` in float32."""
        matrix = np.zeros(self.shape, dtype=np.float32)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.row_starts))
        matrix[rows, self.columns] = self.values
        return matrix


_rebuild_array = np.empty(0).__reduce__()[
    0
]  # numpy moved this function between modules; an array knows where it is

# The names as these files, written by Python 2 and an early SciPy, spell them, and as later versions do.
ALLOWED: dict[tuple[str, str], Any] = {
    ("scipy.sparse.csr", "csr_matrix"): SparseRows,
    ("scipy.sparse._csr", "csr_matrix"): SparseRows,
    ("numpy.core.multiarray", "_reconstruct"): _rebuild_array,
    ("numpy._core.multiarray", "_reconstruct"): _rebuild_array,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class AllowListedUnpickler(pickle.Unpickler):
    """An unpickler that knows the names of :data:`ALLOWED` and no others."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return ALLOWED[module_name, global_name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it asks for {module_name}.{global_name}, which no Planetoid file needs"
            ) from None


def unpickle(file: str, content: bytes) -> Any:
    """The object in ``content``, whose digest has been checked already.

    Args:
        file: name for the error message.
        content: the pickle's bytes.

    Raises:
        RefusedError: if the pickle asks for anything outside the allow-list, or is damaged.
    """
    try:
        return AllowListedUnpickler(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise RefusedError(f"{file} is refused: {error or type(error).__name__}.") from error
