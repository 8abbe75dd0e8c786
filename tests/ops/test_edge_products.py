"""Sums with a weight per edge, against dense matrices."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import eamp
from eamp.ops.edge_products import BLOCK, attended_sums, edge_products
from problems import irregular_graph, problems

BACKENDS = ("numba", "torch", "reference")


def dense(a: Tensor, graph: eamp.Graph) -> Tensor:
    """A weight per edge as an ``[n, n]`` matrix."""
    matrix = a.new_zeros(graph.num_nodes, graph.num_nodes)
    matrix[tuple(graph.edge_index)] = a
    return matrix


@given(problems(), st.sampled_from(BACKENDS))
def test_sums_are_products_with_the_dense_matrix(
    problem: tuple[Tensor, eamp.Graph], backend: str
) -> None:
    x, graph = problem
    a = torch.randn(graph.csr.col.numel(), dtype=x.dtype)
    y = torch.randn_like(x)
    with eamp.backend(backend):
        torch.testing.assert_close(attended_sums(a, x, graph), dense(a, graph) @ x)
        torch.testing.assert_close(
            dense(edge_products(x, y, graph), graph),
            (x @ y.t()) * (dense(torch.ones_like(a), graph)),
        )


def test_products_of_more_features_than_a_block() -> None:
    graph = irregular_graph()
    x, y = torch.randn(2, 10, 2 * BLOCK + 3, dtype=torch.float64)
    row, col = graph.edge_index
    torch.testing.assert_close(edge_products(x, y, graph), (x[row] * y[col]).sum(1))


def test_derivatives_are_exact_at_first_and_second_order() -> None:
    graph = irregular_graph()
    a = torch.randn(graph.csr.col.numel(), dtype=torch.float64, requires_grad=True)
    x, y = (torch.randn(10, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for sums, inputs in ((attended_sums, (a, x)), (edge_products, (x, y))):
        assert torch.autograd.gradcheck(lambda *args, sums=sums: sums(*args, graph), inputs)
        assert torch.autograd.gradgradcheck(lambda *args, sums=sums: sums(*args, graph), inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_are_well_behaved_operators(dtype: torch.dtype) -> None:
    graph = irregular_graph()
    a = torch.randn(graph.csr.col.numel(), dtype=dtype, requires_grad=True)
    x = torch.randn(10, 3, dtype=dtype, requires_grad=True)
    csr = (*graph.csr, "numba")
    torch.library.opcheck(torch.ops.eamp.attention_sums.default, (a, x, *csr))
    torch.library.opcheck(
        torch.ops.eamp.products_per_edge.default, (x, x.detach().clone().requires_grad_(), *csr)
    )


def test_padding_is_neither_read_nor_written() -> None:
    graph = irregular_graph()
    m, pad = graph.csr.col.numel(), 5
    csr = graph.csr._replace(
        col=torch.cat([graph.csr.col, graph.csr.col.new_zeros(pad)]),
        reverse=torch.cat([graph.csr.reverse, graph.csr.reverse[:pad]]),
    )
    padded = eamp.Graph._of(csr, graph.degree)
    x = torch.randn(10, 3)
    a = torch.randn(m)
    long = torch.cat([a, torch.full((pad,), float("nan"))])
    torch.testing.assert_close(attended_sums(long, x, padded), attended_sums(a, x, graph))
    torch.testing.assert_close(
        edge_products(x, x, padded), torch.cat([edge_products(x, x, graph), torch.zeros(pad)])
    )


def test_weights_of_another_graph_are_refused() -> None:
    graph = irregular_graph()
    weights = torch.randn(graph.csr.col.numel() + 1)
    with pytest.raises(ValueError, match="compute the weights on the graph"):
        attended_sums(weights, torch.randn(graph.num_nodes, 3), graph)
