import hashlib
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eamp.data import load, molecules, tu_datasets, typed_graphs
from eamp.data.digests import (
    ARRAY_DIGESTS,
    FILE_DIGESTS,
    digest_of,
    graph_digest,
    verify_file,
)
from eamp.data.errors import RefusedError
from eamp.data.package_index import MEMBERS
from eamp.data.sources import SIZES, family_of


def test_every_file_that_may_be_read_has_a_digest() -> None:
    wanted = {file for name in SIZES for file in family_of(name).file_names(name)}
    wanted |= {"cora.content"}
    wanted |= {archive.file for archives in MEMBERS.values() for archive in archives}
    wanted |= {f"MUTAG_{part}.txt" for part in tu_datasets.PARTS} | {tu_datasets.GRAKEL.file}
    typed = typed_graphs.SIZES
    wanted |= {typed_graphs.WHEEL.file, *(f for n in typed for f in typed_graphs.file_names(n))}
    wanted |= {molecules.WHEEL.file, *(f for files in molecules.FILES.values() for f in files)}
    assert wanted == set(FILE_DIGESTS)
    assert set(ARRAY_DIGESTS) == {*SIZES, *typed, *molecules.MOLECULES, "mutag"}
    assert all(
        len(digest) == 64 and set(digest) <= set("0123456789abcdef")
        for digest in (*FILE_DIGESTS.values(), *ARRAY_DIGESTS.values())
    )


@given(st.binary(min_size=1, max_size=50), st.data())
def test_one_flipped_bit_is_refused_by_name(content: bytes, draw: st.DataObject) -> None:
    bit = draw.draw(st.integers(0, 8 * len(content) - 1))
    flipped = bytearray(content)
    flipped[bit // 8] ^= 1 << bit % 8
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FILE_DIGESTS, "ind.cora.x", hashlib.sha256(content).hexdigest())
        assert verify_file("ind.cora.x", content) == content
        with pytest.raises(RefusedError, match=r"ind\.cora\.x is refused: its SHA-256"):
            verify_file("ind.cora.x", bytes(flipped))


def test_unknown_file_is_refused() -> None:
    with pytest.raises(
        RefusedError, match=r"ind\.cora\.z is refused: .* expected a known file name"
    ):
        verify_file("ind.cora.z", b"")


def test_array_digest_sees_names_types_shapes_and_values_but_not_order_or_byte_order() -> None:
    a, b = np.arange(6, dtype=np.int32), np.ones(2, dtype=np.float32)
    digest = digest_of({"a": a, "b": b})
    assert digest == digest_of({"b": b, "a": a})
    assert digest == digest_of({"a": a.astype(">i4"), "b": b})
    assert digest == digest_of({"a": np.repeat(a, 2)[::2], "b": b})
    others: list[dict[str, np.ndarray[Any, Any]]]
    others = [
        {"a": a, "c": b},
        {"a": a.astype(np.int64), "b": b},
        {"a": a.reshape(2, 3), "b": b},
        {"a": a + 1, "b": b},
        {"a": a},
    ]
    assert len({digest, *(digest_of(other) for other in others)}) == 6


def test_array_digest_of_empty_and_boolean_arrays() -> None:
    assert digest_of({"a": np.zeros((2, 0), dtype=np.int32)}) != digest_of(
        {"a": np.zeros((0, 2), dtype=np.int32)}
    )
    assert digest_of({"a": np.array([True])}) != digest_of({"a": np.array([False])})


GRAPH = "csbm:nodes=60,features=3"


def test_graph_digest_is_the_same_for_the_same_graph() -> None:
    # A fixed value, so that it is the same in every process and on every platform.
    assert graph_digest(load(GRAPH)) == graph_digest(load(GRAPH))
    assert graph_digest(load(GRAPH))[:16] == "e1f102a0a0a2b73c"


@pytest.mark.parametrize(
    "key", ["x", "edge_index", "y", "edge_weight", "train_mask", "val_mask", "test_mask"]
)
def test_graph_digest_sees_every_array(key: str) -> None:
    data = load(GRAPH)
    data.edge_weight = torch.ones(data.num_edges)
    before = graph_digest(data)
    data[key] = data[key].clone()
    assert graph_digest(data) == before
    data[key][..., 0] = ~data[key][..., 0] if data[key].dtype == torch.bool else 7
    assert graph_digest(data) != before
    del data[key]
    assert graph_digest(data) != before
