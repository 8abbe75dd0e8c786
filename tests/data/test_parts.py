"""Parts of many graphs and of links: folds, stratification, seeds, leaks and mistakes."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import eamp
from eamp.data import DataError, k_fold, link_split
from eamp.data.seeding import generator, mixed, seeded


def labelled(labels: list[object]) -> list[Data]:
    return [Data(y=torch.tensor([label]), number=n) for n, label in enumerate(labels)]


@given(
    st.lists(st.integers(0, 3), min_size=10, max_size=60), st.integers(3, 10), st.integers(0, 99)
)
def test_folds_are_disjoint_stratified_and_cover_all(
    labels: list[int], folds: int, seed: int
) -> None:
    graphs, tests = labelled(labels), []
    for split in range(folds):
        parts = k_fold(graphs, split, folds=folds, seed=seed)
        numbers = [graph.number for part in parts for graph in part]
        assert sorted(numbers) == list(range(len(graphs)))
        assert {graph.number for graph in parts[2]} == {
            graph.number for graph in k_fold(graphs, (split - 1) % folds, folds=folds, seed=seed)[1]
        }
        tests += [graph.number for graph in parts[2]]
        for label in set(labels):
            share = labels.count(label) / folds
            found = sum(int(graph.y) == label for graph in parts[2])
            assert share - 1 < found < share + 1
    assert sorted(tests) == list(range(len(graphs)))


def test_another_seed_is_another_cut_and_numbers_are_not_classes() -> None:
    graphs = labelled([n % 2 for n in range(40)])
    cut = [[g.number for g in k_fold(graphs, seed=seed)[2]] for seed in (0, 0, 1)]
    assert cut[0] == cut[1] != cut[2]
    assert [len(part) for part in k_fold(labelled([n / 7 for n in range(25)]), 2)] == [19, 3, 3]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"split": 10}, "no split 10: there are 10 folds. Pass a number from 0 to 9"),
        ({"split": "a"}, "split must be a whole number; got 'a'"),
        ({"folds": 2}, "40 graphs cannot be cut into 2 folds; pass folds from 3"),
        ({"folds": 41}, "cannot be cut into 41 folds"),
    ],
)
def test_a_fold_that_is_not_there_is_an_error(options: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=said):
        k_fold(labelled([0] * 40), **options)  # type: ignore[arg-type]  # mistakes


def edge_set(pairs: torch.Tensor) -> set[tuple[int, int]]:
    return {(min(pair), max(pair)) for pair in pairs.T.tolist()}


def test_links_of_the_test_are_not_in_the_graphs_that_predict_them() -> None:
    data = eamp.data.load("csbm:nodes=80,features=8,seed=1")
    train, val, test = link_split(data)
    everything = edge_set(data.edge_index)
    for part in (train, val, test):
        links = edge_set(part.edge_label_index[:, part.edge_label == 1])
        others = edge_set(part.edge_label_index[:, part.edge_label == 0])
        assert links <= everything
        assert not others & everything
        assert part is train or not links & edge_set(part.edge_index)
    assert edge_set(train.edge_index) == edge_set(train.edge_label_index)
    assert edge_set(val.edge_index) == edge_set(train.edge_index)
    assert edge_set(test.edge_index) < everything
    assert "edge_label" not in data


def test_the_draw_depends_on_the_split_alone() -> None:
    data = eamp.data.load("grid:10x10")
    draws = []
    for split, seed in ((0, 1), (0, 2), (1, 1)):
        torch.manual_seed(seed)
        random.seed(seed)
        draws.append(link_split(data, split)[2].edge_label_index)
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_graphs_without_links_to_spare_are_refused() -> None:
    directed = Data(torch.ones(3, 1), torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(DataError, match=r"undirected graph; .*ToUndirected\(\)"):
        link_split(directed)
    with pytest.raises(DataError, match="leave a part without a link; pass val= and test="):
        link_split(eamp.data.load("grid:3x3"))


def test_seeds_leave_the_generators_as_they_are() -> None:
    before, state = torch.get_rng_state(), random.getstate()
    with seeded(3):
        first = torch.rand(2), random.random()
    with seeded(3):
        second = torch.rand(2), random.random()
    assert torch.equal(first[0], second[0])
    assert first[1] == second[1]
    assert torch.equal(torch.get_rng_state(), before)
    assert random.getstate() == state
    assert mixed(-1) == mixed(2**64 - 1) != mixed(1)
    assert torch.equal(
        torch.rand(3, generator=generator(1, 2)), torch.rand(3, generator=generator(1, 2))
    )


@pytest.mark.filterwarnings("ignore:There are not enough negative edges")  # of PyG
def test_a_graph_in_which_all_pairs_are_linked_is_refused() -> None:
    pairs = torch.combinations(torch.arange(5)).t()
    complete = Data(x=torch.ones(5, 1), edge_index=torch.cat([pairs, pairs.flip(0)], 1))
    with pytest.raises(DataError, match=r"all pairs of the 5 nodes are linked, .*for validation"):
        link_split(complete, val=0.2, test=0.2)


def test_an_edge_that_is_listed_twice_is_in_one_part() -> None:
    grid = eamp.data.load("grid:10x10")
    one_way = grid.edge_index[:, grid.edge_index[0] < grid.edge_index[1]]
    twice = torch.cat([one_way, one_way, one_way.flip(0), one_way.flip(0)], 1)
    weight = torch.ones(twice.size(1))
    train, _, test = link_split(Data(x=grid.x, edge_index=twice, edge_weight=weight))
    passing = set(map(tuple, train.edge_index.T.tolist()))
    tested = test.edge_label_index[:, test.edge_label == 1].T.tolist()
    assert tested
    assert not passing & set(map(tuple, tested))
    assert (train.edge_weight == 2).all()
    expected, got = (
        link_split(Data(x=grid.x, edge_index=edges))[0].edge_index
        for edges in (grid.edge_index, twice)
    )
    assert torch.equal(expected, got)
