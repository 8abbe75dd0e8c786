import pytest
import torch
from torch_geometric.data import Batch, Data

import eamp
from eamp.graph.components import components
from eamp.nn import GPS
from problems import irregular_graph

RING = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def two_graphs() -> Batch:
    draw = torch.Generator().manual_seed(0)
    graphs = ((4, RING), (3, PATH))
    return Batch.from_data_list([Data(torch.randn(n, 5, generator=draw), e) for n, e in graphs])


def test_a_layer_is_convolution_and_attention_with_residual_connections() -> None:
    torch.manual_seed(0)
    x, graph = torch.randn(10, 5), irregular_graph()
    model = GPS(5, 8, 3, num_layers=1, heads=2).eval()
    h, block = model.encoder(x), model.blocks[0]
    query, key, value = (
        (h @ block.attn.in_proj_weight.T + block.attn.in_proj_bias)
        .reshape(10, 3, 2, 4)
        .permute(1, 2, 0, 3)
    )
    weights = (query @ key.transpose(1, 2) / 2).softmax(-1)  # four features per head: sqrt(4)
    attended = block.attn.out_proj((weights @ value).transpose(0, 1).reshape(10, 8))
    y = block.norm1(h + block.conv(h, graph)) + block.norm2(h + attended)
    y = block.norm3(y + block.mlp(y))
    torch.testing.assert_close(model(x, graph), model.decoder(y), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["batch_norm", "GraphNorm"])
def test_graphs_of_a_batch_stay_apart(norm: str) -> None:
    torch.manual_seed(0)
    model, batch = GPS(5, 8, 3, num_layers=2, norm=norm).eval(), two_graphs()
    alone = torch.cat([model(data.x, data.edge_index) for data in batch.to_data_list()])
    torch.testing.assert_close(model(batch.x, eamp.Graph(batch)), alone)


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
