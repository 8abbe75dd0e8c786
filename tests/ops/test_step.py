"""The fused step is the sum of its parts, and has the derivative of its base alone."""

import math

import pytest
import torch

import eamp
from eamp import ops
from eamp.ops import reference
from eamp.ops.step import _add_step, permuted
from problems import irregular_graph, random_graph, undirected


def operands(
    dtype: torch.dtype = torch.float64, weighted: bool = False
) -> tuple[eamp.Graph, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    base, x = torch.randn(2, 20, 6, generator=generator, dtype=torch.float64).to(dtype)
    u = torch.rand(20, generator=generator, dtype=torch.float64) + 0.5
    return random_graph(20, 50, weighted=weighted), base, x, u


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("scale_free", [False, True])
def test_the_added_step_is_the_sum_of_its_parts(
    dtype: torch.dtype, weighted: bool, scaled: bool, scale_free: bool
) -> None:
    g, base, x, u = operands(dtype, weighted)
    inward = u.to(ops.accumulate_dtype(x)) if scaled else None
    c = ops.energy_normaliser(x, g)
    out = _add_step(base, x, inward, c, 0.8, 1.5, scale_free, *g.csr, "numba")
    assert out.dtype == dtype
    scale = u.unsqueeze(1) if scaled else 1.0
    temperature = 0.8 * (float(x.double().square().mean()) * math.sqrt(6) if scale_free else 1.0)
    step = 1.5 * temperature * reference.entropy_gradient(scale * x.double(), g.csr, temperature)
    tolerance = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 5e-2}[dtype]
    torch.testing.assert_close(
        out.double(), base.double() + scale * step, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("of_propagation", [False, True])
def test_an_embedding_of_zeros_is_no_unit(of_propagation: bool) -> None:
    g, base, x, _ = operands()
    out = ops.add_fused_step(base, 0 * x, g, 0.8, 1.5, of_propagation, scale_free=True)
    torch.testing.assert_close(out, base, rtol=0, atol=0)


def test_only_the_base_has_a_derivative() -> None:
    g, base, x, _ = operands()
    base.requires_grad_()
    x.requires_grad_()
    grad = torch.randn_like(base)
    out = ops.add_fused_step(base, x, g, 0.8, 1.5)
    wrt_base, wrt_x = torch.autograd.grad(out, (base, x), grad, allow_unused=True)
    torch.testing.assert_close(wrt_base, grad, rtol=0, atol=0)
    assert wrt_x is None


def test_the_added_step_passes_opcheck() -> None:
    g, base, x, u = operands()
    c = ops.energy_normaliser(x, g)
    for inward, scale_free in ((None, False), (u, True)):
        given = (base.requires_grad_(), x, inward, c, 0.8, 1.5, scale_free, *g.csr, "numba")
        torch.library.opcheck(_add_step.registered, given)


@pytest.mark.parametrize("variant", ["exact", "paper"])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
def test_every_variant_is_the_reference(variant: str, normalize: bool, backend: str) -> None:
    g = irregular_graph()
    x = torch.randn(10, 3, dtype=torch.float64)
    with eamp.backend(backend):
        step, energy = ops.entropy_step(
            x,
            g,
            0.8,
            1.5,
            variant=variant,
            normalize=normalize,  # type: ignore[arg-type]
        )
    expected = reference.entropy_gradient(x, g.csr, 0.8, variant=variant, normalize=normalize)
    torch.testing.assert_close(step, 1.5 * 0.8 * expected)
    torch.testing.assert_close(energy, reference.dirichlet_energy(x, g.csr))


def test_the_permuted_control_moves_drives_among_nodes_of_equal_degree() -> None:
    g = random_graph(60, 120)
    drive = torch.rand(60, dtype=torch.float64)
    torch.manual_seed(1)
    moved = permuted(drive, g)
    for degree in g.degree.unique():
        kind = g.degree == degree
        torch.testing.assert_close(moved[kind].sort().values, drive[kind].sort().values)
    assert (moved != drive).double().mean() > 0.5
    assert torch.equal(moved, permuted(drive, g))  # fixed per graph and seed
    torch.rand(1)
    assert torch.equal(moved, permuted(drive, g))
    torch.manual_seed(2)
    assert not torch.equal(moved, permuted(drive, g))


def test_the_permuted_control_stays_inside_a_graph_of_a_batch() -> None:
    g = eamp.Graph(undirected((0, 1), (2, 3), (4, 5)), 6, batch=torch.tensor([0, 0, 1, 1, 2, 2]))
    drive = torch.arange(6.0)
    assert torch.equal(permuted(drive, g) // 2, drive // 2)


def test_the_permuted_control_is_the_step_with_other_drives() -> None:
    g, x = random_graph(20, 50), torch.randn(20, 6, dtype=torch.float64, requires_grad=True)
    step, energy = ops.entropy_step(x, g, 0.8, variant="permuted")
    c = ops.energy_normaliser(x, g)
    q = c * permuted(torch.exp(-energy / 0.8) * (1 - energy / 0.8), g)
    torch.testing.assert_close(step, ops.weighted_differences(q, x, g))
    assert torch.autograd.gradcheck(
        lambda x: ops.entropy_step(x, g, 0.8, variant="permuted")[0], (x,)
    )


@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_derivatives_in_half_precision_overflow_to_infinity_and_not_to_nan(backend: str) -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    x = 0.01 + 1e-4 * torch.tensor([[0.0, 1.0, 2.0], [1.0, -1.0, 1.0]])
    x = x.half().requires_grad_()
    upstream = torch.tensor([[1.0, -2.0, 3.0], [-1.0, 1.0, 2.0]]).half()
    with eamp.backend(backend):
        gradient = eamp.entropy_gradient(x, edge_index, 2e-7)
    assert not torch.autograd.grad(gradient, x, upstream)[0].isnan().any()
