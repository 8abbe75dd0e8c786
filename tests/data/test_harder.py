from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, is_undirected

import eamp
from eamp.data import DataError, graph_digest, load
from eamp.data.harder import CHANGES, free_numbers, split_name
from eamp.data.splits import MASKS

PLAIN = "csbm:nodes=80,classes=3,features=5,label_rate=0.3"
KEYS = ("x", "edge_index", "y", *MASKS)

seeds = st.integers(0, 2**64 - 1)
shares = st.floats(0, 1)


def changed(harder: Data, plain: Data) -> set[str]:
    """Return the names of the tensors in which two graphs differ."""
    assert harder.keys() == plain.keys()
    return {key for key in KEYS if not torch.equal(harder[key], plain[key])}


@given(seeds)
def test_missing_features_are_those_of_nodes_that_do_not_train(seed: int) -> None:
    harder, plain = (load(name, seed=seed) for name in (f"missing_features:{PLAIN}", PLAIN))
    assert changed(harder, plain) == {"x"}
    assert torch.equal(harder.x[plain.train_mask], plain.x[plain.train_mask])
    assert not harder.x[~plain.train_mask].any()


@given(shares, seeds)
def test_corrupted_nodes_exchange_their_features(share: float, seed: int) -> None:
    number = round(80 * share)
    name = f"corrupted_features={share}:{PLAIN}"
    if number == 1:
        with pytest.raises(DataError, match=r"is one of 80 nodes.* Ask for a larger share"):
            load(name, seed=seed)
        return
    harder, plain = load(name, seed=seed), load(PLAIN)
    assert changed(harder, plain) == ({"x"} if number else set())
    differ = (harder.x != plain.x).any(dim=1)
    assert int(differ.sum()) == number
    rows = [sorted(map(tuple, data.x[differ].tolist())) for data in (harder, plain)]
    assert rows[0] == rows[1]


@given(st.floats(0, 5), seeds)
def test_extra_edges_are_new_pairs_in_both_directions(share: float, seed: int) -> None:
    harder, plain = load(f"extra_edges={share}:{PLAIN}", seed=seed), load(PLAIN)
    before, number = plain.num_edges, round(share * plain.num_edges / 2)
    assert changed(harder, plain) == ({"edge_index"} if number else set())
    assert torch.equal(harder.edge_index[:, :before], plain.edge_index)
    assert harder.num_edges == before + 2 * number
    assert torch.unique(harder.edge_index, dim=1).size(1) == harder.num_edges
    assert is_undirected(harder.edge_index)
    assert not contains_self_loops(harder.edge_index)
    assert 0 <= int(harder.edge_index.min()) <= int(harder.edge_index.max()) < 80


def test_every_free_pair_can_be_an_extra_edge() -> None:
    """A graph that lacks three of its ten edges gets exactly those."""
    name = "csbm:nodes=5,classes=1,degree=2.8,homophily=1,label_rate=0.4"
    assert load(name).num_edges == 14
    assert torch.unique(load(f"extra_edges={3 / 7}:{name}").edge_index, dim=1).size(1) == 20
    with pytest.raises(DataError, match="asks for 4 more edges, but only 3 pairs of nodes"):
        load(f"extra_edges={4 / 7}:{name}")
    with pytest.raises(DataError, match=r"asks for 7e\+30 more edges"):
        load(f"extra_edges=1e30:{name}")


@given(st.sets(st.integers(0, 40)))
def test_free_numbers(taken: set[int]) -> None:
    free = [number for number in range(50) if number not in taken]
    found = free_numbers(np.array(sorted(taken), dtype=np.int64), np.arange(len(free)))
    assert found.tolist() == free


