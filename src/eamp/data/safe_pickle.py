"""A pickle reader that can run no program.

A pickle names the functions that rebuild its objects. This reader knows only the functions that
the Planetoid files need and refuses every other name, ``os.system`` for example, before it is
called. It puts a plain class in place of SciPy's matrix class, so that no SciPy code runs.
"""

import collections
import io
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt

from eamp.data.errors import RefusedError


class PickledMatrix:
    """The contents of a pickled SciPy ``csr_matrix``."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.shape: tuple[int, int] = state["_shape"]
        self.values: npt.NDArray[Any] = state["data"]
        self.columns: npt.NDArray[Any] = state["indices"]
        self.row_starts: npt.NDArray[Any] = state["indptr"]

    def dense(self) -> npt.NDArray[np.float32]:
        """Return the matrix as a dense float32 array."""
        matrix = np.zeros(self.shape, dtype=np.float32)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.row_starts))
        matrix[rows, self.columns] = self.values
        return matrix


# NumPy versions keep this function in different modules; every array refers to it.
_rebuild_array = np.empty(0).__reduce__()[0]

# Both spellings: of Python 2 and early SciPy, which wrote the files, and of later versions.
ALLOWED: dict[tuple[str, str], Any] = {
    ("scipy.sparse.csr", "csr_matrix"): PickledMatrix,
    ("scipy.sparse._csr", "csr_matrix"): PickledMatrix,
    ("numpy.core.multiarray", "_reconstruct"): _rebuild_array,
    ("numpy._core.multiarray", "_reconstruct"): _rebuild_array,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class AllowListedUnpickler(pickle.Unpickler):
    """An unpickler that accepts only the names in :data:`ALLOWED`."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Return the object of that name if it is allowed."""
        try:
            return ALLOWED[module_name, global_name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it asks for {module_name}.{global_name}, which no Planetoid file needs"
            ) from None


def unpickle(file: str, content: bytes) -> Any:
    """Return the object in a pickle; refuse ``file`` if it is damaged or asks for other names."""
    try:
        return AllowListedUnpickler(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise RefusedError(f"{file} is refused: {error or type(error).__name__}.") from error
