"""Powers of differences between neighbours, against the sum written with a dense matrix."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import eamp
from eamp.nn.conv import neighbour_powers
from eamp.nn.conv.neighbour_powers import mean_powers, power_sums
from problems import irregular_graph, problems, random_graph


def literal(y: Tensor, graph: eamp.Graph, p: float) -> Tensor:
    """1/k_i Σ_j a_ij |y_i − y_j|^p, written with a dense adjacency matrix."""
    a = y.new_zeros(graph.num_nodes, graph.num_nodes)
    a[tuple(graph.edge_index)] = 1.0 if graph.edge_weight is None else graph.edge_weight.to(y.dtype)
    powers = (y.unsqueeze(1) - y.unsqueeze(0)).abs().pow(p)
    return (a.unsqueeze(2) * powers).sum(1) / a.sum(1).clamp(min=1e-300).unsqueeze(1)


@given(problems(), st.sampled_from([1.0, 1.5, 2.0, 3.0]))
def test_mean_powers_is_the_literal_sum(problem: tuple[Tensor, eamp.Graph], p: float) -> None:
    y, graph = problem
    torch.testing.assert_close(mean_powers(y, graph, p), literal(y, graph, p))


@given(problems())
def test_chunks_give_the_squares_too(problem: tuple[Tensor, eamp.Graph]) -> None:
    y, graph = problem
    degree = graph.degree.clamp(min=1e-300).unsqueeze(1)
    torch.testing.assert_close(power_sums(y, graph, 2.0) / degree, literal(y, graph, 2.0))


@pytest.mark.parametrize("spread", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("centres", [(1.0, 1.0), (1.0, -1.0), (1000.0, 1000.0)])
def test_mean_squares_is_accurate_however_far_the_features_have_collapsed(
    spread: float, centres: tuple[float, float]
) -> None:
    """There are two components, each collapsed onto its own centre: subtracting one common centre
    would not save the digits."""
    half = random_graph(30, 60).edge_index
    graph = eamp.Graph(torch.cat([half, half + 30], 1), 60)
    noise = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    centre = torch.tensor(centres).repeat_interleave(30).unsqueeze(1)
    y = spread * centres[0] * noise + centre  # float32, a few ulps apart
    computed = mean_powers(y, graph, 2.0)
    assert (computed >= 0).all()
    torch.testing.assert_close(
        computed.double(), literal(y.double(), graph, 2.0), rtol=1e-5, atol=0
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_mean_squares_of_equal_features_is_0(dtype: torch.dtype) -> None:
    computed = mean_powers(torch.full((10, 3), 0.1, dtype=dtype), irregular_graph(), 2.0)
    assert computed.dtype == dtype
    assert not computed.any()


@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
def test_mean_squares_is_never_negative_on_any_backend(backend: str) -> None:
    graph = random_graph(30, 60)
    y = 1 + 1e-7 * torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    with eamp.backend(backend):
        computed = mean_powers(y, graph, 2.0)
    assert (computed >= 0).all()
    torch.testing.assert_close(
        computed.double(), literal(y.double(), graph, 2.0), rtol=1e-2, atol=0
    )


def test_mean_squares_of_collapsed_float64_features_is_accurate() -> None:
    graph = random_graph(30, 60)
    y = 1 + 1e-10 * torch.randn(
        30, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    torch.testing.assert_close(
        mean_powers(y, graph, 2.0), literal(y, graph, 2.0), rtol=1e-5, atol=0
    )


@pytest.mark.parametrize("p", [2.0, 1.5, 3.0])
def test_gate_is_differentiated_exactly(p: float) -> None:
    graph = random_graph(8, 14, weighted=True)
    y = torch.randn(
        8, 2, dtype=torch.float64, requires_grad=True, generator=torch.Generator().manual_seed(0)
    )
    assert torch.autograd.gradcheck(lambda y: mean_powers(y, graph, p), y)


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(20, 60, weighted=True)
    y = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = mean_powers(y, graph, 1.5)
    monkeypatch.setattr(neighbour_powers, "CHUNK", 21)  # seven edges at a time
    torch.testing.assert_close(mean_powers(y, graph, 1.5), whole)


def test_p_2_never_holds_edges_times_features() -> None:
    graph = random_graph(40, 700)
    largest = 0

    def record(tensor: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    y = torch.randn(40, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
        mean_powers(y, graph, 2.0).sum().backward()
    assert largest <= max(2 * y.numel(), graph.csr.col.numel())
    assert 2 * y.numel() < graph.csr.col.numel() * y.size(1)
