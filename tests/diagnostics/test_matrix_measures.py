from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eamp.diagnostics import dead_units, effective_rank, norm, numerical_rank


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
    assert numerical_rank(factor * x).item() == numerical_rank(x).item()


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_numerical_rank_counts_directions_in_float32(rank: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, rank, generator=generator) @ torch.randn(rank, 20, generator=generator)
    assert numerical_rank(x).item() == rank
    weak = torch.diag(torch.tensor([1.0, 1e-3]))
    assert numerical_rank(weak).item() == 2
    assert numerical_rank(weak, tolerance=1e-2).item() == 1


def test_ranks_of_what_is_not_finite_or_nothing_at_all() -> None:
    assert effective_rank(torch.tensor([[1.0, math.nan]])).isnan()
    assert numerical_rank(torch.tensor([[1.0, math.inf]])).isnan()
    assert effective_rank(torch.zeros(3, 2)).isnan()
    assert numerical_rank(torch.zeros(3, 2)).item() == 0


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
