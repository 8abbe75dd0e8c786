import math

import pytest
import torch

from eamp.nn.models.state_space_gcn import StateSpaceGCN, rotated
from problems import irregular_graph


def test_layer_is_rotation_plus_scaled_convolution() -> None:
    torch.manual_seed(0)
    x, graph = torch.randn(10, 5), irregular_graph()
    model = StateSpaceGCN(5, 4, 3, num_layers=1, rotation=0.7, input_scale=0.2)
    cos, sin = math.cos(0.7), math.sin(0.7)
    # Features 0 and 2 turn by the angle 0, features 1 and 3 by the largest one.
    state = torch.tensor([[1, 0, 0, 0], [0, cos, 0, sin], [0, 0, 1, 0], [0, -sin, 0, cos]])
    h = model.encoder(x)
    expected = h @ state + 0.2 * model.convs[0](h, graph).relu()
    torch.testing.assert_close(model(x, graph), model.decoder(expected))


def test_angles_go_from_0_to_the_largest() -> None:
    angles = [StateSpaceGCN(5, width, 3, 1, rotation=0.6).angles for width in (2, 3, 8)]
    for found, expected in zip(angles, ([0.6], [0.6], [0, 0.2, 0.4, 0.6]), strict=True):
        torch.testing.assert_close(found, torch.tensor(expected))


@pytest.mark.parametrize("features", [1, 2, 7, 8])
def test_rotation_keeps_every_norm(features: int) -> None:
    x = torch.randn(6, features, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    turned = rotated(x, torch.linspace(0, 2, features // 2, dtype=torch.float64))
    torch.testing.assert_close(turned.norm(dim=1), x.norm(dim=1))
    assert torch.equal(rotated(x, torch.zeros(features // 2)), x)


def test_without_input_the_state_and_its_gradient_keep_their_norm_at_any_depth() -> None:
    torch.manual_seed(0)
    x, graph = torch.randn(10, 5, dtype=torch.float64), irregular_graph()
    model = StateSpaceGCN(5, 8, 3, num_layers=500, input_scale=0).double()
    state = model.encoder(x).detach().requires_grad_()
    deep = state
    for _ in range(500):
        deep = rotated(deep, model.angles)
    torch.testing.assert_close(model.decoder(deep), model(x, graph))
    upstream = torch.randn_like(deep)
    (gradient,) = torch.autograd.grad(deep, state, upstream)
    torch.testing.assert_close(deep.norm(dim=1), state.norm(dim=1))
    torch.testing.assert_close(gradient.norm(dim=1), upstream.norm(dim=1))


@pytest.mark.parametrize("name", ["rotation", "input_scale"])
@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan])
def test_wrong_numbers_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a finite number >= 0"):
        StateSpaceGCN(5, 8, 3, num_layers=1, **{name: value})  # type: ignore[arg-type]
