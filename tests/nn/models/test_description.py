"""What is said about every model, against what the models do."""

import pytest
from torch.nn import Module

from eamp.nn import MODELS, EntropyAware
from eamp.nn.conv.ode import ODEBlock
from eamp.nn.models.description import describe

SIZES = (6, 8, 3, 2)
every_model = pytest.mark.parametrize("name", MODELS)


def takes_step(model: Module) -> bool:
    return any(
        isinstance(module, EntropyAware)
        or (isinstance(module, ODEBlock) and module.force is not None)
        for module in model.modules()
    )


def is_unknown(name: str, option: str) -> bool:
    try:
        MODELS[name](*SIZES, **{option: object()})
    except Exception as error:  # the value means nothing, so some error is expected
        return "unexpected keyword" in str(error)
    return False


@every_model
def test_the_entropy_step_is_taken_as_described(name: str) -> None:
    expected = describe(name).entropy
    assert takes_step(MODELS[name](*SIZES)) == (expected == "always")
    assert takes_step(MODELS[name](*SIZES, entropy={"weight": 2.0})) == (expected != "never")


@every_model
def test_every_option_is_known_to_the_model(name: str) -> None:
    assert not [option for option in describe(name).options if is_unknown(name, option)]
    assert is_unknown(name, "nonsense")


@every_model
def test_every_model_is_described_in_one_plain_line(name: str) -> None:
    summary = describe(name).summary
    assert summary.endswith(".")
    assert not set("`*:\n") & set(summary.replace(": ", ""))


def test_shared_options_and_other_names() -> None:
    assert describe("grand").options[:3] == ("attention", "heads", "head_channels")
    assert {"method", "rtol"} < set(describe("grand").options)
    assert not {"dropout", "entropy"} & set(describe("grand").options)
    assert describe("appnp").summary == "Another name of linear."
    assert describe("dropedge-gcn").summary.endswith("; here gcn.")