@given(seeds)
def test_a_redrawn_split_has_other_nodes_and_the_same_sizes(seed: int) -> None:
    redrawn, plain = load(f"redrawn_split:{PLAIN}", seed=seed), load(PLAIN)
    assert changed(redrawn, plain) <= set(MASKS)
    assert torch.bincount(redrawn.y[redrawn.train_mask]).tolist() == [8, 8, 8]
    for mask in MASKS:
        assert int(redrawn[mask].sum()) == int(plain[mask].sum())
    assert int(sum(redrawn[mask].int() for mask in MASKS).max()) == 1  # no node in two parts


def test_a_redrawn_split_takes_labelled_nodes_alone(tmp_path: Path) -> None:
    y = [0, 0, 0, 0, 1, 1, 1, -1, -1, -1]
    masks = {
        mask: np.isin(np.arange(10), ids)
        for mask, ids in zip(MASKS, ([0, 4, 5], [1], [2, 6]), strict=True)
    }
    np.savez(tmp_path / "a.npz", x=np.eye(10), edge_index=[[0, 1], [1, 0]], y=y, **masks)
    for seed in range(20):
        drawn = load(f"redrawn_split:{tmp_path / 'a.npz'}", seed=seed)
        assert torch.bincount(drawn.y[drawn.train_mask]).tolist() == [1, 2]
        assert (drawn.y[drawn.val_mask | drawn.test_mask] >= 0).all()


@given(st.integers(1, 8), seeds)
def test_few_labels_leave_that_many_training_nodes_of_every_class(number: int, seed: int) -> None:
    harder, plain = load(f"labels_per_class={number}:{PLAIN}", seed=seed), load(PLAIN)
    assert torch.bincount(plain.y[plain.train_mask]).tolist() == [8, 8, 8]
    assert changed(harder, plain) == (set() if number == 8 else {"train_mask"})
    assert torch.bincount(harder.y[harder.train_mask]).tolist() == [number] * 3
    assert not (harder.train_mask & ~plain.train_mask).any()


def test_more_labels_than_there_are_is_an_error() -> None:
    with pytest.raises(DataError, match=r"one class has only 8\. Ask for at most 8"):
        load(f"labels_per_class=9:{PLAIN}")


@pytest.mark.parametrize("prefix", [change.example for change in CHANGES.values()])
def test_name_and_seed_determine_the_graph_and_its_digest(prefix: str) -> None:
    graphs = [load(prefix + PLAIN, seed=seed) for seed in (0, 0, 1)]
    assert all(graph.digest == graph_digest(graph) for graph in graphs)
    assert all(graph.name == prefix + PLAIN for graph in graphs)
    assert graphs[0].digest == graphs[1].digest != load(PLAIN).digest
    drawn = prefix != "missing_features:"
    assert (graphs[0].digest != graphs[2].digest) == drawn


def test_a_larger_share_changes_the_same_nodes_and_more() -> None:
    plain = load(PLAIN)
    few, many = (
        (load(f"corrupted_features={share}:{PLAIN}").x != plain.x).any(dim=1)
        for share in (0.2, 0.6)
    )
    assert bool((few & many == few).all())


def test_every_split_draws_its_own(tmp_path: Path) -> None:
    plain, path = load(PLAIN), tmp_path / "a.npz"
    masks = {mask: torch.stack([plain[mask]] * 2, dim=1) for mask in MASKS}
    np.savez(path, x=plain.x, edge_index=plain.edge_index, y=plain.y, **masks)
    first, second = (load(f"extra_edges=0.5:{path}", split=split) for split in (0, 1))
    assert torch.equal(first.train_mask, second.train_mask)
    assert not torch.equal(first.edge_index, second.edge_index)


def test_prefixes_compose_in_any_order() -> None:
    prefixes = [change.example for change in CHANGES.values()]
    digests = {load("".join(order) + PLAIN, seed=3).digest for order in permutations(prefixes)}
    assert len(digests) == 1
    both = load(f"missing_features:labels_per_class=2:{PLAIN}")
    assert int(both.x.any(dim=1).sum()) == int(both.train_mask.sum()) == 6


