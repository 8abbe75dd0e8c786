"""The step in other metrics is still the gradient of an entropy."""

from typing import Any

import pytest
import torch
from torch import Tensor

import eamp
from eamp.nn import Gain
from eamp.nn.conv.gcn_conv import GCNConv, gcn_propagate
from problems import irregular_graph

GRAPH = irregular_graph()
N = GRAPH.num_nodes


class Nothing(torch.nn.Module):
    """A layer that returns zeros, so that only the step is seen."""

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        return torch.zeros_like(x)


def features(width: int = 3, seed: int = 0) -> Tensor:
    return torch.randn(N, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def step(x: Tensor, graph: Any = GRAPH, **options: Any) -> Tensor:
    return eamp.EntropyAware(Nothing(), placement="input", **options)(x, graph)


def energies(x: Tensor, graph: eamp.Graph = GRAPH) -> Tensor:
    """As the docstring writes them down."""
    row, col = graph.edge_index
    u = x / (graph.degree + 1).sqrt().unsqueeze(1)
    squares = (u[row] - u[col]).square().sum(1)
    return torch.zeros(len(x), dtype=x.dtype).index_add(0, row, squares) / 2 / x.size(1) ** 0.5


def test_the_energies_add_up_to_what_a_propagation_lowers() -> None:
    x = features()
    torch.testing.assert_close(
        energies(x).sum(), (x * (x - gcn_propagate(x, GRAPH))).sum() / 3**0.5
    )


def test_sym_is_the_gradient_of_its_entropy() -> None:
    x = features().requires_grad_()
    ratio = energies(x) / 0.7
    entropy = (ratio * torch.exp(-ratio)).sum()
    (gradient,) = torch.autograd.grad(entropy, x)
    torch.testing.assert_close(
        step(x.detach(), weight=2.0, temperature=0.7, energy="propagation"), 2 * 0.7 * gradient
    )


@pytest.mark.parametrize("energy_kind", ["paper", "propagation"])
def test_scale_free_is_the_gradient_at_the_scaled_embedding(energy_kind: Any) -> None:
    x = features().requires_grad_()
    scale = x.detach().square().mean().sqrt() * 3**0.25
    energy = (
        energies(x / scale)
        if energy_kind == "propagation"
        else eamp.dirichlet_energy(x / scale, GRAPH)
    )
    ratio = energy / 0.7
    (gradient,) = torch.autograd.grad((ratio * torch.exp(-ratio)).sum(), x)
    got = step(x.detach(), weight=2.0, temperature=0.7, energy=energy_kind, scale_free=True)
    torch.testing.assert_close(got, 2 * 0.7 * scale**2 * gradient)


@pytest.mark.parametrize("energy_kind", ["paper", "propagation"])
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_scale_free_steps_grow_with_the_embedding(energy_kind: Any, factor: float) -> None:
    x = features()
    options = {
        "weight": 1.5,
        "temperature": 0.2,
        "energy": energy_kind,
        "scale_free": True,
    }
    torch.testing.assert_close(step(factor * x, **options), factor * step(x, **options))
    assert not step(torch.zeros_like(x), **options).any()


@pytest.mark.parametrize(
    "options",
    [
        {"energy": "propagation"},
        {"scale_free": True},
        {"energy": "propagation", "scale_free": True},
    ],
)
def test_they_are_differentiated_through(options: dict[str, Any]) -> None:
    layer = eamp.EntropyAware(Nothing(), 1.5, 0.5, placement="input", detach=False, **options)
    assert torch.autograd.gradcheck(lambda x: layer(x, GRAPH), features().requires_grad_())


def test_scale_free_energies_are_free_of_the_width() -> None:
    x = features(2)
    wide = x.repeat(1, 50)
    options = {"weight": Gain(0.8), "temperature": 0.2, "energy": "propagation", "scale_free": True}
    torch.testing.assert_close(step(wide, **options), step(x, **options).repeat(1, 50))


def test_graphs_of_a_batch_have_their_own_scale() -> None:
    x = torch.cat([features(), 100 * features(seed=1)])
    both = eamp.Graph(
        torch.cat([GRAPH.edge_index, GRAPH.edge_index + N], 1),
        2 * N,
        batch=torch.arange(2).repeat_interleave(N),
    )
    options = {"weight": 1.5, "temperature": 0.2, "energy": "propagation", "scale_free": True}
    torch.testing.assert_close(
        step(x, both, **options), torch.cat([step(x[:N], **options), step(x[N:], **options)])
    )


@pytest.mark.parametrize("gain", [0.0, 0.5, 0.9, 1.0])
def test_gain_is_the_share_of_a_propagation_that_the_step_undoes(gain: float) -> None:
    conv = GCNConv(3, 3, bias=False).double()
    torch.nn.init.eye_(conv.lin.weight)
    layer = eamp.EntropyAware(
        conv, Gain(gain), temperature=1e12, placement="input", energy="propagation"
    )
    x = features()
    torch.testing.assert_close(layer(x, GRAPH), (1 - gain) * gcn_propagate(x, GRAPH) + gain * x)


def test_isolated_nodes_stay_where_they_are() -> None:
    graph = eamp.Graph(torch.tensor([[0, 1], [1, 0]]), 3)
    moved = step(torch.tensor([[0.0], [1.0], [5.0]]), graph, energy="propagation", scale_free=True)
    assert moved[2] == 0
    assert moved[0] != 0


def test_another_energy_is_refused() -> None:
    with pytest.raises(ValueError, match="energy must be 'paper' or 'propagation', but is 'rw'"):
        eamp.EntropyAware(Nothing(), energy="rw")  # type: ignore[arg-type]
