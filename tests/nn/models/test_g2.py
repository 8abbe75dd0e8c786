import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import eamp
from eamp.nn.models import g2
from eamp.nn.models.g2 import G2, mean_powers, mean_squares
from problems import irregular_graph, problems, random_graph


def literal(y: Tensor, graph: eamp.Graph, p: float) -> Tensor:
    """1/k_i Σ_j a_ij |y_i − y_j|^p, written with a dense adjacency matrix."""
    a = y.new_zeros(graph.num_nodes, graph.num_nodes)
    a[tuple(graph.edge_index)] = 1.0 if graph.edge_weight is None else graph.edge_weight.to(y.dtype)
    powers = (y.unsqueeze(1) - y.unsqueeze(0)).abs().pow(p)
    return (a.unsqueeze(2) * powers).sum(1) / a.sum(1).clamp(min=1e-300).unsqueeze(1)


@given(problems())
def test_mean_squares_is_the_literal_sum(problem: tuple[Tensor, eamp.Graph]) -> None:
    y, graph = problem
    torch.testing.assert_close(mean_squares(y, graph.csr), literal(y, graph, 2.0))


@given(problems(), st.sampled_from([1.0, 1.5, 2.0, 3.0]))
def test_mean_powers_is_the_literal_sum(problem: tuple[Tensor, eamp.Graph], p: float) -> None:
    y, graph = problem
    torch.testing.assert_close(mean_powers(y, graph.csr, p), literal(y, graph, p))


@pytest.mark.parametrize("spread", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("centres", [(1.0, 1.0), (1.0, -1.0), (1000.0, 1000.0)])
def test_mean_squares_is_accurate_however_far_the_features_have_collapsed(
    spread: float, centres: tuple[float, float]
) -> None:
    """Two components, each collapsed onto a centre of its own, so that one common centre cannot be what saves the digits."""
    half = random_graph(30, 60).edge_index
    graph = eamp.Graph(torch.cat([half, half + 30], 1), 60)
    noise = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    y = spread * centres[0] * noise + torch.tensor(centres).repeat_interleave(30).unsqueeze(
        1
    )  # float32, a few ulps apart
    computed = mean_squares(y, graph.csr)
    assert (computed >= 0).all()
    torch.testing.assert_close(
        computed.double(), literal(y.double(), graph, 2.0), rtol=1e-5, atol=0
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_mean_squares_of_equal_features_is_0(dtype: torch.dtype) -> None:
    computed = mean_squares(torch.full((10, 3), 0.1, dtype=dtype), irregular_graph().csr)
    assert computed.dtype == dtype
    assert not computed.any()


@pytest.mark.parametrize("backend", ["numba", "torch", "reference"])
def test_mean_squares_is_never_negative_on_any_backend(backend: str) -> None:
    graph = random_graph(30, 60)
    y = 1 + 1e-7 * torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    with eamp.backend(backend):
        computed = mean_squares(y, graph.csr)
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
        mean_squares(y, graph.csr), literal(y, graph, 2.0), rtol=1e-5, atol=0
    )


@pytest.mark.parametrize("p", [2.0, 1.5, 3.0])
def test_gate_is_differentiated_exactly(p: float) -> None:
    graph = random_graph(8, 14, weighted=True)
    y = torch.randn(
        8, 2, dtype=torch.float64, requires_grad=True, generator=torch.Generator().manual_seed(0)
    )
    function = mean_squares if p == 2 else lambda y, csr: mean_powers(y, csr, p)
    assert torch.autograd.gradcheck(lambda y: function(y, graph.csr), y)


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(20, 60, weighted=True)
    y = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = mean_powers(y, graph.csr, 1.5)
    monkeypatch.setattr(g2, "CHUNK", 21)  # seven edges at a time
    torch.testing.assert_close(mean_powers(y, graph.csr, 1.5), whole)


def test_p_2_never_holds_edges_times_features() -> None:
    graph = random_graph(40, 700)
    largest = 0

    def record(tensor: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    y = torch.randn(40, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
        mean_squares(y, graph.csr).sum().backward()
    assert largest <= max(2 * y.numel(), graph.csr.col.numel())
    assert 2 * y.numel() < graph.csr.col.numel() * y.size(1)


def test_closed_gate_keeps_the_embedding() -> None:
    """Where all features are the same τ is 0, and any number of layers does nothing."""
    torch.manual_seed(0)
    graph = irregular_graph()
    x = torch.randn(10, 5)
    shallow, deep = G2(5, 8, 3, num_layers=0), G2(5, 8, 3, num_layers=20)
    shallow.load_state_dict(deep.state_dict())
    assert not torch.allclose(deep(x, graph), shallow(x, graph))
    for model in (shallow, deep):
        torch.nn.init.zeros_(model.gate.lin.weight)  # type: ignore[union-attr]
    assert torch.equal(deep(x, graph), shallow(x, graph))


def test_isolated_node_does_not_move() -> None:
    torch.manual_seed(0)
    graph = irregular_graph()  # its node 9 is isolated
    x = torch.randn(10, 5)
    model = G2(5, 8, 3, num_layers=7)
    torch.testing.assert_close(model(x, graph)[9], model.decoder(model.encoder(x[9]).relu()))
    assert torch.equal(model.gating(model.encoder(x), graph)[9], torch.zeros(8))


def test_layers_share_their_parameters() -> None:
    count = [
        sum(p.numel() for p in G2(5, 8, 3, num_layers=layers).parameters()) for layers in (1, 64)
    ]
    assert count[0] == count[1]


def test_relu_on_the_logits_only_on_demand() -> None:
    x, graph = torch.randn(10, 5), irregular_graph()
    torch.manual_seed(0)
    plain = G2(5, 8, 3, 2)
    torch.manual_seed(0)
    rectified = G2(5, 8, 3, 2, relu_logits=True)
    assert (plain(x, graph) < 0).any()
    assert torch.equal(plain(x, graph).relu(), rectified(x, graph))


@pytest.mark.parametrize(
    "options", [{"conv": "gat"}, {"p": 1.5}, {"conv": "gat", "p": 3.0, "entropy": {"weight": 0.1}}]
)
def test_other_convolutions_and_powers_train_and_compile(options: dict[str, object]) -> None:
    torch.manual_seed(0)
    graph, x = irregular_graph(), torch.randn(10, 5)
    model = G2(5, 8, 3, num_layers=2, **options)  # type: ignore[arg-type]
    out = model(x, graph)
    out.square().sum().backward()
    assert all(
        p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in model.parameters()
    )
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, graph.edge_index), out)


@pytest.mark.parametrize(
    ("options", "message"), [({"conv": "sage"}, "'gcn' or 'gat'"), ({"p": 0.5}, "p must be >= 1")]
)
def test_wrong_options_are_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        G2(5, 8, 3, 2, **options)  # type: ignore[arg-type]
