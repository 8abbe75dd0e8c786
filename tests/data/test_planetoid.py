import pickle
from typing import Any

import numpy as np
import pytest
import torch

from eamp.data.arrays import undirected_edges
from eamp.data.errors import RefusedError
from eamp.data.planetoid import SIZES, assemble


@pytest.mark.parametrize("name", SIZES)
def test_features_labels_edges_and_masks_are_those_of_the_files(
    tiny: dict[str, Any], name: str
) -> None:
    dataset, data = tiny[name], assemble(name, tiny[name].files).to_data()
    np.testing.assert_array_equal(data.x.numpy(), dataset.x)
    np.testing.assert_array_equal(data.y.numpy(), dataset.y)
    assert data.edge_index.dtype == torch.int64
    assert set(map(tuple, data.edge_index.t().tolist())) == dataset.edges | {
        (j, i) for i, j in dataset.edges
    }
    assert data.num_edges == 2 * len(dataset.edges)
    assert data.train_mask.nonzero().flatten().tolist() == [0, 1, 2, 3]
    assert data.val_mask.nonzero().flatten().tolist() == [4, 5, 6, 7, 8]
    assert data.test_mask.nonzero().flatten().tolist() == (
        [12, 13, 14, 15, 17, 18, 19] if name != "cora" else list(range(12, 20))
    )


def test_node_left_out_of_the_test_index_keeps_a_zero_row(tiny: dict[str, Any]) -> None:
    data = assemble("citeseer", tiny["citeseer"].files).to_data()
    assert not data.x[16].any()
    assert not data.test_mask[16]
    assert 16 not in data.edge_index


def test_cora_without_label_files_is_the_same_to_the_last_bit(tiny: dict[str, Any]) -> None:
    files = tiny["cora"].files
    unlabelled = {file: content for file, content in files.items() if not file.endswith("y")} | {
        "cora.content": tiny["cora"].cora_content
    }
    for ours, theirs in zip(assemble("cora", unlabelled), assemble("cora", files), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_edges_are_sorted_distinct_and_both_ways() -> None:
    edges = undirected_edges(np.array([[2, 2, 2, 0], [0, 0, 2, 1]]), nodes=3)
    assert edges.T.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0]]


@pytest.mark.parametrize("pair", [(0, 3), (0, -1), (5, 0)])
def test_edges_to_nodes_that_do_not_exist_are_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="outside"):
        undirected_edges(np.array([pair]).T, nodes=3)


@pytest.mark.parametrize(
    ("part", "value"), [("graph", [1, 2]), ("allx", [1, 2]), ("ally", None), ("graph", {0: [99]})]
)
def test_files_that_do_not_fit_together_are_refused(
    tiny: dict[str, Any], part: str, value: object
) -> None:
    files = tiny["pubmed"].files | {f"ind.pubmed.{part}": pickle.dumps(value, protocol=2)}
    with pytest.raises(RefusedError, match="pubmed"):
        assemble("pubmed", files)


def test_missing_file_is_refused(tiny: dict[str, Any]) -> None:
    files = tiny["pubmed"].files
    files.pop("ind.pubmed.tx")
    with pytest.raises(RefusedError, match=r"ind\.pubmed\.tx"):
        assemble("pubmed", files)
