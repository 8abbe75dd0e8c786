"""Solvers on an equation with a known answer, and the entropy as a force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Parameter

import eamp
from eamp.nn.conv.ode import ADAPTIVE, FIXED_STEP, EntropyForce, ODEBlock
from eamp.nn.conv.vector_fields import VectorField
from problems import irregular_graph


class Decay(VectorField):
    """dx/dt = −rate · x."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = Parameter(torch.tensor(1.5, dtype=torch.float64))

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        return -self.rate * x


class Rest(VectorField):
    """dx/dt = 0."""

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        return torch.zeros_like(x)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_adaptive_methods_reach_their_tolerance(method: str) -> None:
    x = torch.randn(10, 2, dtype=torch.float64)
    out = ODEBlock(method, rtol=1e-6, atol=1e-8)(x, irregular_graph(), Decay())
    torch.testing.assert_close(out, x * math.exp(-1.5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_halving_the_step_shows_the_order_of_a_fixed_step_method(method: str, order: int) -> None:
    x = torch.ones(10, 1, dtype=torch.float64)
    error = [
        (ODEBlock(method, steps=n)(x, irregular_graph(), Decay())[0, 0] - math.exp(-1.5))
        .abs()
        .item()
        for n in (16, 32)
    ]
    assert math.log2(error[0] / error[1]) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("steps", [1, 3, 7, 49])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_takes_as_many_steps_as_asked(steps: int, dtype: torch.dtype) -> None:
    calls = []

    class Counted(Rest):
        def forward(self, x: Tensor, edge_index: Any) -> Tensor:
            calls.append(1)
            return torch.ones_like(x)

    out = ODEBlock("euler", steps=steps)(
        torch.zeros(10, 1, dtype=dtype), irregular_graph(), Counted()
    )
    assert len(calls) == steps
    torch.testing.assert_close(out, torch.ones(10, 1, dtype=dtype))


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_adjoint_gives_the_gradient_of_the_solution(method: str) -> None:
    x = torch.randn(10, 2, dtype=torch.float64, requires_grad=True)
    field = Decay()
    out = ODEBlock(method, steps=40, rtol=1e-8, atol=1e-8, adjoint=True)(
        x, irregular_graph(), field
    )
    out.sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, math.exp(-1.5)))
    torch.testing.assert_close(field.rate.grad, -math.exp(-1.5) * x.detach().sum())


def test_names_the_methods_there_are() -> None:
    with pytest.raises(ValueError, match=r"euler, midpoint, rk4.*dopri5.*'simpson'"):
        ODEBlock("simpson")
    for steps in (0, True):
        with pytest.raises(ValueError, match=f"steps must be a whole number >= 1, but is {steps}"):
            ODEBlock(steps=steps)
    assert set(FIXED_STEP).isdisjoint(ADAPTIVE)


# --- The entropy as a force -----------------------------------------------------------------------


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_entropy_never_falls_along_its_own_flow(normalize: bool, method: str) -> None:
    graph = irregular_graph()
    x = torch.randn(10, 4, dtype=torch.float64)
    force = EntropyForce(weight=2.0, temperature=0.7, normalize=normalize)
    flow = ODEBlock(method, steps=8, rtol=1e-8, atol=1e-8, force=force)
    entropies = []
    for _ in range(12):
        entropies.append(float(eamp.entropy(x, graph, 0.7, normalize=normalize)))
        x = flow(x, graph, Rest())
    assert all(later >= earlier for earlier, later in itertools.pairwise(entropies))
    assert entropies[-1] > entropies[0] + 0.1


def test_force_is_the_gradient_and_not_the_gradient_times_temperature() -> None:
    graph = irregular_graph()
    x = torch.randn(10, 3, dtype=torch.float64)
    force = EntropyForce(weight=0.3, temperature=5.0)
    torch.testing.assert_close(
        ODEBlock(force=force)(x, graph, Rest()), x + 0.3 * eamp.entropy_gradient(x, graph, 5.0)
    )


def test_detached_force_lets_no_gradient_through_and_the_other_does() -> None:
    graph = irregular_graph()
    x = torch.randn(10, 3, dtype=torch.float64, requires_grad=True)
    assert not EntropyForce(temperature=1.0)(x, graph).requires_grad
    assert torch.autograd.gradcheck(
        lambda x: EntropyForce(temperature=1.0, detach=False)(x, graph), x
    )


def test_options_of_the_force() -> None:
    assert EntropyForce.of(None) is None
    assert EntropyForce.of({"weight": 0.0}) is None
    assert EntropyForce.of({}) == EntropyForce(weight=1.0, temperature=10.0)
    assert EntropyForce.of({"weight": 2, "variant": "paper"}) == EntropyForce(2, variant="paper")


@pytest.mark.parametrize(
    ("entropy", "message"),
    [
        (
            {"learn_weight": True, "residual": True},
            r"takes weight, temperature, detach, normalize, variant, not learn_weight, residual\.$",
        ),
        ({"wait": 1.0}, "has no option wait; it has weight, temperature"),
        ({"temperature": "auto"}, "temperature must be a number, but is 'auto'"),
        ({"temperature": 0.0}, "must be > 0"),
        ({"weight": lambda energy, temperature: 1.0}, "weight must be a number"),
        ({"variant": "published"}, "one of 'exact', 'paper', 'permuted'"),
    ],
)
def test_options_without_meaning_in_an_equation_are_refused(
    entropy: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        EntropyForce.of(entropy)
