from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import eamp
from diagnostics.faulty_models import features, grid, mean_of_neighbourhood, star_of_stars
from eamp.diagnostics import (
    laplacian_energy,
    mean_energy,
    rayleigh_quotient,
    relative_energy,
    rusch_energy,
)
from eamp.nn.conv.gcn_conv import gcn_propagate
from problems import PROBLEMS, problems, undirected

Measure = Callable[[Tensor, eamp.Graph], Tensor]
QUADRATIC = [mean_energy, rusch_energy, laplacian_energy]
SCALE_FREE = [relative_energy, rayleigh_quotient]


@pytest.mark.parametrize("name", PROBLEMS)
def test_mean_energy_is_the_mean_of_the_paper_s(name: str) -> None:
    edge_index, x, energy = PROBLEMS[name]
    assert mean_energy(x, edge_index).item() == pytest.approx(sum(energy) / len(energy))


def test_by_hand_on_a_path() -> None:
    edge_index, x, _ = PROBLEMS["path"]  # 0 – 1 – 3, degrees 1, 2, 1
    assert rusch_energy(x, edge_index).item() == pytest.approx((1 + 5 + 4) / 3)
    a, b, c = 0 / math.sqrt(2), 1 / math.sqrt(3), 3 / math.sqrt(2)
    assert laplacian_energy(x, edge_index).item() == pytest.approx((a - b) ** 2 + (b - c) ** 2)
    assert relative_energy(x, edge_index).item() == pytest.approx((1 + 4) / (0 + 2 * 1 + 9))
    assert rayleigh_quotient(x, edge_index).item() == pytest.approx(
        ((a - b) ** 2 + (b - c) ** 2) / 10
    )


def test_opposite_neighbours_have_relative_energy_two_and_equal_ones_zero() -> None:
    square = undirected((0, 1), (1, 2), (2, 3), (3, 0))
    assert relative_energy(
        torch.tensor([[1.0], [-1.0], [1.0], [-1.0]]), square
    ).item() == pytest.approx(2)
    assert relative_energy(torch.ones(4, 3), square).item() == 0
    assert relative_energy(
        torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), square
    ).item() == pytest.approx(1)


@given(problems(min_nodes=2))
def test_laplacian_energy_is_the_quadratic_form(problem: tuple[Tensor, eamp.Graph]) -> None:
    x, graph = problem
    n = graph.num_nodes
    weight = (
        torch.ones(graph.edge_index.size(1), dtype=torch.float64)
        if graph.edge_weight is None
        else graph.edge_weight
    )
    adjacency = torch.zeros(n, n, dtype=torch.float64).index_put(
        (graph.edge_index[0], graph.edge_index[1]), weight.double()
    ) + torch.eye(n)
    root = torch.diag(adjacency.sum(1).rsqrt())
    laplacian = torch.eye(n, dtype=torch.float64) - root @ adjacency @ root
    torch.testing.assert_close(
        laplacian_energy(x, graph), (x.T @ laplacian @ x).trace(), atol=1e-10, rtol=1e-8
    )


@pytest.mark.parametrize("measure", QUADRATIC)
@given(problem=problems(), factor=st.floats(1e-12, 1e6))
def test_energies_grow_with_the_square_of_the_scale(
    measure: Measure, problem: tuple[Tensor, eamp.Graph], factor: float
) -> None:
    x, graph = problem
    torch.testing.assert_close(
        measure(factor * x, graph), factor**2 * measure(x, graph), rtol=1e-8, atol=0
    )


@pytest.mark.parametrize("measure", SCALE_FREE)
@given(problem=problems(weighted=False, min_nodes=2), factor=st.floats(1e-300, 1e200))
def test_scale_free_energies_do_not_see_the_scale(
    measure: Measure, problem: tuple[Tensor, eamp.Graph], factor: float
) -> None:
    x, graph = problem
    torch.testing.assert_close(
        measure(factor * x, graph), measure(x, graph), rtol=1e-8, atol=1e-12, equal_nan=True
    )


@pytest.mark.parametrize("measure", SCALE_FREE)
@given(problem=problems(min_nodes=2))
def test_scale_free_energies_lie_between_zero_and_two(
    measure: Measure, problem: tuple[Tensor, eamp.Graph]
) -> None:
    x, graph = problem
    if graph.num_edges:
        assert 0 <= measure(x, graph).item() <= 2 + 1e-12


@pytest.mark.parametrize("measure", [*QUADRATIC, *SCALE_FREE])
@given(problem=problems(weighted=False, min_nodes=2), seed=st.integers(0, 1000))
def test_numbering_of_nodes_does_not_matter(
    measure: Measure, problem: tuple[Tensor, eamp.Graph], seed: int
) -> None:
    x, graph = problem
    new_number = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))
    moved = torch.empty_like(x)
    moved[new_number] = x
    renumbered = eamp.Graph(new_number[graph.edge_index], graph.num_nodes)
    torch.testing.assert_close(
        measure(moved, renumbered), measure(x, graph), rtol=1e-9, atol=1e-12, equal_nan=True
    )


def test_each_scale_free_energy_knows_its_own_end_state() -> None:
    graph = star_of_stars()
    equal = torch.ones(graph.num_nodes, 2)
    convolved = (graph.degree + 1).sqrt().unsqueeze(1).expand(-1, 2)
    assert relative_energy(equal, graph).item() == 0
    assert rayleigh_quotient(equal, graph).item() > 0.01
    assert rayleigh_quotient(convolved, graph).item() == pytest.approx(0, abs=1e-12)
    assert relative_energy(convolved, graph).item() > 0.01


def test_smoothing_lowers_scale_free_energies_and_shrinking_does_not() -> None:
    edge_index, x = grid(), features()
    averaged, convolved = x, x
    for _ in range(50):
        averaged, convolved = (
            mean_of_neighbourhood(averaged, edge_index),
            gcn_propagate(convolved, edge_index),
        )
    assert relative_energy(averaged, edge_index) < 1e-2 * relative_energy(x, edge_index)
    assert rayleigh_quotient(convolved, edge_index) < 1e-2 * rayleigh_quotient(x, edge_index)
    shrunk = 1e-30 * x
    assert mean_energy(shrunk, edge_index).item() == pytest.approx(
        1e-60 * mean_energy(x, edge_index).item(), rel=1e-5
    )
    assert relative_energy(shrunk, edge_index).item() == pytest.approx(
        relative_energy(x, edge_index).item(), rel=1e-5
    )


@pytest.mark.parametrize("measure", SCALE_FREE)
def test_zeros_have_no_scale_free_energy(measure: Measure) -> None:
    assert measure(torch.zeros(4, 2), eamp.Graph(undirected((0, 1)), 4)).isnan()


@pytest.mark.parametrize("measure", [*QUADRATIC, *SCALE_FREE])
def test_can_be_differentiated(measure: Measure) -> None:
    graph = star_of_stars()
    x = torch.randn(
        graph.num_nodes,
        2,
        dtype=torch.float64,
        requires_grad=True,
        generator=torch.Generator().manual_seed(0),
    )
    assert torch.autograd.gradcheck(lambda x: measure(x, graph), x)


def test_directed_graphs_are_refused_as_everywhere() -> None:
    with pytest.raises(eamp.GraphError, match="directed"):
        relative_energy(torch.ones(2, 1), torch.tensor([[0], [1]]))  # type: ignore[arg-type]  # a raw edge_index does as well
