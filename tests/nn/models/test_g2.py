import pytest
import torch

from eamp.nn.models.g2 import G2
from problems import irregular_graph, random_graph


def test_layer_is_the_equation() -> None:
    torch.manual_seed(0)
    graph, x = random_graph(12, 20), torch.randn(12, 5, dtype=torch.float64)
    model = G2(5, 8, 3, num_layers=2).double()
    adjacency = torch.zeros(12, 12, dtype=torch.float64)
    adjacency[tuple(graph.edge_index)] = 1.0
    h = model.encoder(x).relu()
    for _ in range(2):
        y = model.gate(h, graph).relu()
        squares = (y.unsqueeze(1) - y.unsqueeze(0)).square()
        mean = (adjacency.unsqueeze(2) * squares).sum(1) / adjacency.sum(1, keepdim=True)
        tau = mean.nan_to_num().tanh()
        h = (1 - tau) * h + tau * model.conv(h, graph).relu()
    torch.testing.assert_close(model(x, graph), model.decoder(h))


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


@pytest.mark.slow
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
