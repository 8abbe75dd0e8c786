from typing import Any

import pytest
import torch
from torch import Tensor

import eamp
from eamp.nn import Gain, collapse_threshold
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.step.weight import as_weight
from problems import irregular_graph

GRAPH = irregular_graph()


class Same(torch.nn.Module):
    """A layer that leaves the features as they are, so that only the step is seen."""

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        return x.clone()


def test_numbers_and_functions_stay_as_they_are_and_plain_data_becomes_a_schedule() -> None:
    assert as_weight(0.5) == 0.5
    assert as_weight(max) is max
    assert as_weight({"schedule": "gain", "of": 0.3}) == as_weight(Gain(0.3)) == Gain(0.3)


def test_a_users_function_goes_alone_or_inside() -> None:
    x = torch.randn(10, 4)
    energy = eamp.dirichlet_energy(x, GRAPH)

    def own(energy: Tensor, temperature: float | Tensor) -> Tensor:
        return (energy < temperature).float()

    expected = x + (energy < 1).float().unsqueeze(1) * eamp.entropy_gradient(x, GRAPH, 1.0)
    torch.testing.assert_close(eamp.EntropyAware(Same(), own, 1.0)(x, GRAPH), expected)
    doubled = eamp.EntropyAware(Same(), Gain(own), 1.0)(x, GRAPH) - x
    torch.testing.assert_close(doubled, collapse_threshold(GRAPH, 4).float() * (expected - x))
    with pytest.raises(
        ValueError, match=r"Gain's of must be .* but is a Same: only a module that is itself"
    ):
        Gain(Same())


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            {"schedule": "rampe", "start": 1},
            "one of ramp, feedback, gain, hops, cap, .* but is {'schedule': 'rampe'",
        ),
        ({"of": 1}, "one of ramp, feedback, gain, hops, cap"),
        ({"schedule": "ramp", "start": 1}, "'ramp' needs end beside start"),
        ({"schedule": "gain", "off": 1}, "'gain' takes of, not off"),
        (
            {"schedule": "gain", "of": {"schedule": "ramp", "start": "a", "end": 1}},
            "Ramp's start must be a finite number, but is 'a'",
        ),
        (
            {"schedule": "ramp", "start": 0, "end": 1, "curve": "geometric"},
            "needs start and end above 0, but they are 0 and 1",
        ),
        (
            {"schedule": "ramp", "start": 0, "end": 1, "curve": "cubic"},
            "curve must be one of linear, geometric, but is 'cubic'",
        ),
        (
            {"schedule": "feedback", "lowest": 2, "highest": 1},
            "lowest must not be above highest, but they are 2 and 1",
        ),
        (
            {"schedule": "feedback", "lowest": 0, "highest": 1, "target": 0},
            "target must be a finite number > 0, but is 0",
        ),
        (
            {"schedule": "feedback", "lowest": 0, "highest": 1, "sharpness": 0.5},
            "sharpness must be a finite number >= 1, but is 0.5",
        ),
        (
            {"schedule": "feedback", "lowest": 0, "highest": 1, "per": "layer"},
            "per must be one of graph, node, but is 'layer'",
        ),
        (
            {"schedule": "cap", "of": 1, "fraction": -1},
            "fraction must be a finite number > 0, but is -1",
        ),
        ("gain", "a number, a schedule .* or a function, but is 'gain'"),
        (None, "a number, a schedule .* or a function, but is None"),
    ],
)
def test_errors_say_what_came_and_what_was_expected(weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        eamp.EntropyAware(GCNConv(4, 4), weight)
