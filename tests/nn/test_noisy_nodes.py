import copy

import pytest
import torch
from torch import Tensor
from torch.nn import Module

import eamp
from eamp.nn import GCN
from eamp.nn.noisy_nodes import NoisyNodes
from problems import irregular_graph


class Echo(Module):
    """Two columns of zeros as logits, and its input as its guess of the noise."""

    def reset_parameters(self) -> None: ...

    def forward(self, x: Tensor, edge_index: eamp.Graph) -> Tensor:
        return torch.cat([torch.zeros_like(x[:, :2]), x], 1)


def test_loss_compares_the_guess_with_the_noise() -> None:
    graph, x = irregular_graph(), torch.zeros(10, 5)
    right = NoisyNodes(Echo(), 2, noise=1.0)
    right(x, graph)
    assert float(right.auxiliary_loss()) == 0.0
    wrong = NoisyNodes(Echo(), 2, noise=1.0, weight=0.5)
    wrong(x + 3.0, graph)
    assert float(wrong.auxiliary_loss()) == pytest.approx(0.5 * 9.0, rel=1e-5)


def test_no_noise_in_evaluation() -> None:
    torch.manual_seed(0)
    graph, x = irregular_graph(), torch.randn(10, 5)
    model = NoisyNodes(GCN(5, 8, 3 + 5, 2), 3).eval()
    assert torch.equal(model(x, graph), model.model(x, graph)[:, :3])
    with pytest.raises(RuntimeError, match=r"model\.train\(\)"):
        model.auxiliary_loss()
    assert not torch.equal(model.train()(x, graph), model(x, graph))


def test_loss_trains_the_guess() -> None:
    torch.manual_seed(0)
    graph, x = irregular_graph(), torch.randn(10, 5)
    model = NoisyNodes(GCN(5, 8, 3 + 5, 2), 3)
    model(x, graph)
    model.auxiliary_loss().backward()
    gradient = model.model.output.bias.grad  # type: ignore[union-attr]
    assert not gradient[:3].any()
    assert gradient[3:].all()


def test_copies_between_forward_and_backward() -> None:
    """A training loop keeps its best model by copying it, whatever loss is still held."""
    model = NoisyNodes(GCN(5, 8, 3 + 5, 2), 3)
    model(torch.randn(10, 5), irregular_graph())
    twin = copy.deepcopy(model)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    with pytest.raises(RuntimeError, match="forward pass"):
        twin.auxiliary_loss()
    model.auxiliary_loss().backward()


def test_wrong_number_of_outputs_is_an_error() -> None:
    with pytest.raises(ValueError, match="3 \\+ 5 outputs"):
        NoisyNodes(GCN(5, 8, 3, 2), 3)(torch.randn(10, 5), irregular_graph())
