"""Dropout of some rows drops what dropout of all drops there."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import eamp
from eamp.ops.dropout import dropout
from eamp.ops.placed_dropout import Places, _dropout_rows, placed


@given(
    rows=st.integers(1, 300),
    width=st.sampled_from([1, 7, 64, 5000]),
    p=st.floats(0.05, 0.95),
    double=st.booleans(),
)
def test_rows_are_dropped_as_in_the_whole(rows: int, width: int, p: float, double: bool) -> None:
    x = torch.ones(
        rows if width < 5000 else rows % 7 + 1,
        width,
        dtype=torch.float64 if double else torch.float32,
    )
    nodes = torch.arange(x.size(0))[:: 1 + rows % 3]
    torch.manual_seed(rows)
    wanted = dropout(x, p)[nodes]
    torch.manual_seed(rows)
    with placed(Places(nodes)):
        assert torch.equal(dropout(x[nodes], p), wanted)
        assert dropout(x, p, training=False) is x
    assert dropout(x, p).shape == x.shape


def test_sparse_rows_too() -> None:
    x = (torch.rand(50, 40) * (torch.rand(50, 40) < 0.1)).to_sparse_csr()
    nodes = torch.tensor([0, 3, 4, 30, 49])
    torch.manual_seed(0)
    wanted = dropout(x, 0.5).to_dense()[nodes]
    torch.manual_seed(0)
    with placed(Places(nodes, x.crow_indices()[nodes].long())):
        got = dropout(x.to_dense()[nodes].to_sparse_csr(), 0.5)
    assert torch.equal(got.to_dense(), wanted)


def test_the_gradient_passes_where_the_value_did() -> None:
    x = torch.randn(20, 6, requires_grad=True)
    with placed(Places(torch.arange(20) * 3)):
        out = dropout(x, 0.6)
    (grad,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(grad, out.detach() / x.detach())


def test_what_is_no_embedding_of_the_part_is_not_dropped_wrongly() -> None:
    with placed(Places(torch.arange(4))):
        for x in (
            torch.ones(5, 2),
            torch.ones(4),
            torch.ones(4, 2).to_sparse_csr(),
            torch.ones(4, 2, dtype=torch.bfloat16),
        ):
            with pytest.raises(eamp.GraphError, match="spread over several processes"):
                dropout(x, 0.5)


def test_it_is_a_sound_operator() -> None:
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(
        _dropout_rows.registered,
        (x, torch.tensor(5), 0.4, torch.arange(4) * 9, torch.arange(5) * 3),
    )
