"""Every backend against the oracle, every operator against torch's own checks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

import eamp
from eamp import ops
from eamp.graph.csr import rows_of_entries, unpadded
from eamp.graph.edge_index_cache import csr_of_edge_index
from eamp.nn import GCNConv
from eamp.ops import reference
from eamp.ops.normalisers import energy_normaliser
from eamp.ops.step import _fused_step, _fused_step_backward, step_derivatives
from eamp.ops.sums import _inner, _neighbours, _squared, _weighted
from problems import problems, random_graph


@pytest.mark.parametrize("backend", ["numba", "torch"])
@given(problem=problems(), seed=st.integers(0, 1000), self_loops=st.booleans())
def test_backends_agree_with_the_oracle(
    problem: tuple[torch.Tensor, eamp.Graph], seed: int, self_loops: bool, backend: str
) -> None:
    x, g = problem
    generator = torch.Generator().manual_seed(seed)
    y = torch.randn(x.shape, dtype=x.dtype, generator=generator)
    q, r = torch.randn(2, x.size(0), dtype=x.dtype, generator=generator)
    with eamp.backend(backend):
        results = (
            ops.squared_differences(x, g),
            ops.inner_differences(x, y, g),
            ops.weighted_differences(q, x, g),
            _weighted(q, x, r, y, *g.csr, backend),
            ops.neighbour_sums(q, x, r, g, self_loops),
            *ops.entropy_step(x, g, 0.8, factor=1.5),
        )
    expected = (
        reference.squared_differences(x, g.csr),
        reference.inner_differences(x, y, g.csr),
        reference.weighted_differences(q, x, g.csr),
        reference.weighted_differences(q, x, g.csr) + reference.weighted_differences(r, y, g.csr),
        reference.neighbour_sums(q, x, r, g.csr, self_loops),
        1.5 * 0.8 * reference.entropy_gradient(x, g.csr, 0.8),
        reference.dirichlet_energy(x, g.csr),
    )
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(result, value, rtol=1e-9, atol=1e-9)


def operands(dtype: torch.dtype = torch.float64, weighted: bool = True) -> tuple[torch.Tensor, ...]:
    g = random_graph(7, 12, weighted=weighted)
    x, y = (torch.randn(7, 3, dtype=dtype, requires_grad=True) for _ in range(2))
    q, r = (torch.randn(7, dtype=dtype, requires_grad=True) for _ in range(2))
    return x, y, q, r, g  # type: ignore[return-value]


@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
@pytest.mark.parametrize("weighted", [False, True])
def test_operators_pass_opcheck(backend: str, weighted: bool) -> None:
    x, y, q, r, g = operands(weighted=weighted)
    csr = g.csr  # type: ignore[attr-defined]
    temperature = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(_squared.registered, (x, *csr, backend))
    torch.library.opcheck(_inner.registered, (x, y, *csr, backend))
    torch.library.opcheck(_weighted.registered, (q, x, None, None, *csr, backend))
    torch.library.opcheck(_weighted.registered, (q, x, r, y, *csr, backend))
    torch.library.opcheck(
        _neighbours.registered, (q.detach(), x, r.detach(), None, None, True, 0.0, *csr, backend)
    )
    torch.library.opcheck(
        _neighbours.registered,
        (q.detach(), x, r.detach(), y, q[:3].detach(), True, 0.3, *csr, backend),
    )
    if backend == "numba":
        c = energy_normaliser(x, g)
        torch.library.opcheck(_fused_step.registered, (x, c, temperature, 2.0, *csr, backend))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_derivative_in_one_operator_is_the_composed_one(
    dtype: torch.dtype, weighted: bool
) -> None:
    g = random_graph(20, 50, weighted=weighted)
    x, grad_step = torch.randn(2, 20, 6).to(dtype)
    temperature = torch.tensor(0.7, dtype=torch.float64)
    _, energy = ops.entropy_step(x, g, temperature)
    upstream = (grad_step, torch.randn_like(energy), energy)
    given = (x, energy_normaliser(x, g), temperature, 1.5, *upstream, *g.csr)
    expected = step_derivatives(*given, "reference")  # type: ignore[arg-type]
    tolerance = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 5e-2}[dtype]
    for derivatives, backend in (
        (_fused_step_backward, "numba"),
        (step_derivatives, "numba"),
        (step_derivatives, "torch"),
    ):
        for result, value in zip(derivatives(*given, backend), expected, strict=True):
            assert result.dtype == value.dtype
            torch.testing.assert_close(result, value, rtol=tolerance, atol=tolerance)
    torch.library.opcheck(_fused_step_backward.registered, (*given, "numba"))


def test_the_conversion_under_compile_passes_opcheck() -> None:
    edge_index = random_graph(7, 12).edge_index
    torch.library.opcheck(csr_of_edge_index, (edge_index, 7, False, False))
    torch.library.opcheck(csr_of_edge_index, (edge_index[:, :5], 7, True, True))


@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_operators_are_differentiable_twice(backend: str) -> None:
    x, y, q, r, g = operands()
    csr = g.csr  # type: ignore[attr-defined]
    temperature = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    def step(x: torch.Tensor, temperature: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return ops.entropy_step(x, g, temperature, factor=1.3)

    def propagated(x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        left, right = q.detach(), r.detach()
        return ops.neighbour_sums(left, x, right, g, True, mixed_in=y, share=0.3, bias=bias)

    with eamp.backend(backend):
        for check in (gradcheck, gradgradcheck):
            assert check(lambda x: ops.squared_differences(x, g), (x,))
            assert check(lambda x, y: ops.inner_differences(x, y, g), (x, y))
            assert check(lambda q, x: ops.weighted_differences(q, x, g), (q, x))
            assert check(lambda q, x, r, y: _weighted(q, x, r, y, *csr, backend), (q, x, r, y))
            assert check(propagated, (x, y, x[0].detach().clone().requires_grad_()))
            assert check(step, (x, temperature))


def test_padding_past_the_last_row_is_never_read() -> None:
    g = random_graph(9, 15)
    x = torch.randn(9, 4)
    padding = torch.full((5,), 10**6, dtype=torch.int32)
    csr = g.csr._replace(
        col=torch.cat([g.csr.col, padding]), reverse=torch.cat([g.csr.reverse, padding])
    )
    padded = eamp.Graph._of(csr, g.degree)
    for backend in ("numba", "torch", "reference", "edges"):
        with eamp.backend(backend):
            torch.testing.assert_close(
                ops.squared_differences(x, padded), ops.squared_differences(x, g)
            )
            torch.testing.assert_close(
                ops.weighted_differences(x[:, 0], x, padded),
                ops.weighted_differences(x[:, 0], x, g),
            )
            left, right = x[:, 1], x[:, 2]
            torch.testing.assert_close(
                ops.neighbour_sums(left, x, right, padded), ops.neighbour_sums(left, x, right, g)
            )


def test_padding_has_a_row_of_its_own_and_can_be_left_out() -> None:
    csr = random_graph(9, 15, weighted=True).csr
    assert csr.edge_weight is not None
    padded = csr._replace(
        col=torch.cat([csr.col, csr.col.new_zeros(2)]),
        reverse=torch.cat([csr.reverse, csr.reverse.new_zeros(2)]),
        edge_weight=torch.cat([csr.edge_weight, csr.edge_weight.new_zeros(2)]),
    )
    assert all(torch.equal(*pair) for pair in zip(unpadded(padded), csr, strict=True))
    assert unpadded(csr) is csr
    expected = torch.cat([rows_of_entries(csr), torch.tensor([9, 9])])
    assert torch.equal(rows_of_entries(padded), expected)


@pytest.mark.parametrize("backend", ["numba", "torch", "reference", "edges"])
def test_a_compiled_energy_leaves_out_self_loops(backend: str) -> None:
    # They leave padding at the end of a compiled graph's CSR.
    edge_index, x = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]]), torch.randn(3, 4)
    torch.compiler.reset()
    compiled = torch.compile(eamp.dirichlet_energy, fullgraph=True, backend="aot_eager")
    with eamp.backend(backend):
        torch.testing.assert_close(compiled(x, edge_index), eamp.dirichlet_energy(x, edge_index))


@pytest.mark.slow
def test_64_bit_indices_give_the_same() -> None:
    g = random_graph(30, 80, weighted=True)
    x = torch.randn(30, 5)
    csr = g.csr._replace(
        rowptr=g.csr.rowptr.long(), col=g.csr.col.long(), reverse=g.csr.reverse.long()
    )
    wide = eamp.Graph._of(csr, g.degree)
    for a, b in zip(ops.entropy_step(x, wide, 1.0), ops.entropy_step(x, g, 1.0), strict=True):
        assert torch.equal(a, b)


def test_no_tensor_of_edges_times_features_is_made() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    g = random_graph(40, 600)
    features, edges = 32, 2 * g.num_edges
    x = torch.randn(40, features, requires_grad=True)
    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            for tensor in torch.utils._pytree.tree_leaves(out):
                if isinstance(tensor, torch.Tensor):
                    largest = max(largest, tensor.numel())
            return out

    for backend in ("numba", "torch"):
        with Watch(), eamp.backend(backend):
            eamp.entropy_gradient(x, g).square().sum().backward()
    assert 0 < largest <= max(edges, 3 * x.numel()) < edges * features


@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
def test_without_self_loops_a_node_does_not_see_itself(backend: str) -> None:
    path, ones = eamp.Graph(torch.tensor([[0, 1], [1, 2]]), symmetrize=True), torch.ones(4)
    path = eamp.Graph(path.edge_index, 4)
    x = torch.tensor([[torch.inf], [1.0], [2.0], [torch.nan]])
    with eamp.backend(backend):
        assert ops.neighbour_sums(ones, x, ones, path).flatten().tolist() == [
            1.0,
            torch.inf,
            1.0,
            0.0,
        ]


def test_operands_of_another_dtype_are_converted() -> None:
    g = random_graph(20, 50)
    x, y, ones = (
        torch.randn(20, 6),
        torch.randn(20, 6, dtype=torch.float64),
        torch.ones(20, dtype=torch.float64),
    )
    got = ops.neighbour_sums(ones, x, ones, g, mixed_in=y, share=0.5)
    torch.testing.assert_close(
        got, ops.neighbour_sums(ones.float(), x, ones.float(), g, mixed_in=y.float(), share=0.5)
    )


def test_division_by_zero_gives_no_number() -> None:
    conv = eamp.EntropyAware(GCNConv(6, 6), learn_temperature=True)
    torch.nn.init.constant_(conv.log_temperature, -120.0)  # less than a float32 can be
    assert conv(torch.randn(20, 6), random_graph(20, 50)).isnan().any()
