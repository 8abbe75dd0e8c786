import pytest
import torch
from torch_geometric.nn import GCNConv, GPSConv

import eamp
from eamp.graph.components import components
from eamp.nn import GPS
from eamp.nn.conv.gps_layer import GPSLayer
from problems import irregular_graph, two_graphs


def test_a_layer_is_convolution_and_attention_with_residual_connections() -> None:
    torch.manual_seed(0)
    x, graph = torch.randn(10, 5), irregular_graph()
    model = GPS(5, 8, 3, num_layers=1, heads=2).eval()
    h, block = model.encoder(x), model.blocks[0]
    query, key, value = (
        (h @ block.attention.in_proj_weight.T + block.attention.in_proj_bias)
        .reshape(10, 3, 2, 4)
        .permute(1, 2, 0, 3)
    )
    weights = (query @ key.transpose(1, 2) / 2).softmax(-1)  # four features per head: sqrt(4)
    attended = block.attention.out_proj((weights @ value).transpose(0, 1).reshape(10, 8))
    y = block.norms[0](h + block.conv(h, graph)) + block.norms[1](h + attended)
    y = block.norms[2](y + block.mlp(y))
    torch.testing.assert_close(model(x, graph), model.decoder(y), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["BatchNorm", "GraphNorm"])
def test_graphs_of_a_batch_stay_apart(norm: str) -> None:
    torch.manual_seed(0)
    model, batch = GPS(5, 8, 3, num_layers=2, norm=norm).eval(), two_graphs()
    alone = torch.cat([model(data.x, data.edge_index) for data in batch.to_data_list()])
    torch.testing.assert_close(model(batch.x, eamp.Graph(batch)), alone)


def test_is_the_layer_of_pyg() -> None:
    torch.manual_seed(0)
    x, graph = torch.randn(7, 8), two_graphs()
    ours = GPSLayer(8, GCNConv(8, 8), heads=2, dropout=0.0, norm="GraphNorm")
    theirs = GPSConv(8, GCNConv(8, 8), heads=2, norm="GraphNorm")
    names = {"attention": "attn", "norms.0": "norm1", "norms.1": "norm2", "norms.2": "norm3"}
    state = ours.state_dict()
    for name, other in names.items():
        state = {key.replace(name, other): value for key, value in state.items()}
    theirs.load_state_dict(state)
    for batch in (None, graph.batch):
        given = (x, graph.edge_index, batch)
        torch.testing.assert_close(ours(*given), theirs(*given))


@pytest.mark.parametrize("by_component", [False, True])
def test_nodes_of_a_graph_need_not_stand_side_by_side(by_component: bool) -> None:
    torch.manual_seed(0)
    batch, order = two_graphs(), torch.tensor([4, 0, 1, 5, 2, 6, 3])
    model = GPS(5, 8, 3, num_layers=2, norm="GraphNorm", by_component=by_component)
    place = order.argsort()
    graph = eamp.Graph(place[batch.edge_index], 7, batch=batch.batch[order])
    expected = model(batch.x, eamp.Graph(batch))[order]
    torch.testing.assert_close(model(batch.x[order], graph), expected)


def test_graphs_without_nodes_leave_gradients_finite() -> None:
    torch.manual_seed(0)
    x, batch = torch.randn(7, 5, requires_grad=True), two_graphs().batch * 2  # none has number 1
    model = GPS(5, 8, 3, num_layers=1, norm=None)
    model(x, eamp.Graph(two_graphs().edge_index, 7, batch=batch)).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert model(x[:0], torch.zeros(2, 0, dtype=torch.long)).shape == (0, 3)


def test_a_probe_watches_the_blocks() -> None:
    torch.manual_seed(0)
    x, graph = torch.randn(10, 5), irregular_graph()
    model = GPS(5, 8, 3, num_layers=2).eval()
    with eamp.probe(model) as probe:
        out = model(x, graph)
    assert list(probe.table()["type"]) == ["GPSLayer", "GPSLayer"]
    energies = []
    for block in model.blocks:
        block.register_forward_hook(
            lambda *call: energies.append(eamp.dirichlet_energy(call[2], graph).mean().item())
        )
    assert torch.equal(model(x, graph), out)
    assert probe.table()["energy"].tolist() == pytest.approx(energies)


def test_components_stay_apart_on_request() -> None:
    torch.manual_seed(0)
    batch = two_graphs()
    whole, apart = (GPS(5, 8, 3, num_layers=2, by_component=by).eval() for by in (False, True))
    whole.load_state_dict(apart.state_dict())
    alone = torch.cat([apart(data.x, data.edge_index) for data in batch.to_data_list()])
    torch.testing.assert_close(apart(batch.x, batch.edge_index), alone)
    assert not torch.allclose(whole(batch.x, batch.edge_index), alone, atol=1e-3)


def test_one_layer_carries_a_signal_across_any_distance() -> None:
    torch.manual_seed(0)
    nodes = torch.arange(30)
    path = torch.stack([nodes[:-1], nodes[1:]])
    x, edge_index = torch.randn(30, 5), torch.cat([path, path.flip(0)], 1)
    model = GPS(5, 8, 3, num_layers=1).eval()
    other = x.clone()
    other[0] += 1
    moved = (model(other, edge_index) - model(x, edge_index)).abs().sum(1)
    assert (moved > 1e-6).all()


def test_heads_must_share_the_features_evenly() -> None:
    with pytest.raises(ValueError, match="multiple of heads, but is 8 for 3"):
        GPS(5, 8, 3, num_layers=1, heads=3)


def test_components_are_computed_once() -> None:
    graph = eamp.Graph(two_graphs().edge_index)
    assert components(graph).tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert components(graph) is components(graph)
