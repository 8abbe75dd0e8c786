"""Energetic graph networks: where the limits on the energy hold, and the loss that keeps them."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import eamp
from eamp.nn.conv.egnn_conv import EGNNConv
from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.nn.models.egnn import EGNN
from problems import graphs, random_graph

ROUNDING = 1e-9  # of float64, relative


def propagation_matrix(graph: eamp.Graph) -> Tensor:
    return gcn_propagate(torch.eye(graph.num_nodes, dtype=torch.float64), graph)


def energy(x: Tensor, graph: eamp.Graph) -> float:
    """tr(Xᵀ (I − Â) X), the paper's own measure."""
    return float((x * (x - gcn_propagate(x, graph))).sum())


def above(x: Tensor, graph: eamp.Graph, threshold: float) -> Tensor:
    """The part of ``x`` at eigenvalues of Â from ``threshold`` on."""
    value, vector = torch.linalg.eigh(propagation_matrix(graph))
    kept = vector[:, value >= threshold]
    return kept @ (kept.t() @ x)


def states(model: EGNN, x: Tensor, graph: eamp.Graph) -> list[Tensor]:
    """X_0 = ``x`` and the state after every layer."""
    trajectory = [x]
    with torch.no_grad():
        for conv, activation in zip(model.convs, model.activations, strict=True):
            trajectory.append(activation(conv(trajectory[-1], graph, x)))
    return trajectory


def energies(x: Tensor, graph: eamp.Graph, **options: float) -> list[float]:
    model = EGNN(1, x.size(1), 2, num_layers=16, shift=-1e3, **options).double()  # type: ignore[arg-type]
    return [energy(state, graph) for state in states(model, x, graph)]


def draw_features(graph: eamp.Graph, seed: int) -> Tensor:
    return torch.randn(
        graph.num_nodes, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )


limits = {
    "c_min": st.floats(0.05, 0.95),
    "share": st.floats(0.0, 1.0),
    "seed": st.integers(0, 2**31),
}


@given(graph=graphs(min_nodes=2), c_max=st.floats(1.0, 3.0), **limits)
def test_energy_stays_below_its_upper_limit(
    graph: eamp.Graph, c_max: float, c_min: float, share: float, seed: int
) -> None:
    first, *later = energies(
        draw_features(graph, seed), graph, c_min=c_min, c_max=c_max, initial_residual=share * c_min
    )
    assert max(later) <= c_max * first * (1 + ROUNDING) + 1e-12


@given(graph=graphs(min_nodes=2), c_max=st.floats(0.3, 1.0), seed=st.integers(0, 2**31))
def test_upper_limits_below_1(graph: eamp.Graph, c_max: float, seed: int) -> None:
    x = draw_features(graph, seed)
    first, *later = energies(x, graph, c_min=0.2, c_max=c_max, initial_residual=0.0)
    assert max(later) <= c_max * first * (1 + ROUNDING) + 1e-12
    first, second, *later = energies(x, graph, c_min=0.2, c_max=c_max, initial_residual=0.2)
    assert second <= c_max * first * (1 + ROUNDING) + 1e-12
    assert max(later) <= first * (1 + ROUNDING) + 1e-12


@given(graph=graphs(min_nodes=2), **limits)
def test_energy_of_smooth_features_stays_above_its_lower_limit(
    graph: eamp.Graph, c_min: float, share: float, seed: int
) -> None:
    smooth = above(draw_features(graph, seed), graph, math.sqrt(c_min) / (1 + math.sqrt(c_min)))
    steps = energies(smooth, graph, c_min=c_min, initial_residual=share * c_min)
    assert all(
        later >= c_min * earlier * (1 - ROUNDING) - 1e-12
        for earlier, later in itertools.pairwise(steps)
    )


@given(graph=graphs(min_nodes=2), **limits)
def test_energy_without_negative_frequencies_has_weaker_limits(
    graph: eamp.Graph, c_min: float, share: float, seed: int
) -> None:
    beta = share * c_min
    steps = energies(
        above(draw_features(graph, seed), graph, 0.0), graph, c_min=c_min, initial_residual=beta
    )
    assert all(
        later >= c_min**2 * earlier * (1 - ROUNDING) - 1e-12
        for earlier, later in itertools.pairwise(steps)
    )
    assert min(steps) >= beta**2 * steps[0] * (1 - ROUNDING) - 1e-12


def test_both_limits_hold_on_a_large_random_graph_once_features_are_smoothed() -> None:
    # The settings of the paper on Cora. Noise loses more than 1 − c_min of its energy in the first
    # layer; after that both limits hold.
    graph = random_graph(200, 500)
    x = torch.randn(200, 8, dtype=torch.float64).relu()
    model = EGNN(1, 8, 2, num_layers=64, c_min=0.2, c_max=1.0, initial_residual=0.1).double()
    first, *later = [energy(state, graph) for state in states(model, x, graph)]
    assert max(later) <= first
    assert all(b >= 0.2 * a for a, b in itertools.pairwise(later))
    plain = x
    for _ in range(64):
        plain = gcn_propagate(plain, graph)
    assert later[-1] > 1e3 * energy(plain, graph)


def test_weights_start_orthogonal_and_scaled() -> None:
    model = EGNN(6, 4, 2, num_layers=3, c_max=1.44)
    scales = [1.2, 1.0, 1.0]
    for conv, scale in zip(model.convs, scales, strict=True):
        torch.testing.assert_close(conv.weight @ conv.weight.t(), scale**2 * torch.eye(4))
    assert model.auxiliary_loss() == 0


@pytest.mark.parametrize(
    "entropy", [None, {"weight": 0.1, "temperature": 1.0}], ids=["bare", "entropy"]
)
def test_penalty_is_the_distance_from_those_weights_and_descending_it_restores_them(
    entropy: dict[str, float] | None,
) -> None:
    model = EGNN(6, 4, 2, num_layers=2, c_max=1.44, penalty_weight=3.0, entropy=entropy)
    weights = [conv.weight for conv in model.modules() if isinstance(conv, EGNNConv)]
    assert len(weights) == 2
    with torch.no_grad():
        weights[0][0, 1] += 3.0
        weights[1][2, 2] -= 4.0
    torch.testing.assert_close(model.auxiliary_loss(), torch.tensor(3.0 * (3.0 + 4.0)))
    optimizer = torch.optim.SGD(weights, lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        model.auxiliary_loss().backward()
        optimizer.step()
    assert model.auxiliary_loss() < 0.3
    assert all(parameter.grad is None for parameter in model.encoder.parameters())


def test_penalty_at_its_minimum_has_no_gradient_and_is_no_nan() -> None:
    model = EGNN(6, 4, 2, num_layers=2)
    model.auxiliary_loss().backward()
    assert all(not conv.weight.grad.any() for conv in model.convs)


def test_starts_linear_in_what_the_encoder_gives() -> None:
    graph, x = random_graph(20, 40), torch.randn(20, 6)
    model = EGNN(6, 8, 3, num_layers=5)
    hidden = states(model, torch.relu(model.encoder(x)).detach(), graph)
    assert all((state >= 0).all() for state in hidden)  # far above the shift of −10
    torch.testing.assert_close(model(x, graph), model.decoder(hidden[-1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"c_min": 0.0}, "0 < c_min < 1"),
        ({"c_min": 0.2, "initial_residual": 0.3}, "0 <= initial_residual <= c_min"),
        ({"c_min": 0.5, "c_max": 0.4}, "c_min <= c_max"),
    ],
)
def test_impossible_limits_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EGNN(6, 4, 2, num_layers=2, **options)  # type: ignore[arg-type]
