import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv, GraphNorm

import eamp
from eamp.nn.models.gcn import GCN, ResidualUpdate
from problems import irregular_graph, undirected


@pytest.fixture
def x() -> Tensor:
    return torch.randn(10, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_is_a_stack_of_pygs_convolutions(x: Tensor) -> None:
    graph = irregular_graph()
    model = GCN(5, 8, 3, num_layers=2).double()
    out = x
    for i, ours in enumerate([*model.convs, model.output]):
        theirs = GCNConv(out.size(1), 3 if i == 2 else 8).double()
        theirs.load_state_dict(ours.state_dict())
        out = theirs(out, graph.edge_index)
        out = out.relu() if i < 2 else out
    torch.testing.assert_close(model(x, graph), out)


def test_authors_form_takes_the_step_before_the_relu(x: Tensor) -> None:
    graph = irregular_graph()
    model = GCN(5, 8, 3, num_layers=1, entropy={"weight": 2.0, "temperature": 0.5}).double()
    y = model.convs[0].conv(x, graph)
    hidden = (y + 2.0 * 0.5 * eamp.entropy_gradient(y, graph, 0.5)).relu()
    torch.testing.assert_close(model(x, graph), model.output(hidden, graph))


def test_paper_form_takes_the_step_at_the_input_of_a_residual_layer(x: Tensor) -> None:
    graph = irregular_graph()
    model = GCN(
        5, 8, 3, num_layers=1, form="paper", entropy={"weight": 2.0, "temperature": 0.5}
    ).double()
    h = model.encoder(x)  # type: ignore[misc]
    phi = model.convs[0].conv.conv(h, graph).relu()
    hidden = h + phi + 2.0 * 0.5 * eamp.entropy_gradient(h, graph, 0.5)
    torch.testing.assert_close(model(x, graph), model.output(hidden, graph))


def test_paper_form_is_the_wrappers_residual_option(x: Tensor) -> None:
    class Phi(torch.nn.Module):
        def __init__(self, conv: torch.nn.Module) -> None:
            super().__init__()
            self.conv = conv

        def forward(self, x: Tensor, edge_index: eamp.Graph) -> Tensor:
            return self.conv(x, edge_index).relu()

    graph = irregular_graph()
    update = ResidualUpdate(5).double()
    ours = eamp.EntropyAware(update, 1.0, 2.0, placement="input")
    theirs = eamp.EntropyAware(Phi(update.conv), 1.0, 2.0, placement="input", residual=True)
    torch.testing.assert_close(ours(x, graph), theirs(x, graph.edge_index))


@pytest.mark.parametrize("entropy", [None, {"weight": 1.0, "temperature": 10.0}])
def test_paper_form_stays_finite_for_64_layers(x: Tensor, entropy: dict[str, float] | None) -> None:
    torch.manual_seed(0)
    assert (
        GCN(5, 16, 3, num_layers=64, form="paper", entropy=entropy)(x.float(), irregular_graph())
        .isfinite()
        .all()
    )


def test_paper_form_of_weight_0_changes_not_a_bit(x: Tensor) -> None:
    outputs = []
    for entropy in (None, {"weight": 0.0}):
        torch.manual_seed(0)
        outputs.append(
            GCN(5, 8, 3, num_layers=2, form="paper", dropout=0.5, entropy=entropy).double()(
                x, irregular_graph()
            )
        )
    assert torch.equal(*outputs)


def test_unknown_form_is_an_error() -> None:
    with pytest.raises(ValueError, match="'authors' or 'paper'"):
        GCN(5, 8, 3, 2, form="book")  # type: ignore[arg-type]


@pytest.mark.parametrize(("features", "propagated"), [(5, [1, 0, 0]), (4, [1, 0, 0]), (6, [0] * 3)])
def test_only_a_first_layer_of_equal_width_propagates_first(
    features: int, propagated: list[int]
) -> None:
    """Its input has no gradient, so that its backward pass then propagates nothing."""
    assert [conv.propagate_first for conv in GCN(features, 5, 2, 3).convs] == propagated


def test_norm_stands_between_a_layer_and_its_activation(x: Tensor) -> None:
    graph = irregular_graph()
    model = GCN(5, 8, 3, num_layers=1, norm="GraphNorm").double()
    hidden = GraphNorm(8).double()(model.convs[0](x, graph)).relu()
    torch.testing.assert_close(model(x, graph), model.output(hidden, graph))


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        ("initial_gain", [2.0, 2.0, 1.0]),
        ("input_gain", [2.0, 1.0, 1.0]),
        ("output_gain", [1.0, 1.0, 2.0]),
    ],
)
def test_gains_scale_the_initial_weights_of_their_layers(gain: str, expected: list[float]) -> None:
    def weights(**options: float) -> list[Tensor]:
        torch.manual_seed(0)
        model = GCN(5, 8, 3, num_layers=2, entropy={"weight": 1.0}, **options)
        torch.manual_seed(1)
        model.reset_parameters()
        return [value for name, value in model.named_parameters() if name.endswith("lin.weight")]

    scales = [
        float((scaled / plain).detach().mean())
        for scaled, plain in zip(weights(**{gain: 2.0}), weights(), strict=True)
    ]
    assert scales == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "BachNorm"}, "Could not resolve 'BachNorm' among .*BatchNorm"),
        ({"norm": "PairNorm"}, "for pair normalisation take PairNormGCN"),
        ({"norm": "BatchNorm", "form": "paper"}, "norm is an option of form='authors'"),
        ({"initial_gain": 0.0}, "initial_gain must be a number > 0, but is 0.0"),
        ({"output_gain": math.nan}, "output_gain must be a number > 0, but is nan"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GCN(5, 8, 3, num_layers=1, **options)


@pytest.mark.parametrize("norm", ["GraphNorm", "InstanceNorm", "LayerNorm", "BatchNorm"])
def test_norms_tell_the_graphs_of_a_batch_apart(x: Tensor, norm: str) -> None:
    torch.manual_seed(0)
    model = GCN(5, 8, 3, num_layers=2, norm=norm).double().eval()
    first, second = undirected((0, 1), (1, 2)), undirected((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
    batch = torch.tensor([0] * 4 + [1] * 6)
    both = eamp.Graph(torch.cat([first, second + 4], 1), 10, batch=batch)
    expected = torch.cat([model(x[:4], eamp.Graph(first, 4)), model(x[4:], second)])
    # PyG's LayerNorm adds its epsilon in another place where it knows the graphs.
    torch.testing.assert_close(model(x, both), expected, rtol=1e-4, atol=1e-4)
