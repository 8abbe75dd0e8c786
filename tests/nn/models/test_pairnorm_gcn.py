import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv, PairNorm

import eamp
from eamp.nn.models.pairnorm_gcn import PairNormGCN
from problems import irregular_graph


def normalised(model: PairNormGCN, x: Tensor, graph: eamp.Graph) -> list[Tensor]:
    """Return the output of the normalisation in every hidden layer."""
    seen: list[Tensor] = []
    handle = model.norm.register_forward_hook(
        lambda _module, _inputs, output: seen.append(output.detach())
    )
    model(x, graph)
    handle.remove()
    return seen


@pytest.mark.parametrize("hidden", [4, 64])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_keeps_the_total_squared_distance_of_all_pairs(scale: float, hidden: int) -> None:
    """Σ_ij ‖x_i − x_j‖² = 2 n² s², at every depth and width."""
    torch.manual_seed(0)
    graph = irregular_graph()
    model = PairNormGCN(5, hidden, 3, num_layers=9, scale=scale).double()
    layers = normalised(model, torch.randn(10, 5, dtype=torch.float64), graph)
    assert len(layers) == 9
    for layer in layers:
        assert float(torch.cdist(layer, layer).square().sum()) == pytest.approx(
            2 * 10**2 * scale**2, rel=0.02
        )


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_scaled_individually_every_node_has_the_norm_s(scale: float) -> None:
    torch.manual_seed(0)
    model = PairNormGCN(5, 16, 3, num_layers=4, scale=scale, scale_individually=True).double()
    for layer in normalised(model, torch.randn(10, 5, dtype=torch.float64), irregular_graph()):
        torch.testing.assert_close(
            layer.norm(dim=1), torch.full((10,), scale, dtype=torch.float64), rtol=1e-3, atol=0
        )


def test_is_pygs_convolutions_and_norms() -> None:
    graph, x = irregular_graph(), torch.randn(10, 5, dtype=torch.float64)
    model = PairNormGCN(5, 8, 3, num_layers=2, scale=2.0).double()
    h = x
    for i, ours in enumerate([*model.convs, model.output]):
        theirs = GCNConv(h.size(1), 3 if i == 2 else 8).double()
        theirs.load_state_dict(ours.state_dict())
        h = theirs(h, graph.edge_index)
        h = PairNorm(2.0)(h).relu() if i < 2 else h
    torch.testing.assert_close(model(x, graph), h)


def test_the_output_convolution_is_counted_on_demand() -> None:
    assert len(PairNormGCN(5, 16, 3, num_layers=3).convs) == 3
    counted = PairNormGCN(5, 16, 3, num_layers=3, count_output=True)
    assert len(counted.convs) == 2
    torch.manual_seed(1)
    fewer = PairNormGCN(5, 16, 3, num_layers=2)
    fewer.load_state_dict(counted.state_dict())
    x, graph = torch.randn(10, 5), irregular_graph()
    assert torch.equal(fewer(x, graph), counted(x, graph))


def test_one_layer_may_be_the_output_convolution() -> None:
    model = PairNormGCN(5, 16, 3, num_layers=1, count_output=True)
    assert len(model.convs) == 0
    assert (model.output.in_channels, model.output.out_channels) == (5, 3)


def test_graphs_of_a_batch_do_not_see_each_other() -> None:
    one = irregular_graph()
    x = torch.randn(20, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    both = eamp.Graph(
        torch.cat([one.edge_index, one.edge_index + 10], 1),
        20,
        batch=torch.arange(2).repeat_interleave(10),
    )
    model = PairNormGCN(5, 16, 3, num_layers=3).double()
    torch.testing.assert_close(model(x, both), torch.cat([model(x[:10], one), model(x[10:], one)]))


def test_output_gain_scales_the_first_logits() -> None:
    def logits(gain: float) -> Tensor:
        torch.manual_seed(0)
        model = PairNormGCN(5, 8, 3, num_layers=2, output_gain=gain).double()
        torch.manual_seed(1)
        model.reset_parameters()
        torch.manual_seed(2)
        return model(torch.randn(10, 5, dtype=torch.float64), irregular_graph()).detach()

    torch.testing.assert_close(logits(3.0), 3 * logits(1.0))
