from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import eamp
from diagnostics.faulty_models import features, grid
from eamp.diagnostics import group_distance_ratio, mad, mad_gap
from eamp.diagnostics.measures.similarity import remote_nodes, within_hops
from problems import problems, undirected


def path(n: int) -> Tensor:
    return undirected(*((i, i + 1) for i in range(n - 1)))


def test_mad_by_hand() -> None:
    # Directions 0°, 60°, 90° on a path: 1 − cos 60° = 1/2, 1 − cos 30°.
    angle = torch.tensor([0.0, 60.0, 90.0]).deg2rad()
    x = torch.stack([angle.cos(), angle.sin()], 1) * torch.tensor([[3.0], [0.1], [7.0]])
    near = 1 - math.cos(math.radians(30))
    assert mad(x, path(3)).item() == pytest.approx((1 / 2 + (1 / 2 + near) / 2 + near) / 3)


def test_mad_of_parallel_opposite_and_zero_rows() -> None:
    pair = path(2)
    assert mad(torch.tensor([[1.0, 2.0], [10.0, 20.0]]), pair).item() == pytest.approx(0, abs=1e-12)
    assert mad(torch.tensor([[1.0, 2.0], [-1.0, -2.0]]), pair).item() == pytest.approx(2)
    assert mad(torch.tensor([[1.0, 2.0], [0.0, 0.0]]), pair).item() == pytest.approx(0.5)
    assert mad(torch.zeros(2, 2), pair).item() == 0


def test_mad_leaves_isolated_nodes_out() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    assert mad(x, eamp.Graph(path(2), 3)).item() == pytest.approx(1)


@given(problems(weighted=False, min_nodes=2), st.floats(1e-300, 1e200), st.integers(0, 1000))
def test_mad_sees_neither_scale_nor_numbering(
    problem: tuple[Tensor, eamp.Graph], factor: float, seed: int
) -> None:
    x, graph = problem
    new_number = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))
    moved = torch.empty_like(x)
    moved[new_number] = factor * x
    renumbered = eamp.Graph(new_number[graph.edge_index], graph.num_nodes)
    torch.testing.assert_close(
        mad(moved, renumbered), mad(x, graph), atol=1e-9, rtol=1e-9, equal_nan=True
    )


@given(problems(weighted=False, min_nodes=2), st.integers(1, 4))
def test_mad_gap_is_the_literal_average(problem: tuple[Tensor, eamp.Graph], hops: int) -> None:
    x, graph = problem
    n = graph.num_nodes
    distance = torch.full((n, n), math.inf)
    for source in range(n):  # breadth first
        distance[source, source] = 0
        for k in range(n):
            frontier = (distance[source] == k).nonzero().flatten()
            for j in graph.edge_index[1][torch.isin(graph.edge_index[0], frontier)]:
                distance[source, j] = min(float(distance[source, j]), k + 1)
    cosine = 1 - torch.nn.functional.cosine_similarity(x.unsqueeze(0), x.unsqueeze(1), dim=2)
    remote = [
        float(cosine[i][distance[i] >= hops].mean())
        for i in range(n)
        if (distance[i] >= hops).any()
    ]
    near = [float(cosine[i][distance[i] == 1].mean()) for i in range(n) if (distance[i] == 1).any()]
    expected = sum(remote) / len(remote) - sum(near) / len(near) if remote and near else math.nan
    assert mad_gap(x, graph, remote_hops=hops).item() == pytest.approx(
        expected, abs=1e-6, nan_ok=True
    )


def test_mad_gap_is_large_for_two_communities_and_nothing_after_collapse() -> None:
    edge_index = path(30)
    side = torch.where(torch.arange(30) < 15, 0.0, math.pi / 2)
    x = torch.stack([side.cos(), side.sin()], 1)
    assert mad_gap(x, edge_index).item() > 0.5
    assert mad_gap(torch.ones(30, 2), edge_index).item() == pytest.approx(0, abs=1e-9)


def test_mad_gap_needs_remote_nodes() -> None:
    assert mad_gap(torch.randn(3, 2), path(3)).isnan()


def test_remote_nodes_are_sampled_with_a_fixed_seed_and_remembered() -> None:
    graph = eamp.Graph(grid())
    sources, is_remote = remote_nodes(graph, 8, 16, 0)
    assert sources.numel() == 16
    assert is_remote.shape == (100, 16)
    assert remote_nodes(graph, 8, 16, 0)[1] is is_remote
    assert torch.equal(remote_nodes(eamp.Graph(grid()), 8, 16, 0)[0], sources)
    assert not torch.equal(remote_nodes(graph, 8, 16, 1)[0], sources)


def test_remote_nodes_by_hand() -> None:
    graph = eamp.Graph(path(4), 5)  # and an isolated node
    within = within_hops(graph, torch.tensor([0]), 2)
    assert within.flatten().tolist() == [1, 1, 1, 0, 0]


def test_random_numbers_of_torch_stay_as_they_were() -> None:
    state = torch.get_rng_state()
    mad_gap(features(), grid())
    group_distance_ratio(torch.ones(2000, 2).cumsum(0), torch.arange(2000) % 2)
    assert torch.equal(torch.get_rng_state(), state)


def test_group_distance_ratio_by_hand() -> None:
    x = torch.tensor([[0.0], [2.0], [10.0], [14.0], [99.0]])
    labels = torch.tensor([5, 5, 7, 7, -1])  # within: 2 and 4; between: 10, 14, 8, 12
    assert group_distance_ratio(x, labels).item() == pytest.approx(11 / 3)
    assert group_distance_ratio(1e-30 * x, labels).item() == pytest.approx(11 / 3)
    assert group_distance_ratio(1e4 + x, labels).item() == pytest.approx(11 / 3)


def test_group_distance_ratio_is_one_where_labels_say_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3000, 8, generator=generator)
    labels = torch.randint(0, 3, (3000,), generator=generator)
    assert group_distance_ratio(x, labels).item() == pytest.approx(1, abs=0.01)
    assert group_distance_ratio(x + 5 * labels.unsqueeze(1), labels).item() > 3


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2], [-1, -1, -1]])
def test_group_distance_ratio_needs_two_classes_and_two_nodes_of_one(labels: list[int]) -> None:
    assert group_distance_ratio(torch.randn(3, 2), torch.tensor(labels)).isnan()