def test_harder_graphs_are_the_same_on_every_platform() -> None:
    # These digests may change only on purpose: a change alters the results of all users.
    digests = {
        "redrawn_split:": "2c2cfc17cde27119",
        "labels_per_class=5:": "57ebd1484c9638e7",
        "corrupted_features=0.3:": "7c1269b1d15a3367",
        "missing_features:": "10ca8ed278c1497b",
        "extra_edges=0.5:": "fee64667064fc5d7",
    }
    assert {prefix: load(f"{prefix}csbm").digest[:16] for prefix in digests} == digests


def test_weights_and_directions_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    edges = [[0, 1, 3], [1, 2, 3]]
    np.savez(path, edge_index=edges, edge_weight=[1.0, 2.0, 6.0], x=np.eye(6), y=[0] * 6)
    weighted = load(f"extra_edges=1:{path}")
    assert weighted.edge_weight.tolist() == [1, 2, 6, 3, 3, 3, 3]  # two edges and a self-loop
    assert eamp.Graph(load(f"extra_edges=1:undirected:{path}")).num_edges == 4
    assert load(f"undirected:extra_edges=0:{path}").edge_weight.tolist() == [1, 1, 2, 2, 6]


def test_names_are_split() -> None:
    assert split_name("cora") == ([], "cora")
    assert split_name("extra_edges=1:C:\\a=b.npz") == ([("extra_edges", "1")], "C:\\a=b.npz")
    assert split_name("missing_features") == ([], "missing_features")
    assert load("missing_features:CSBM").name == "missing_features:CSBM"


@pytest.mark.parametrize(
    ("prefix", "complaint"),
    [
        (
            "corrupted_features:",
            r"a number from 0 to 1, as in corrupted_features=0\.3:cora; got no",
        ),
        ("corrupted_features=:", "got ''"),
        ("corrupted_features=1.1:", "from 0 to 1.* got '1.1'"),
        ("corrupted_features=-0.1:", "got '-0.1'"),
        ("corrupted_features=nan:", "got 'nan'"),
        ("corrupted_features=a lot:", "got 'a lot'"),
        ("extra_edges=-1:", r"a number from 0, as in extra_edges=0\.5:cora"),
        ("extra_edges=inf:", "got 'inf'"),
        ("labels_per_class=0:", "a whole number from 1, as in labels_per_class=5:cora; got '0'"),
        ("labels_per_class=2.5:", "got '2.5'"),
        (f"labels_per_class={'9' * 5000}:", "got '999"),
        ("missing_features=0.5:", "missing_features has no value; write missing_features:<name"),
        ("undirected=1:", "undirected has no value"),
        ("undirected:extra_edges=1:undirected:", "the prefix undirected twice; keep one"),
        ("missing_feature:", "Did you mean 'missing_features'"),
        ("corrupted=0.3:", "Did you mean 'corrupted_features'"),
        (
            "noise=0.3:",
            r"there is no dataset 'noise=0.3:csbm.* prefixes undirected:, redrawn_split:, l",
        ),
    ],
)
def test_wrong_prefixes_get_a_sentence(prefix: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        load(f"{prefix}{PLAIN}")


def test_named_datasets_have_harder_versions(tiny: dict[str, Any], tmp_path: Path) -> None:
    tiny["cora"].write_folder(tmp_path / "files")
    plain = load("cora", folder=tmp_path / "files")
    harder = load("missing_features:Cora")
    assert harder.name == "missing_features:cora"
    assert harder.digest != plain.digest
    assert changed(harder, plain) == {"x"}


def test_a_class_without_training_nodes_is_noticed(tmp_path: Path) -> None:
    data = load("csbm:nodes=60,features=8,classes=3")
    arrays = {name: data[name].numpy() for name in ("x", "edge_index", "y", *MASKS)}
    arrays["train_mask"] &= arrays["y"] != 2
    np.savez(tmp_path / "own.npz", **arrays)
    with pytest.raises(DataError, match="one class has only 0"):
        load(f"labels_per_class=2:{tmp_path / 'own.npz'}")
