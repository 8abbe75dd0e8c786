import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from eamp.data.errors import DataError
from eamp.data.splits import MASKS, Fractions, PerClass, apply_split, nodes_by_class, parse_split


def graph(y: list[int], **masks: torch.Tensor) -> Data:
    return Data(
        x=torch.zeros(len(y), 1),
        edge_index=torch.zeros(2, 0, dtype=torch.long),
        y=torch.tensor(y),
        **masks,
    )


@given(st.lists(st.integers(-1, 3), min_size=30, max_size=80), st.integers(0, 5))
def test_planetoid_split_takes_that_many_of_every_class(labels: list[int], seed: int) -> None:
    y = np.array([*labels, 0, 0, 1, 1, 2, 2, 3, 3] + [0] * 20)
    train, val, test = PerClass(2, 5, 7).draw(y, np.random.default_rng(seed))
    assert np.bincount(y[train]).tolist() == [2, 2, 2, 2]
    assert (len(val), len(test)) == (5, 7)
    together = np.concatenate([train, val, test])
    assert len(set(together.tolist())) == len(together)
    assert (y[together] >= 0).all()


@given(
    st.lists(st.integers(-1, 3), min_size=1, max_size=80),
    st.floats(0.05, 0.6),
    st.floats(0.05, 0.2),
    st.integers(0, 5),
)
def test_fractions_hold_in_every_class(
    labels: list[int], train_part: float, other_part: float, seed: int
) -> None:
    y = np.array([*labels, 0])
    parts = Fractions(train_part, other_part, other_part).draw(y, np.random.default_rng(seed))
    together = np.concatenate(parts)
    assert len(set(together.tolist())) == len(together)
    assert (y[together] >= 0).all()
    for c in np.unique(y[y >= 0]):
        size = (y == c).sum()
        train, val, test = ((y[part] == c).sum() for part in parts)
        assert train == max(1, round(train_part * size))
        assert abs(val - other_part * size) <= 1
        assert abs(test - other_part * size) <= 1


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(0, 5))
def test_nodes_of_every_class_keep_their_order(labels: list[int], seed: int) -> None:
    y = np.array(labels)
    order = np.random.default_rng(seed).permutation(len(y))
    expected = [order[y[order] == c].tolist() for c in np.unique(y)]
    assert [nodes.tolist() for nodes in nodes_by_class(y, order)] == expected


def test_same_seed_same_split_and_another_seed_another() -> None:
    masks = []
    for seed in (0, 0, 1):
        data = graph([0, 1] * 50)
        apply_split(data, "random", seed)
        masks.append(data.train_mask)
        assert data.split == f"random:0.6/0.2/0.2, seed {seed}"
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_missing_masks_are_drawn_as_fractions() -> None:
    data = graph([0, 1] * 50)
    apply_split(data, None, 0)
    assert [int(data[mask].sum()) for mask in MASKS] == [60, 20, 20]


def test_own_masks_are_kept_and_a_number_picks_one_of_several() -> None:
    columns = {mask: torch.eye(3, dtype=torch.bool).roll(k, 0) for k, mask in enumerate(MASKS)}
    for split, number in ((None, 0), ("public", 0), (0, 0), (2, 2), ("2", 2)):
        data = graph([0, 1, 0], **columns)
        apply_split(data, split, 0)
        assert torch.equal(data.val_mask, columns["val_mask"][:, number])
    with pytest.raises(
        DataError, match=r"no split 3: train_mask holds 3\. Pass a number from 0 to 2"
    ):
        apply_split(graph([0, 1, 0], **columns), 3, 0)


def test_error_if_the_graph_has_no_masks_of_its_own() -> None:
    with pytest.raises(DataError, match="it has none"):
        apply_split(graph([0, 1]), "public", 0)


def test_drawn_split_replaces_own_masks() -> None:
    own = {mask: torch.eye(3, dtype=torch.bool)[k].repeat(20) for k, mask in enumerate(MASKS)}
    data = graph([0, 1] * 30, **own)
    apply_split(data, PerClass(3, 4, 5), 0)
    assert [int(data[mask].sum()) for mask in MASKS] == [6, 4, 5]


def test_overlapping_empty_or_unlabelled_masks_are_refused() -> None:
    yes, no = torch.tensor([True, False, False]), torch.tensor([False, True, False])
    with pytest.raises(DataError, match="train_mask and test_mask share 1 nodes, the first is 0"):
        apply_split(graph([0, 1, 0], train_mask=yes, val_mask=no, test_mask=yes), None, 0)
    with pytest.raises(DataError, match=r"test_mask .* is empty"):
        apply_split(graph([0, 1, 0], train_mask=yes, val_mask=no, test_mask=yes & no), None, 0)
    with pytest.raises(DataError, match=r"val_mask .* no label .* the first is 1"):
        apply_split(graph([0, -1, 0], train_mask=yes, val_mask=no, test_mask=~yes & ~no), None, 0)


@pytest.mark.parametrize(
    "rule", [PerClass(), PerClass(5, 10, 10), Fractions(), Fractions(0.5, 0.25, 0.25)]
)
def test_text_form_can_be_parsed(rule: PerClass | Fractions) -> None:
    assert parse_split(str(rule)) == rule


@pytest.mark.parametrize(
    "text",
    ["planetoid:1/2", "random:a/b/c", "planetoid:0.5/1/1", "stratified", "", "random:1/2/3/4"],
)
def test_error_on_unknown_text_lists_the_valid_forms(text: str) -> None:
    with pytest.raises(DataError, match=r"unknown split .*planetoid:20/500/1000"):
        parse_split(text)


def test_split_that_does_not_fit_is_refused() -> None:
    with pytest.raises(
        DataError,
        match="planetoid:20/500/1000 does not fit 100 labelled nodes: 40 train, 60 are left",
    ):
        apply_split(graph([0, 1] * 50), "planetoid", 0)
    with pytest.raises(DataError, match="add up to 1 at most"):
        apply_split(graph([0, 1] * 50), "random:0.6/0.6/0.2", 0)
