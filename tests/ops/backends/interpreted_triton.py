"""The GPU kernels against the oracle, on the CPU in Triton's interpreter.

Triton decides between compiler and interpreter when it is imported, for a whole process. So
test_triton_gpu.py runs these tests in a process of their own, as
``TRITON_INTERPRET=1 pytest tests/ops/backends/interpreted_triton.py`` does. A program of the
interpreter takes milliseconds, so graphs are small.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import eamp
from eamp import ops
from eamp.graph import CSR
from eamp.ops import reference
from eamp.ops.backends import load
from eamp.ops.edge_products import attended_sums
from eamp.ops.sums import _weighted
from problems import graphs, irregular_graph, problems, random_graph, undirected

FEW = settings(max_examples=5)
HALVES = (torch.float16, torch.bfloat16)


def random_operands(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """y, q and r beside x."""
    q, r = torch.randn(2, x.size(0)).to(x.dtype)
    return torch.randn(x.shape).to(x.dtype), q, r


def all_sums(name: str, x: Tensor, y: Tensor, q: Tensor, r: Tensor, csr: CSR) -> list[Tensor]:
    sums = load(name)
    return [
        sums.squared_differences(x, csr),
        sums.inner_differences(x, y, csr),
        sums.weighted_differences(q, x, csr),
        sums.weighted_differences(q, x, csr, r, y),
        sums.neighbour_sums(q, x, r, csr, False),
        sums.neighbour_sums(q, x, r, csr, True),
        sums.channel_products(x, y, csr),
        sums.channel_products(x, x, csr),
        sums.channel_differences(y, x, csr),
    ]


def check(x: Tensor, csr: CSR, tolerance: float) -> None:
    """All sums of x, and of random operands beside it, against the oracle in float64."""
    given = (x, *random_operands(x))
    exact = csr._replace(edge_weight=None if csr.edge_weight is None else csr.edge_weight.double())
    expected = all_sums("reference", *(operand.double() for operand in given), exact)  # type: ignore[arg-type]
    for result, value in zip(all_sums("triton", *given, csr), expected, strict=True):
        assert result.dtype == (torch.float32 if x.dtype in HALVES else x.dtype)
        torch.testing.assert_close(result.double(), value, rtol=tolerance, atol=tolerance)


# --- Against the oracle ---------------------------------------------------------------------


@FEW
@given(problems())
def test_all_sums_agree_with_the_oracle(problem: tuple[Tensor, eamp.Graph]) -> None:
    x, graph = problem
    check(x, graph.csr, 1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_half_precision_and_float32_are_summed_in_float32(
    dtype: torch.dtype, weighted: bool
) -> None:
    check(torch.randn(9, 6).to(dtype), random_graph(9, 20, weighted=weighted).csr, 2e-5)


@pytest.mark.parametrize(
    ("features", "leaves"), [(1, 34), (20, 9), (131, 5)]
)  # in tiles of 32 × 1, 8 × 32 and 2 × 128
def test_rows_longer_than_a_tile_and_features_that_do_not_fill_one(
    features: int, leaves: int
) -> None:
    hub = eamp.Graph(undirected(*((0, j) for j in range(1, leaves + 1))))
    check(torch.randn(leaves + 1, features, dtype=torch.float64), hub.csr, 1e-12)


def test_64_bit_indices_give_the_same() -> None:
    csr = random_graph(8, 16, weighted=True).csr
    assert csr.col.dtype == torch.int32
    wide = csr._replace(rowptr=csr.rowptr.long(), col=csr.col.long(), reverse=csr.reverse.long())
    given = (x := torch.randn(8, 5), *random_operands(x))
    for a, b in zip(all_sums("triton", *given, wide), all_sums("triton", *given, csr), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3, 2)])
def test_no_nodes_no_features_no_edges(shape: tuple[int, int]) -> None:
    check(torch.ones(shape), eamp.Graph(torch.empty(2, 0, dtype=torch.int64), shape[0]).csr, 1e-6)


def test_edges_without_features_sum_to_zero() -> None:
    check(torch.ones(10, 0), irregular_graph().csr, 0.0)


def test_strided_operands() -> None:
    check(torch.randn(3, 10, dtype=torch.float64).t(), irregular_graph().csr, 1e-12)
    csr = irregular_graph().csr
    given = [
        torch.randn(10, 6)[:, ::2],
        torch.randn(3, 10).t(),
        torch.randn(10, 2)[:, 0],
        torch.randn(20)[::2],
    ]
    assert not any(operand.is_contiguous() for operand in given)
    for a, b in zip(
        all_sums("triton", *given, csr),
        all_sums("triton", *(o.contiguous() for o in given), csr),
        strict=True,
    ):  # type: ignore[arg-type]
        assert torch.equal(a, b)


def test_padding_past_the_last_row_is_never_read() -> None:
    csr = random_graph(7, 12, weighted=True).csr
    assert csr.edge_weight is not None
    padding = torch.full((3,), 10**6, dtype=torch.int32)
    padded = csr._replace(
        col=torch.cat([csr.col, padding]),
        edge_weight=torch.cat([csr.edge_weight, csr.edge_weight.new_full((3,), torch.nan)]),
    )
    given = (x := torch.randn(7, 3), *random_operands(x))
    for a, b in zip(
        all_sums("triton", *given, padded), all_sums("triton", *given, csr), strict=True
    ):
        assert torch.equal(a, b)


def test_learned_weights_that_are_not_symmetric() -> None:
    graph = random_graph(6, 9)
    csr = graph.csr
    a, x = (
        torch.rand(csr.col.numel(), dtype=torch.float64, requires_grad=True),
        torch.randn(6, 2, dtype=torch.float64, requires_grad=True),
    )
    with eamp.backend("triton"):
        assert gradcheck(lambda a, x: attended_sums(a, x, graph), (a, x), fast_mode=True)
        result = attended_sums(a, x, graph)
    ones = torch.ones(6, dtype=torch.float64)
    torch.testing.assert_close(
        result, reference.neighbour_sums(ones, x, ones, csr._replace(edge_weight=a.detach()), False)
    )


# --- What differences keep ------------------------------------------------------------------


@FEW
@given(graphs(min_nodes=2), st.floats(-(2.0**100), 2.0**100, width=32))
def test_a_constant_embedding_has_no_differences_at_all(graph: eamp.Graph, value: float) -> None:
    x = torch.full((graph.num_nodes, 3), value)
    _, q, r = random_operands(x)
    for k, result in enumerate(all_sums("triton", x, x, q, r, graph.csr)):
        if k not in (4, 5):  # these propagate
            assert result.eq(0).all()


def test_a_collapsed_embedding_far_from_the_origin_is_as_exact_as_any() -> None:
    graph = random_graph(10, 25, weighted=True)
    x = (
        torch.randn(10, 5) + 1e4
    )  # which leaves ten bits to the differences, all of which must be seen
    q = torch.rand(10)
    energy, step = (
        load("triton").squared_differences(x, graph.csr),
        load("triton").weighted_differences(q, x, graph.csr),
    )
    torch.testing.assert_close(
        energy.double(), reference.squared_differences(x.double(), graph.csr), rtol=1e-6, atol=0.0
    )
    torch.testing.assert_close(
        step.double(),
        reference.weighted_differences(q.double(), x.double(), graph.csr),
        rtol=1e-5,
        atol=1e-5,
    )


@FEW
@given(problems(min_nodes=2), st.integers(0, 1000))
def test_nodes_in_another_order_have_the_same_sums_in_that_order(
    problem: tuple[Tensor, eamp.Graph], seed: int
) -> None:
    x, graph = problem
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))
    moved = eamp.Graph(
        order.argsort()[graph.edge_index], graph.num_nodes, edge_weight=graph.edge_weight
    )
    y, q, r = random_operands(x)
    before = all_sums("triton", x, y, q, r, graph.csr)
    after = all_sums("triton", x[order], y[order], q[order], r[order], moved.csr)
    for a, b in zip(before, after, strict=True):
        torch.testing.assert_close(a[order], b)


def test_infinity_reaches_neighbours_alone_and_is_no_nan() -> None:
    x = torch.zeros(10, 3)
    x[5] = torch.inf  # a neighbour of 0 and 6; its row is shorter than a tile
    result = load("triton").squared_differences(x, irregular_graph().csr)
    assert result.tolist() == [torch.inf if i in (0, 5, 6) else 0.0 for i in range(10)]


# --- As operators ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, *HALVES])
def test_the_entropy_step_and_its_energies(dtype: torch.dtype) -> None:
    graph = random_graph(9, 18, weighted=True)
    x = torch.randn(9, 5).to(dtype)
    with eamp.backend("triton"):
        step, energy = ops.entropy_step(x, graph, 0.8, factor=1.5)
    assert (step.dtype, energy.dtype) == (dtype, torch.float32 if dtype in HALVES else dtype)
    tolerance = {
        torch.float64: 1e-6,
        torch.float32: 1e-5,
        torch.float16: 2e-3,
        torch.bfloat16: 1e-2,
    }[dtype]  # weights are in float32
    torch.testing.assert_close(
        step.double(),
        1.2 * reference.entropy_gradient(x.double(), graph.csr, 0.8),
        rtol=tolerance,
        atol=tolerance,
    )
    torch.testing.assert_close(
        energy.double(), reference.dirichlet_energy(x.double(), graph.csr), rtol=1e-5, atol=1e-5
    )


def test_operators_are_differentiable_twice() -> None:
    graph = random_graph(4, 5, weighted=True)
    x, y = (torch.randn(4, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    q, r = (torch.randn(4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    temperature = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    def weighted(q: Tensor, x: Tensor, r: Tensor, y: Tensor) -> Tensor:
        return _weighted(q, x, r, y, *graph.csr, "triton")

    def step(x: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        return ops.entropy_step(x, graph, temperature, factor=1.3)

    with eamp.backend("triton"):
        assert gradcheck(lambda x: ops.squared_differences(x, graph), (x,), fast_mode=True)
        assert gradcheck(lambda x, y: ops.inner_differences(x, y, graph), (x, y), fast_mode=True)
        assert gradcheck(
            lambda x: ops.neighbour_sums(q.detach(), x, r.detach(), graph, True),
            (x,),
            fast_mode=True,
        )
        assert gradcheck(lambda x: ops.channel_squares(x, graph), (x,), fast_mode=True)
        for check_derivative in (
            gradcheck,
            gradgradcheck,
        ):  # the second derivatives of the others are made of the same sums
            assert check_derivative(weighted, (q, x, r, y), fast_mode=True)
            assert check_derivative(step, (x, temperature), fast_mode=True)


def test_operators_pass_opcheck() -> None:
    graph = random_graph(4, 5, weighted=True)
    x, y = (torch.randn(4, 2, requires_grad=True) for _ in range(2))
    q, r = (torch.randn(4, requires_grad=True) for _ in range(2))
    csr = (*graph.csr[:4], "triton")
    torch.library.opcheck(torch.ops.eamp.inner_differences.default, (x, y, *csr))
    torch.library.opcheck(torch.ops.eamp.weighted_differences.default, (q, x, r, y, *csr))
    torch.library.opcheck(torch.ops.eamp.channel_differences.default, (x, y, *csr))
