import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from eamp.data import load, npz_graphs
from eamp.data.errors import DataError
from eamp.data.npz_graphs import from_npz

NODES = 6


def good() -> dict[str, Any]:
    return {
        "edge_index": np.array([[0, 1, 2, 3, 4, 5], [1, 0, 3, 2, 5, 4]], dtype=np.int32),
        "x": np.arange(12, dtype=np.float64).reshape(NODES, 2),
        "y": np.array([0, 1, 0, 1, 0, -1], dtype=np.int8),
    }


def masks(shape: tuple[int, ...] = (NODES,)) -> dict[str, Any]:
    result = {}
    for k, name in enumerate(("train_mask", "val_mask", "test_mask")):
        result[name] = np.zeros(shape, dtype=bool)
        result[name][k] = True
    return result


def save(tmp_path: Path, **arrays: Any) -> Path:
    np.savez(tmp_path / "mine.npz", **arrays)
    return tmp_path / "mine.npz"


def test_arrays_have_the_types_pyg_expects(tmp_path: Path) -> None:
    data = from_npz(save(tmp_path, **good(), **masks(), edge_weight=np.ones(6)))
    assert data.x.dtype == torch.float32
    assert data.edge_index.dtype == torch.int64
    assert data.y.tolist() == [0, 1, 0, 1, 0, -1]
    assert data.train_mask.tolist() == [True] + [False] * 5
    assert data.edge_weight.dtype == torch.float32
    data.x[0, 0] = 5.0  # the tensors own their memory


def test_load_by_path_sets_name_and_source(tmp_path: Path) -> None:
    path = save(tmp_path, **good(), **masks())
    for given in (path, str(path)):
        data = load(given)
        assert (data.name, data.source, data.split, data.num_classes) == (
            str(path),
            "file",
            "public",
            2,
        )


def test_split_is_drawn_where_there_are_no_masks(tmp_path: Path) -> None:
    data = load(save(tmp_path, **good()), split="planetoid:1/1/1")
    assert [int(data[mask].sum()) for mask in ("train_mask", "val_mask", "test_mask")] == [2, 1, 1]
    assert not (data.train_mask | data.val_mask | data.test_mask)[5]  # it has no label


