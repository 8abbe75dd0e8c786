import pytest
import torch
from torch import Tensor
from torch.nn import Module, Parameter

import eamp
from eamp.nn import MODELS, EntropyStep
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.entropic import entropic
from problems import irregular_graph


class LearnedSchedule(Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = Parameter(torch.tensor(0.5))

    def forward(self, energy: Tensor, temperature: float | Tensor) -> Tensor:
        return self.scale


def test_none_is_the_layer_itself() -> None:
    conv = GCNConv(3, 3)
    assert entropic(conv, None) is conv


def test_no_options_are_the_defaults() -> None:
    layer = entropic(GCNConv(3, 3), {})
    assert isinstance(layer, eamp.EntropyAware)
    assert layer.step == EntropyStep()


def test_every_layer_has_a_schedule_of_its_own() -> None:
    entropy = {"weight": LearnedSchedule(), "temperature": 1.0}
    model = MODELS["gcn"](5, 8, 3, 4, entropy=entropy)
    schedules = {module for module in model.modules() if isinstance(module, LearnedSchedule)}
    assert len(schedules) == 4
    assert entropy["weight"] not in schedules
    model(torch.randn(10, 5), irregular_graph()).sum().backward()
    assert all(schedule.scale.grad is not None for schedule in schedules)


@pytest.mark.parametrize("name", ["gcn", "gcnii"])
def test_entropic_names_have_the_step_without_being_asked(name: str) -> None:
    for prefix, expected in (("", 0), ("entropic-", 2)):
        model = MODELS[prefix + name](5, 8, 3, 2, entropy=None)
        assert sum(isinstance(module, eamp.EntropyAware) for module in model.modules()) == expected
