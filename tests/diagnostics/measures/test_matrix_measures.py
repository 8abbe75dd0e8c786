from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eamp.diagnostics import (
    column_correlation,
    dead_units,
    effective_rank,
    matrix_rank,
    norm,
    numerical_rank,
    rank_one_distance,
)
from eamp.diagnostics.measures import embedding


@st.composite
def matrices(draw: st.DrawFn) -> Tensor:
    shape = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    return torch.randn(
        shape,
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(draw(st.integers(0, 2**31))),
    )


def test_effective_rank_by_hand() -> None:
    # Singular values 3, 1: shares 3/4, 1/4.
    expected = math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert effective_rank(
        torch.tensor([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    ).item() == pytest.approx(expected)
    assert effective_rank(
        torch.outer(torch.arange(1.0, 9.0), torch.ones(5))
    ).item() == pytest.approx(1, abs=1e-4)


@given(matrices(), st.floats(1e-300, 1e200))
def test_ranks_see_neither_scale_nor_orientation(x: Tensor, factor: float) -> None:
    values = torch.linalg.svdvals(x)
    share = values / values.sum()
    torch.testing.assert_close(
        effective_rank(factor * x), torch.special.entr(share).sum().exp(), rtol=1e-4, atol=1e-4
    )
    torch.testing.assert_close(effective_rank(x.T), effective_rank(x), rtol=1e-6, atol=1e-6)
    assert 1 - 1e-9 <= effective_rank(x).item() <= min(x.shape) + 1e-9
    torch.testing.assert_close(
        numerical_rank(factor * x),
        torch.linalg.matrix_norm(x).square() / torch.linalg.matrix_norm(x, 2).square(),
    )
    nearest = x - torch.linalg.svd(x).U[:, :1] @ torch.linalg.svd(x).U[:, :1].T @ x
    torch.testing.assert_close(
        rank_one_distance(factor * x),
        torch.linalg.matrix_norm(nearest, "nuc") / torch.linalg.matrix_norm(x, "nuc"),
        rtol=1e-4,
        atol=1e-6,
    )
    assert matrix_rank(factor * x).item() == matrix_rank(x).item()


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_matrix_rank_counts_directions_in_float32(rank: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, rank, generator=generator) @ torch.randn(rank, 20, generator=generator)
    assert matrix_rank(x).item() == rank
    weak = torch.diag(torch.tensor([1.0, 1e-3]))
    assert matrix_rank(weak).item() == 2
    assert matrix_rank(weak, tolerance=1e-2).item() == 1


def test_ranks_of_what_is_not_finite_or_nothing_at_all() -> None:
    for measure in (effective_rank, numerical_rank, rank_one_distance, column_correlation):
        assert measure(torch.tensor([[1.0, math.nan], [2.0, 3.0]])).isnan()
        assert measure(torch.tensor([[1.0, math.inf], [2.0, 3.0]])).isnan()
        assert measure(torch.zeros(3, 2)).isnan()
    assert matrix_rank(torch.tensor([[1.0, math.inf]])).isnan()
    assert matrix_rank(torch.zeros(3, 2)).item() == 0


@given(matrices())
def test_column_correlation_is_that_of_every_pair(x: Tensor) -> None:
    n, width = x.shape
    value = column_correlation(x).item()
    if n < 2 or width < 2:
        assert math.isnan(value)
        return
    pairs = [(i, j) for i in range(width) for j in range(width) if i != j]
    pearson = [abs(torch.corrcoef(x[:, [i, j]].T)[0, 1].item()) for i, j in pairs]
    assert value == pytest.approx(sum(pearson) / len(pairs), rel=1e-6)


def test_column_correlation_sees_neither_scales_nor_offsets_nor_constant_units() -> None:
    x = torch.randn(30, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = column_correlation(x).item()
    moved = x * torch.tensor([1e-6, -2.0, 30.0, 1.0]) + torch.tensor([0.0, 5.0, 1.0, -2.0])
    assert column_correlation(moved).item() == pytest.approx(expected)
    beside = torch.cat([x, torch.full((30, 2), 0.1)], 1)
    assert column_correlation(beside).item() == pytest.approx(expected)


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_products_are_summed_over_all_blocks_of_rows(offset: float) -> None:
    rows = 5 * embedding.BLOCK // 2 // 8
    x = torch.randn(rows, 8, generator=torch.Generator().manual_seed(0)) + offset
    means, products = embedding.Embedding(x).moments
    torch.testing.assert_close(means, x.double().mean(0))
    torch.testing.assert_close(products / (rows - 1), x.double().T.cov())
    narrow = embedding.Embedding(x, dtype=torch.float32)
    torch.testing.assert_close(narrow.moments, (means, products))
    expected = torch.linalg.svdvals(x.double())
    torch.testing.assert_close(narrow.singular_values.flip(0), expected, rtol=1e-6, atol=0)


def test_norm_is_the_root_mean_square() -> None:
    assert norm(torch.tensor([[1.0, 2.0], [2.0, 4.0]])).item() == pytest.approx(2.5)
    assert norm(torch.full((3, 2), 1e-30)).item() == pytest.approx(1e-30)
    assert norm(torch.full((3, 2), 1e200, dtype=torch.float64)).item() == pytest.approx(1e200)
    assert norm(torch.zeros(2, 2)).item() == 0
    assert norm(torch.tensor([[1.0, math.inf]])).item() == math.inf
    assert norm(torch.tensor([[1.0, math.nan]])).isnan()


def test_norm_can_be_compared_between_widths() -> None:
    x = torch.randn(20, 3)
    assert norm(torch.cat([x, x], 1)).item() == pytest.approx(norm(x).item())


def test_dead_units_are_columns_of_zeros() -> None:
    x = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]])
    assert dead_units(x).item() == 0.5
