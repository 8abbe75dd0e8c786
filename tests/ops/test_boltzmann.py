"""Weights and steps at any scale: finite input gives finite results, and bad rows stay local."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import eamp
from eamp.ops import reference
from problems import graphs, undirected

BACKENDS = ["numba", "torch", "edges", "reference"]
ERROR = {torch.float32: 1e-3, torch.float64: 1e-9}  # of a step, in units of the largest feature
OPTIONS: list[dict[str, Any]] = [{}, {"normalize": True}, {"variant": "paper"}]


def test_weights_of_a_batch_sum_to_one_where_energies_are_huge() -> None:
    x, edge_index = torch.tensor([[0.0], [1e4]]), undirected((0, 1))
    g = eamp.Graph(edge_index, batch=torch.zeros(2, dtype=torch.int64))
    weights = eamp.boltzmann(x, g, 1.0, normalize=True)
    torch.testing.assert_close(weights, torch.tensor([0.5, 0.5]))
    entropy = eamp.entropy(x, g, 1.0, normalize=True)
    torch.testing.assert_close(entropy, torch.tensor(math.log(2)))


@st.composite
def scaled(draw: Any, dtype: torch.dtype) -> tuple[Tensor, eamp.Graph, float]:
    """Features whose rows have sizes of their own, a graph and a temperature."""
    g = draw(graphs(min_nodes=2))
    exponent = st.floats(-20, 20)
    base, own = draw(exponent), draw(st.booleans())
    sizes = [10 ** (draw(exponent) if own else base) for _ in range(g.num_nodes)]
    numbers = st.lists(st.floats(-1, 1, width=16), min_size=2, max_size=2)
    rows = [[size * number for number in draw(numbers)] for size in sizes]
    return torch.tensor(rows, dtype=dtype), g, 10 ** draw(st.floats(-3, 3))


@pytest.mark.parametrize("dtype", ERROR)
@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
@given(data=st.data())
def test_normalised_weights_sum_to_one_with_and_without_a_batch(
    data: st.DataObject, backend: str, dtype: torch.dtype
) -> None:
    x, g, temperature = data.draw(scaled(dtype))
    both = eamp.Graph(
        torch.cat([g.edge_index, g.edge_index + g.num_nodes], 1),
        2 * g.num_nodes,
        edge_weight=None if g.edge_weight is None else g.edge_weight.repeat(2),
        batch=torch.arange(2).repeat_interleave(g.num_nodes),
    )
    with eamp.backend(backend):
        alone = eamp.boltzmann(x, g, temperature, normalize=True)
        weights = eamp.boltzmann(x.repeat(2, 1), both, temperature, normalize=True)
        entropy = eamp.entropy(x, g, temperature, normalize=True)
        twice = eamp.entropy(x.repeat(2, 1), both, temperature, normalize=True)
    torch.testing.assert_close(alone.sum(), torch.ones((), dtype=dtype))
    # The matrix form centres both copies about one row, and so rounds their energies differently.
    if backend != "torch":
        torch.testing.assert_close(weights, alone.repeat(2))
        torch.testing.assert_close(twice, 2 * entropy)
    sums = weights.reshape(2, -1).sum(1)
    torch.testing.assert_close(sums, torch.ones(2, dtype=dtype))
    assert torch.isfinite(entropy)
    assert -1e-6 <= float(entropy) <= math.log(g.num_nodes) + 1e-5


@pytest.mark.parametrize("dtype", ERROR)
@pytest.mark.parametrize("backend", BACKENDS)
@given(data=st.data(), options=st.sampled_from(OPTIONS))
def test_a_step_is_right_and_its_derivatives_are_finite_at_every_scale(
    data: st.DataObject, backend: str, options: dict[str, Any], dtype: torch.dtype
) -> None:
    x, g, number = data.draw(scaled(dtype))
    expected = reference.entropy_gradient(x.double(), g.csr, number, **options)
    upstream = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    x.requires_grad_()
    temperature = torch.tensor(number, dtype=dtype, requires_grad=True)
    with eamp.backend(backend):
        gradient = eamp.entropy_gradient(x, g, temperature, **options)
        for create_graph in (False, True):
            derivatives = torch.autograd.grad(
                gradient, (x, temperature), upstream, retain_graph=True, create_graph=create_graph
            )
            # Normalised weights of huge, equal energies change without bound.
            known = torch.isfinite if not options.get("normalize") else lambda t: ~torch.isnan(t)
            assert all(known(found).all() for found in (gradient, *derivatives))
    error = (
        (gradient.detach().double() - expected).abs()
        * number
        / x.detach().abs().max().clamp(min=1e-30)
    )
    assert float(error.max()) < ERROR[dtype]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("scale", [1e10, 1e20, 1e30])
def test_the_step_at_huge_features_is_its_limit(scale: float, backend: str) -> None:
    ring = undirected(*((i, (i + 1) % 6) for i in range(6)))
    x = (scale * torch.randn(6, 3)).requires_grad_()
    with eamp.backend(backend):
        for detach in (True, False):
            conv = eamp.EntropyAware(torch.nn.Identity(), detach=detach)
            conv.conv.forward = lambda x, edge_index: x  # type: ignore[method-assign]
            out = conv(x, ring)
            assert torch.equal(out, x)
            assert torch.equal(torch.autograd.grad(out.sum(), x)[0], torch.ones_like(x))


@pytest.mark.parametrize("scale_free", [False, True])
@pytest.mark.parametrize("energy", ["paper", "propagation"])
@pytest.mark.parametrize("batched", [False, True])
def test_no_option_makes_nan_of_huge_features(energy: Any, scale_free: bool, batched: bool) -> None:
    batch = torch.zeros(6, dtype=torch.int64) if batched else None
    ring = eamp.Graph(undirected(*((i, (i + 1) % 6) for i in range(6))), batch=batch)
    conv = eamp.EntropyAware(eamp.nn.GCNConv(3, 3), energy=energy, scale_free=scale_free)
    for scale in (1e10, 1e18, 1e20, 1e30):
        assert torch.isfinite(conv(scale * torch.randn(6, 3), ring)).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e30])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("where", [0, 5])
def test_a_bad_row_reaches_two_hops_and_no_further(where: int, backend: str, bad: float) -> None:
    n = 12
    ring = undirected(*((i, (i + 1) % n) for i in range(n)))
    x = 1 + 1e-3 * torch.randn(n, 3)
    good_energy, good = eamp.dirichlet_energy(x, ring), eamp.entropy_gradient(x, ring, 1e-5)
    x[where] = bad
    with eamp.backend(backend):
        energy, gradient = eamp.dirichlet_energy(x, ring), eamp.entropy_gradient(x, ring, 1e-5)
    near = {(where + hop) % n for hop in (-2, -1, 0, 1, 2)}
    far = [i for i in range(n) if i not in near]
    torch.testing.assert_close(energy[far], good_energy[far])
    torch.testing.assert_close(gradient[far], good[far])


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_edge_of_weight_0_is_no_edge_even_between_distant_nodes(backend: str) -> None:
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph = eamp.Graph(edge_index, edge_weight=torch.tensor([0.0, 0.0, 1.0, 1.0]))
    x = torch.tensor([[1e30, 0.0], [0.0, 1.0], [1.0, 1.0]], requires_grad=True)
    alone, pair = x.detach()[1:], torch.tensor([[0, 1], [1, 0]])
    with eamp.backend(backend):
        energy, step = eamp.dirichlet_energy(x, graph), eamp.entropy_gradient(x, graph, 1.0)
        (gradient,) = torch.autograd.grad(energy.sum() + step.square().sum(), x)
    assert gradient.isfinite().all()
    torch.testing.assert_close(energy[1:], eamp.dirichlet_energy(alone, pair))
    torch.testing.assert_close(step[1:], eamp.entropy_gradient(alone, pair, 1.0))
