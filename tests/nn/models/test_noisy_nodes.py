import copy

import pytest
import torch
from torch import Tensor
from torch.nn import Module

import eamp
from eamp.nn import EGNN, GCN
from eamp.nn.models.noisy_nodes import NoisyNodes
from problems import irregular_graph


class Subtract(Module):
    """A model that returns zero logits, and predicts the noise as (input − clean) / scale."""

    def __init__(self, clean: Tensor, scale: float) -> None:
        super().__init__()
        self.clean, self.scale = clean, scale

    def forward(self, x: Tensor, edge_index: eamp.Graph) -> Tensor:
        return torch.cat([torch.zeros_like(x[:, :2]), (x - self.clean) / self.scale], 1)


@pytest.mark.parametrize("size", [0.01, 1.0, 50.0])
def test_loss_compares_the_prediction_with_the_noise(size: float) -> None:
    """Features of ±size have that root mean square."""
    graph, x = irregular_graph(), size * torch.ones(10, 4) * torch.tensor([1.0, -1.0, 1.0, -1.0])
    right = NoisyNodes(Subtract(x, 0.3 * size), 2, noise=0.3)
    right(x, graph)
    assert float(right.auxiliary_loss()) < 1e-10
    too_high_by_3 = Subtract(x - 3 * 0.3 * size, 0.3 * size)
    wrong = NoisyNodes(too_high_by_3, 2, noise=0.3, weight=0.5)
    wrong(x, graph)
    assert float(wrong.auxiliary_loss()) == pytest.approx(0.5 * 9.0, rel=1e-4)


def test_no_noise_in_evaluation() -> None:
    torch.manual_seed(0)
    graph, x = irregular_graph(), torch.randn(10, 5)
    model = NoisyNodes(GCN(5, 8, 3 + 5, 2), 3).eval()
    assert torch.equal(model(x, graph), model.model(x, graph)[:, :3])
    with pytest.raises(RuntimeError, match=r"model\.train\(\)"):
        model.auxiliary_loss()
    assert not torch.equal(model.train()(x, graph), model(x, graph))


def test_loss_trains_the_prediction() -> None:
    torch.manual_seed(0)
    graph, x = irregular_graph(), torch.randn(10, 5)
    model = NoisyNodes(GCN(5, 8, 3 + 5, 2), 3)
    model(x, graph)
    model.auxiliary_loss().backward()
    gradient = model.model.output.bias.grad  # type: ignore[union-attr]
    assert not gradient[:3].any()
    assert gradient[3:].all()


def test_copies_between_forward_and_backward() -> None:
    """A training loop copies its best model, also while a loss is held."""
    model = NoisyNodes(GCN(5, 8, 3 + 5, 2), 3)
    model(torch.randn(10, 5), irregular_graph())
    twin = copy.deepcopy(model)
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True)
    )
    with pytest.raises(RuntimeError, match="forward pass"):
        twin.auxiliary_loss()
    model.auxiliary_loss().backward()


def test_the_loss_of_the_model_inside_is_added() -> None:
    torch.manual_seed(0)
    inner = EGNN(5, 8, 3 + 5, num_layers=2)
    for conv in inner.convs:
        torch.nn.init.zeros_(conv.weight)
    losses = []
    for model in (NoisyNodes(inner, 3), NoisyNodes(GCN(5, 8, 8, num_layers=2), 3)):
        model(torch.randn(10, 5), irregular_graph())
        losses.append(model.auxiliary_loss() - (inner.auxiliary_loss() if not losses else 0))
        assert 0 < losses[-1] < 1


def test_wrong_number_of_outputs_is_an_error() -> None:
    with pytest.raises(ValueError, match="3 \\+ 5 outputs"):
        NoisyNodes(GCN(5, 8, 3, 2), 3)(torch.randn(10, 5), irregular_graph())
