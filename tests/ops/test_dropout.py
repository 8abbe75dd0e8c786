"""Dropout by hashing: a fair coin for every element, the same coin in both directions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import eamp
from eamp.graph import Rows
from eamp.ops.backends.numba_cpu.dropout import PIECE
from eamp.ops.dropout import _dropout, dropout, row_dropout


def seeded(x: Tensor, p: float, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    return dropout(x, p)


@given(
    size=st.sampled_from([1, 7, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 3]),
    p=st.floats(0.01, 0.99),
    double=st.booleans(),
)
def test_elements_are_zero_or_scaled(size: int, p: float, double: bool) -> None:
    x = torch.arange(1, size + 1, dtype=torch.float64 if double else torch.float32)
    out = seeded(x, p)
    kept = out != 0
    torch.testing.assert_close(out[kept], x[kept] / (1 - p))
    assert abs(int(kept.sum()) - size * (1 - p)) <= 6 * (size * p * (1 - p)) ** 0.5 + 1


def test_no_element_knows_of_another() -> None:
    n = 2**20
    masks = torch.stack([(dropout(torch.ones(n), 0.5) != 0).double() for _ in range(3)]) - 0.5
    bound = 6 * 0.25 / n**0.5
    for lag in (1, 2, 3, 16, 64, 1433, PIECE, 2 * PIECE):
        assert abs(float((masks[0, lag:] * masks[0, :-lag]).mean())) < bound * 1.1
    assert abs(float((masks[0] * masks[1]).mean())) < bound
    assert abs(float((masks[1] * masks[2]).mean())) < bound
    ones = (
        (masks[0].view(-1, 16) > 0).sum(1).double()
    )  # the number of ones among 16 neighbours is binomial
    assert float(ones.var()) == pytest.approx(4, rel=0.05)


def test_the_seed_decides_and_the_threads_do_not() -> None:
    x = torch.randn(37, 1001)
    first = seeded(x, 0.3)
    assert torch.equal(first, seeded(x, 0.3))
    assert not torch.equal(first, seeded(x, 0.3, seed=1))
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 2)
        assert torch.equal(first, seeded(x, 0.3))
    finally:
        torch.set_num_threads(threads)


def test_the_gradient_passes_where_the_value_did() -> None:
    x = torch.randn(100, 60, requires_grad=True)
    out = dropout(x, 0.6)
    (grad,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(grad, out.detach() / x.detach())


def test_it_is_a_sound_operator() -> None:
    x = torch.randn(40, 3, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(_dropout.registered, (x, torch.tensor(5), 0.4, None, None))
    assert torch.autograd.gradgradcheck(
        lambda x: _dropout(x, torch.tensor(5), 0.4, None, None) ** 2, x
    )


def test_it_is_the_same_under_strides() -> None:
    x = torch.randn(50, 30)
    assert torch.equal(seeded(x.t(), 0.5), seeded(x.t().contiguous(), 0.5))


def test_outside_training_nothing_happens() -> None:
    x = torch.randn(5)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0) is x


def test_everything_can_be_dropped() -> None:
    assert not dropout(torch.ones(5), 1.0).any()


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_what_is_no_probability_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        dropout(torch.ones(5), p)


def test_half_precision_is_torchs() -> None:
    out = dropout(torch.ones(1000, dtype=torch.bfloat16), 0.5)
    assert out.dtype == torch.bfloat16
    assert 400 < int((out != 0).sum()) < 600


def test_of_a_sparse_matrix_the_values_are_dropped() -> None:
    dense = torch.eye(40) * 3
    weight = torch.randn(40, 5, requires_grad=True)
    sparse = seeded(dense.to_sparse_csr(), 0.5)
    assert set(sparse.to_dense().unique().tolist()) == {0.0, 6.0}
    (sparse @ weight).sum().backward()
    assert weight.grad is not None
    torch.testing.assert_close(weight.grad, sparse.to_dense().t() @ torch.ones(40, 5))


# --- Rows of a larger embedding ---------------------------------------------------------------


@given(
    rows=st.integers(1, 300),
    width=st.sampled_from([1, 7, 64, 5000]),
    p=st.floats(0.05, 0.95),
    double=st.booleans(),
)
def test_rows_are_dropped_as_in_the_whole(rows: int, width: int, p: float, double: bool) -> None:
    height, dtype = (
        rows if width < 5000 else rows % 7 + 1,
        torch.float64 if double else torch.float32,
    )
    x = torch.ones(height, width, dtype=dtype)
    nodes = torch.arange(height)[:: 1 + rows % 3]
    wanted = seeded(x, p, rows)[nodes]
    torch.manual_seed(rows)
    assert torch.equal(dropout(x[nodes], p, rows=Rows(nodes)), wanted)
    assert dropout(x[nodes], p, training=False, rows=Rows(nodes)).shape == wanted.shape


def test_sparse_rows_are_dropped_as_in_the_whole() -> None:
    x = (torch.rand(50, 40) * (torch.rand(50, 40) < 0.1)).to_sparse_csr()
    nodes = torch.tensor([0, 3, 4, 30, 49])
    wanted = seeded(x, 0.5).to_dense()[nodes]
    torch.manual_seed(0)
    rows = Rows(nodes, x.crow_indices()[nodes].long())
    got = dropout(x.to_dense()[nodes].to_sparse_csr(), 0.5, rows=rows)
    assert torch.equal(got.to_dense(), wanted)


def test_the_gradient_of_rows_passes_where_the_value_did() -> None:
    x = torch.randn(20, 6, requires_grad=True)
    out = dropout(x, 0.6, rows=Rows(torch.arange(20) * 3))
    (grad,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(grad, out.detach() / x.detach())


@pytest.mark.parametrize(
    "x",
    [
        torch.ones(5, 2),
        torch.ones(4),
        torch.ones(4, 2).to_sparse_csr(),
        torch.ones(4, 2, dtype=torch.bfloat16),
    ],
    ids=["more rows", "a vector", "sparse hidden features", "half precision"],
)
def test_tensors_that_are_no_embedding_of_the_rows_are_refused(x: Tensor) -> None:
    with pytest.raises(eamp.GraphError, match="spread over processes"):
        dropout(x, 0.5, rows=Rows(torch.arange(4)))


def test_dropout_of_rows_is_a_sound_operator() -> None:
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    places = (torch.arange(4) * 9, torch.arange(5) * 3)
    torch.library.opcheck(_dropout.registered, (x, torch.tensor(5), 0.4, *places))


def test_whole_rows_are_dropped_dense_or_sparse_and_in_parts() -> None:
    x = torch.rand(400, 5) + 1
    x[:, 3] = 0
    torch.manual_seed(0)
    out = row_dropout(x, 0.3)
    kept = (out != 0).any(1)
    torch.testing.assert_close(out[kept], x[kept] / 0.7)
    assert 240 < int(kept.sum()) < 320
    torch.manual_seed(0)
    sparse = row_dropout(x.to_sparse_csr(), 0.3)
    assert sparse.layout == torch.sparse_csr
    assert torch.equal(sparse.to_dense(), out)
    nodes = torch.tensor([3, 8, 120, 399])
    torch.manual_seed(0)
    assert torch.equal(row_dropout(x[nodes], 0.3, rows=Rows(nodes)), out[nodes])
    assert row_dropout(x, 0.3, training=False) is x


def test_the_gradient_of_dropped_rows_is_0() -> None:
    x = torch.rand(50, 3, requires_grad=True)
    out = row_dropout(x, 0.5)
    out.sum().backward()
    assert torch.equal(x.grad, torch.where(out != 0, 2.0, 0.0))
