import pytest
import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric import nn as pyg

import eamp
from eamp.nn import GCN
from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.nn.models.initial_weights import mirror_weights, scale_weights, weights_of
from eamp.nn.models.pairnorm_gcn import PairNormGCN
from problems import irregular_graph

DEPTH = 6
DRAWN = {"rtol": 1e-5, "atol": 1e-6}  # weights are drawn and scaled in float32


def problem() -> tuple[Tensor, eamp.Graph]:
    torch.manual_seed(0)
    graph = irregular_graph()
    return torch.randn(graph.num_nodes, 5, dtype=torch.float64), graph


def mirrored(**options: object) -> GCN:
    torch.manual_seed(1)
    return GCN(5, 8, 3, DEPTH, initial_weights="mirrored", **options).double()


def test_a_mirrored_stack_begins_as_the_linear_network_of_half_its_width() -> None:
    x, graph = problem()
    model = mirrored()
    first, *inner, last = weights_of(model)
    expected = gcn_propagate(x, graph) @ first[:4].T
    for weight in inner:
        expected = gcn_propagate(expected, graph) @ weight[:4, :4].T
    expected = gcn_propagate(expected, graph) @ last[:, :4].T
    torch.testing.assert_close(model(x, graph), expected)
    torch.testing.assert_close(
        model(-x, graph), -expected
    )  # a stack with Glorot weights is not odd
    glorot = GCN(5, 8, 3, DEPTH).double()
    assert not torch.allclose(glorot(-x, graph), -glorot(x, graph))


def test_inner_weights_keep_every_length() -> None:
    for weight in weights_of(mirrored())[1:-1]:
        half = weight[:4, :4]
        torch.testing.assert_close(half @ half.T, torch.eye(4, dtype=half.dtype), **DRAWN)


@pytest.mark.parametrize("make", [GCN, PairNormGCN])
def test_resetting_mirrors_again_and_draws_other_weights(make: type[Module]) -> None:
    x, graph = problem()
    model = make(5, 8, 3, DEPTH, initial_weights="mirrored").double()
    before = model(x, graph)
    model.reset_parameters()
    again = model(x, graph)
    assert not torch.allclose(before, again)
    torch.testing.assert_close(model(-x, graph), -again)


def test_gains_multiply_mirrored_weights() -> None:
    x, graph = problem()
    scaled = mirrored(initial_gain=1.5, input_gain=2.0, output_gain=3.0)(x, graph)
    torch.testing.assert_close(scaled, 1.5**DEPTH * 6 * mirrored()(x, graph), **DRAWN)


def test_a_mirrored_stack_with_the_step_and_with_a_norm_begins_odd() -> None:
    x, graph = problem()
    entropy = {"weight": 0.5, "temperature": 1.0}
    for model in (mirrored(entropy=entropy), mirrored(norm="BatchNorm")):
        torch.testing.assert_close(model(-x, graph), -model(x, graph))


def test_a_network_without_hidden_layers_has_nothing_to_mirror() -> None:
    x, graph = problem()
    torch.manual_seed(0)
    plain = GCN(5, 8, 3, 0).double()
    torch.manual_seed(0)
    assert torch.equal(
        GCN(5, 8, 3, 0, initial_weights="mirrored").double()(x, graph), plain(x, graph)
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"initial_weights": "mirror"}, "one of 'glorot', 'mirrored', but is 'mirror'"),
        ({"initial_weights": "mirrored", "hidden_channels": 7}, "are 7; take 8"),
        ({"initial_weights": "mirrored", "form": "paper"}, "form='paper' has 'glorot'"),
    ],
)
def test_what_cannot_be_mirrored_is_refused(options: dict[str, object], expected: str) -> None:
    given = {"in_channels": 5, "hidden_channels": 8, "out_channels": 3, "num_layers": 2, **options}
    with pytest.raises(ValueError, match=expected):
        GCN(**given)


def test_mirrors_the_layers_of_a_model_of_pyg() -> None:
    x, graph = problem()
    model = pyg.GCN(5, 8, num_layers=DEPTH, out_channels=3).double()
    mirror_weights(model.convs)
    torch.testing.assert_close(model(-x, graph.edge_index), -model(x, graph.edge_index))


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([pyg.GCNConv(4, 4)], "at least two layers, but got 1"),
        (
            [pyg.GCNConv(4, 4), pyg.SAGEConv(4, 4)],
            "as GCNConv has in lin.weight, but layer 2 is a SAGEConv",
        ),
        ([pyg.GCNConv(4, 4), pyg.GCNConv(4, 5), pyg.GCNConv(5, 3)], "even .* there are 5; take 6"),
    ],
)
def test_layers_that_cannot_be_mirrored_are_refused(layers: list[Module], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        mirror_weights(layers)


@pytest.mark.parametrize("gain", [0, -1, float("nan"), True])
def test_a_gain_is_a_positive_number(gain: float) -> None:
    with pytest.raises(ValueError, match="output_gain must be a number > 0"):
        scale_weights(Linear(2, 2), gain, "output_gain")