def test_split_number_selects_one_of_several(tmp_path: Path) -> None:
    several = masks((NODES, 2))
    several["train_mask"][:, 1] = [False, False, False, True, True, False]
    path = save(tmp_path, **good(), **several)
    assert load(path).train_mask.tolist() == [True, False, False, False, False, False]
    assert load(path, split=1).train_mask.tolist() == [False, False, False, True, True, False]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"x": None}, "x missing; found edge_index, y"),
        ({"edges": np.zeros(2)}, "unknown array edges"),
        ({"x": np.zeros(NODES)}, r"x must hold numbers, shape \[nodes, features\]; got \[6\]"),
        ({"x": np.full((NODES, 1), "a")}, "x must hold numbers"),
        ({"x": np.array([[0.0]] * 5 + [[np.nan]])}, "x must be finite .* first is 5"),
        ({"x": np.array([[0.0]] * 5 + [[1e300]])}, "x must be finite .* first is 5"),
        ({"edge_index": np.zeros((6, 2), dtype=int)}, "It looks transposed"),
        ({"edge_index": np.zeros((2, 6))}, "edge_index must hold integers"),
        ({"edge_index": np.array([[0, 6], [1, 0]])}, r"outside 0 … 5 .* edge 1, \[6, 0\]"),
        ({"edge_index": np.array([[0, -1], [1, 0]])}, r"outside 0 … 5"),
        ({"y": np.zeros(5, dtype=int)}, r"shape \[6\]; got \[5\]"),
        ({"y": np.zeros(NODES)}, "one integer class per node"),
        ({"y": np.full(NODES, -1)}, "at least one"),
        ({"y": np.full(NODES, -2)}, "classes from 0"),
        ({"y": np.array([0, 1, 3, 0, 1, 3])}, "no node of class 2; number the classes 0 … 2"),
        ({"x": np.zeros((NODES, 0))}, "x has no features"),
        ({"y": np.array([0, 2 * 10**8, 0, 0, 0, 0])}, "largest label is 200000000.* 0 … 1"),
        ({"y": np.array([0, 2**64 - 1, 0, 0, 0, 0], dtype=np.uint64)}, "is 18446744073709551615"),
        ({"edge_index": np.full((2, 1), 2**64 - 1, dtype=np.uint64)}, "edge 0, .18446744073709551"),
        ({"edge_index": np.array([[0, 10**18], [1, 0]])}, r"outside 0 … 5"),
        ({"num_nodes": np.array(10**18)}, "unknown array num_nodes"),
        (masks((NODES, 0)), r"true or false per node.* got \[6, 0\]"),
        ({"edge_weight": np.full(6, np.nan)}, "edge_weight must be finite .* first is 0"),
        ({"edge_weight": np.array([0, 1, np.inf, 1, 1, 1])}, "1 edges .* first is 2"),
        ({"edge_weight": np.ones(5)}, "one number per edge"),
        ({"train_mask": np.ones(NODES, dtype=bool)}, "found only train_mask"),
        (masks((NODES,)) | {"val_mask": np.zeros((NODES, 2), dtype=bool)}, "different shapes"),
        (
            masks((NODES,)) | {"val_mask": np.zeros((2, NODES), dtype=bool)},
            r"val_mask must hold .*shape \[6\].* transposed",
        ),
        (masks((NODES,)) | {"val_mask": np.array([0, 1, 2, 3, 4, 5])}, "not node ids"),
    ],
)
def test_error_on_wrong_arrays_names_the_file_and_what_was_expected(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    arrays = {name: array for name, array in (good() | change).items() if array is not None}
    path = save(tmp_path, **arrays)
    with pytest.raises(DataError, match=complaint) as caught:
        from_npz(path)
    assert str(path) in str(caught.value)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"mine\.npz cannot be read as an \.npz file of plain arrays"
    ):
        from_npz(save(tmp_path, **good(), train_mask=np.array([{}], dtype=object)))


def test_malicious_pickle_is_not_run(tmp_path: Path, malicious_pickle: tuple[bytes, Path]) -> None:
    content, trace = malicious_pickle
    (tmp_path / "mine.npz").write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        from_npz(tmp_path / "mine.npz")
    assert not trace.exists()


def test_truncated_missing_and_single_array_files_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path, **good())
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match="cannot be read"):
        from_npz(path)
    with pytest.raises(DataError, match="there is no file"):
        from_npz(tmp_path / "other.npz")
    np.save(tmp_path / "single.npy", np.zeros(3))
    with pytest.raises(DataError, match="single array"):
        from_npz(tmp_path / "single.npy")


@pytest.mark.parametrize("shape", [(10**13, 7), (10**18, 0), (10**10,), (-1, 2)])
def test_header_that_promises_more_than_the_file_holds_is_refused(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    path = save(tmp_path, **{name: array for name, array in good().items() if name != "x"})
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "a") as zipped:
        zipped.writestr("x.npy", header.getvalue())
    with pytest.raises(DataError, match=r"mine\.npz"):
        from_npz(path)


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.npz")
    with pytest.raises(DataError, match="not a regular file"):
        from_npz(tmp_path / "mine.npz")


def test_little_on_the_disk_that_is_much_in_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npz_graphs, "UNPACKED", 2**20)
    arrays = good() | {"x": np.zeros((NODES, 2**16))}
    np.savez_compressed(tmp_path / "mine.npz", **arrays)
    with pytest.raises(DataError, match="write it again without compression"):
        from_npz(tmp_path / "mine.npz")
    assert from_npz(save(tmp_path, **arrays)).num_features == 2**16


def test_a_file_without_edges_may_have_weights_for_none(tmp_path: Path) -> None:
    arrays = {"x": np.ones((3, 2)), "edge_index": np.zeros((2, 0), np.int64), "y": np.arange(3)}
    np.savez(tmp_path / "own.npz", **arrays, edge_weight=np.zeros(0))
    assert from_npz(tmp_path / "own.npz").num_edges == 0
