"""Models compute the same on parts as on the whole graph, or are refused."""

from typing import Any

import pytest
import torch
from torch.nn import BatchNorm1d, Linear, Sequential
from torch_geometric.nn import PairNorm

import eamp
from eamp.nn.models import MODELS
from eamp.scale.part_models import check_model
from scale.jobs import model_differences, together

EXACT: dict[str, Any] = {"weight": 3.0, "temperature": 0.5, "detach": False}
GAIN = {"schedule": "gain", "of": 1.2}
ADMITTED: list[dict[str, Any]] = [
    {"model": "gcn"},
    {"model": "gcn", "form": "paper", "entropy": {"weight": 2.0, "temperature": 1.0}},
    {"model": "entropic-gcn", "entropy": EXACT | {"learn_weight": True, "learn_temperature": True}},
    {
        "model": "entropic-gcn",
        "entropy": EXACT
        | {"weight": {"schedule": "feedback", "lowest": 0, "highest": 4, "detach": False}},
    },
    {
        "model": "entropic-gcn",
        "entropy": EXACT
        | {"weight": {"schedule": "cap", "of": 50.0, "fraction": 0.3, "per": "graph"}},
    },
    {
        "model": "entropic-gcn",
        "entropy": EXACT
        | {"weight": {"schedule": "cap", "of": GAIN, "fraction": 0.3}, "variant": "paper"},
    },
    {
        "model": "entropic-gcn",
        "entropy": EXACT | {"weight": 0.5, "energy": "propagation", "scale_free": True},
    },
    {"model": "entropic-gcn", "entropy": EXACT | {"temperature": "auto"}},
    {
        "model": "entropic-gcn",
        "entropy": EXACT | {"temperature": "auto", "energy": "propagation", "scale_free": True},
    },
    {"model": "entropic-gcnii", "entropy": EXACT},
    {"model": "linear"},
    {"model": "dagnn", "entropy": EXACT},
    {"model": "gcniii", "batch_norm": False},
    {"model": "random-propagation", "drop_rows": 0.0, "entropy": EXACT},
    {"model": "g2", "entropy": {"weight": 1.0, "temperature": 1.0}},
    {"model": "pairnorm"},
    {"model": "pairnorm", "scale_individually": True},
    {"model": "residual-gcn"},
    {"model": "state-space", "entropy": EXACT},
    {
        "model": "deep-gcn",
        "entropy": {
            "weight": {"schedule": "hops", "of": 2},
            "temperature": 1.0,
            "energy": "propagation",
        },
    },
]


def test_logits_and_gradients_are_those_of_the_whole_graph() -> None:
    for found in together(2, model_differences, ADMITTED):
        assert len(found) == len(ADMITTED)
        assert max(found.values()) < 1e-12, found


@pytest.mark.parametrize("setting", ADMITTED, ids=str)
def test_they_are_accepted(setting: dict[str, Any]) -> None:
    options = dict(setting)
    check_model(MODELS[options.pop("model")](6, 8, 3, 3, **options))


@pytest.mark.parametrize(
    "name", ["egnn", "noisy-gcn", "acmp", "grand", "gat", "gps", "ggcm", "gcniii"]
)
def test_other_models_are_refused(name: str) -> None:
    with pytest.raises(eamp.GraphError, match="spread over several processes"):
        check_model(MODELS[name](6, 8, 3, 3))


class Mine(Linear):
    """A layer of a user's."""


@pytest.mark.parametrize(
    "layer", [BatchNorm1d(4), PairNorm(), Mine(4, 4)], ids=lambda layer: type(layer).__name__
)
def test_unknown_layers_are_refused_until_they_say_that_they_run_on_parts(
    layer: torch.nn.Module,
) -> None:
    with pytest.raises(eamp.GraphError, match=f"0, a {type(layer).__name__}"):
        check_model(Sequential(layer))
    layer.runs_on_parts = True  # type: ignore[assignment]  # torch types attributes as tensors
    check_model(Sequential(layer))


def own(energy: torch.Tensor, temperature: float | torch.Tensor) -> torch.Tensor:
    return energy.mean()


def test_functions_as_weights_are_refused() -> None:
    said = r"function of your own as the weight of convs\.0"
    for weight in (own, {"schedule": "cap", "of": own, "fraction": 1.0}):
        with pytest.raises(eamp.GraphError, match=said):
            check_model(eamp.nn.GCN(3, 4, 2, 1, entropy={"weight": weight}))
