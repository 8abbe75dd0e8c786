"""One set of options: the same for layers, wrap, models and mappings, checked in one place."""

from dataclasses import FrozenInstanceError
from typing import Any, get_type_hints

import pytest
import torch
import torch_geometric.nn as pyg

import eamp
from eamp.nn import GCN, DeepGCN, EntropyStep, Gain
from eamp.nn.step.options import PRESETS, StepOptions
from eamp.nn.wrapping import WrapOptions

OPTIONS = {"weight": 0.5, "temperature": 2.0, "detach": False, "energy": "propagation"}


def test_keyword_arguments_have_the_names_and_types_of_the_fields() -> None:
    wanted = get_type_hints(EntropyStep)
    keywords = get_type_hints(StepOptions)
    assert set(keywords) == set(wanted) - {"weight", "temperature"}
    assert all(kind == wanted[name] for name, kind in keywords.items())
    assert set(get_type_hints(WrapOptions)) == set(wanted)


def test_layers_wrap_models_and_mappings_share_it() -> None:
    step = EntropyStep(**OPTIONS)  # type: ignore[arg-type]
    assert step == EntropyStep.of(OPTIONS)
    assert eamp.EntropyAware(pyg.GCNConv(4, 4), **OPTIONS).step == step  # type: ignore[arg-type]
    for given in (OPTIONS, step):
        assert eamp.wrap(pyg.GCN(4, 4, 2), given).convs[1].step == step
        assert GCN(4, 4, 3, 2, entropy=given).convs[1].step == step
    assert eamp.wrap(pyg.GCN(4, 4, 2), **OPTIONS).convs[0].step == step
    with pytest.raises(ValueError, match=r"but not both: \['weight'\]"):
        eamp.wrap(pyg.GCN(4, 4, 2), step, weight=1.0)


def test_the_defaults_are_one_and_the_same_everywhere() -> None:
    step = EntropyStep(weight=Gain(2.0), temperature=1.0, detach=False)
    assert EntropyStep() == EntropyStep.of({}) == step
    assert eamp.EntropyAware(pyg.GCNConv(4, 4)).step == step
    assert eamp.wrap(pyg.GCN(4, 4, 2)).convs[1].step == step


def test_the_paper_is_a_preset_that_options_change() -> None:
    paper = eamp.wrap(pyg.GCN(4, 4, 2), preset="paper").convs[0].step
    assert paper == EntropyStep(**PRESETS["paper"])
    assert (paper.weight, paper.temperature, paper.detach, paper.variant) == (1, 10, True, "paper")
    changed = eamp.wrap(pyg.GCN(4, 4, 2), preset="paper", weight=3.0).convs[0].step
    assert (changed.weight, changed.temperature, changed.variant) == (3.0, 10.0, "paper")
    with pytest.raises(ValueError, match="preset must be one of paper, but is 'papre'"):
        eamp.wrap(pyg.GCN(4, 4, 2), preset="papre")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"but not both: \['preset'\]"):
        eamp.wrap(pyg.GCN(4, 4, 2), EntropyStep(), preset="paper")


def test_a_model_decides_where_the_step_is_taken_unless_it_is_told() -> None:
    assert DeepGCN(4, 4, 3, 2, entropy={}).convs[0].step.placement == "input"
    told = DeepGCN(4, 4, 3, 2, entropy={"placement": "output"})
    assert told.convs[0].step.placement == "output"
    assert DeepGCN(4, 4, 3, 2, entropy=EntropyStep()).convs[0].step.placement == "output"


def test_it_is_frozen_and_prints_what_is_not_the_default() -> None:
    step = EntropyStep({"schedule": "gain", "of": 0.3}, scale_free=True)  # type: ignore[arg-type]
    assert step.weight == Gain(0.3)
    assert repr(step) == "EntropyStep(weight=Gain(of=0.3), temperature=1.0, scale_free=True)"
    with pytest.raises(FrozenInstanceError):
        step.detach = False  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weigth": 2.0}, "has no option weigth; it has weight, temperature, learn_weight"),
        ({"detach": "False"}, "detach must be True or False, but is 'False'"),
        ({"scale_free": 1}, "scale_free must be True or False, but is 1"),
        ({"variant": "exat"}, "variant must be one of 'exact', 'paper', 'permuted', but is 'exat'"),
        ({"placement": "middle"}, "placement must be 'output' or 'input', but is 'middle'"),
        ({"temperature": -1.0}, "temperature must be > 0, but is -1.0"),
        ({"temperature": "hot"}, "must be a number > 0 or 'auto', but is 'hot'"),
        ({"temperature": "auto", "learn_temperature": True}, "measured.*learned: choose one"),
        ({"weight": Gain(1.0), "learn_weight": True}, "needs a number to start from"),
        ({"weight": torch.tensor(1.0)}, r"is a tensor: pass float\(weight\), with learn_weight"),
        ({"temperature": torch.tensor(1.0)}, r"is a tensor: pass float\(temperature\)"),
        (True, "described by a mapping.*or by an eamp.nn.EntropyStep, but is True"),
    ],
)
def test_mistakes_are_named(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EntropyStep.of(options)


def test_learned_options_are_saved_and_follow_the_model() -> None:
    layer = eamp.EntropyAware(
        pyg.GCNConv(4, 4), 0.5, 2.0, learn_weight=True, learn_temperature=True
    )
    assert {"weight", "log_temperature"} <= set(layer.state_dict())
    assert layer.to(torch.float64).weight.dtype == torch.float64
    other = eamp.EntropyAware(
        pyg.GCNConv(4, 4), 1.0, 1.0, learn_weight=True, learn_temperature=True
    )
    other.double().load_state_dict(layer.state_dict())
    assert other.weight.item() == 0.5
