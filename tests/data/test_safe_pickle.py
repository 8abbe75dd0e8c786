import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from eamp.data.errors import RefusedError
from eamp.data.safe_pickle import PickledMatrix, unpickle


def test_sparse_matrix_comes_back() -> None:
    dense = np.array([[0, 2, 0], [0, 0, 0], [1, 0, 3]], dtype=np.float64)
    rows = unpickle("ind.cora.x", pickle.dumps(csr_matrix(dense), protocol=3))
    assert isinstance(rows, PickledMatrix)
    np.testing.assert_array_equal(rows.dense(), dense)


def test_names_of_python_2_are_understood() -> None:
    graph = unpickle(
        "ind.cora.graph", b"\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R."
    )
    assert graph["anything"] == []


def test_program_in_a_pickle_is_refused_and_not_run(malicious_pickle: tuple[bytes, Path]) -> None:
    content, trace = malicious_pickle
    with pytest.raises(
        RefusedError, match=r"ind\.cora\.y is refused: it asks for (posix|nt)\.system"
    ):
        unpickle("ind.cora.y", content)
    assert not trace.exists()
    pickle.loads(content)  # the pickle does what it is feared to do
    assert trace.exists()


@pytest.mark.parametrize("value", [OrderedDict(), print, getattr, Path("a"), np.float64(1.0)])
def test_harmless_names_outside_the_list_are_refused_too(value: object) -> None:
    with pytest.raises(RefusedError, match="it asks for"):
        unpickle("ind.cora.y", pickle.dumps(value, protocol=2))


def test_attributes_of_allowed_names_cannot_be_reached() -> None:
    dotted = b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93."
    with pytest.raises(RefusedError, match=r"ndarray\.tofile"):
        unpickle("ind.cora.y", dotted)


@pytest.mark.parametrize(
    "content", [b"", b"\x80", b"not a pickle", b"\x80\x02cnumpy\nndarray\nK\x01R."]
)
def test_damaged_pickles_are_refused_by_name(content: bytes) -> None:
    with pytest.raises(RefusedError, match=r"ind\.cora\.y is refused"):
        unpickle("ind.cora.y", content)
