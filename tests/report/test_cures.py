from __future__ import annotations

import ast

import torch
from torch_geometric.nn import GCN

import eamp
from diagnostics.faulty_models import Apply, Stack, features, grid, rotate
from eamp.diagnostics.result import headline
from eamp.report.cures import buildable, cures, verdict_of


def deep() -> GCN:
    torch.manual_seed(0)
    return GCN(32, 16, 32)


def test_what_the_advice_proposes_is_built_and_measured() -> None:
    model, data = deep(), (features(), grid())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    diagnosis = eamp.diagnose(model, data)
    found = {cure.name.split("(")[0]: cure for cure in cures(diagnosis, model, data)}
    assert set(found) == {"eamp.wrap", "entropic-deep-gcn, untrained"}
    wrapped = found["eamp.wrap"]
    assert wrapped.diagnosis.kind == "healthy"
    assert wrapped.words.startswith("Healthy. Over 32 layers")
    energies = wrapped.diagnosis.table["energy"], diagnosis.table["energy"]
    assert energies[0].iloc[-1] > 1e6 * energies[1].iloc[-1]
    assert model.state_dict().keys() == before.keys(), "the model itself is not wrapped"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_options_are_those_of_the_words() -> None:
    model, data = deep(), (features(), grid())
    diagnosis = eamp.diagnose(model, data)
    (cured,) = (cured for name, cured in buildable(diagnosis, model, data) if "wrap" in name)
    (words,) = (words for words in diagnosis.advice if words.startswith("eamp.wrap("))
    call = ast.parse(words.partition(": ")[0], mode="eval").body
    assert isinstance(call, ast.Call)
    given = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    assert given == {name: getattr(cured.convs[0].step, name) for name in given}
    assert set(given) >= {"weight", "temperature"}


def test_a_healthy_model_needs_no_cure() -> None:
    model, data = Stack(*(Apply(rotate) for _ in range(3))), (features(), grid())
    diagnosis = eamp.diagnose(model, data)
    assert cures(diagnosis, model, data) == ()
    assert verdict_of(diagnosis)[0] == "Healthy"


def test_a_verdict_is_a_heading_and_a_sentence() -> None:
    diagnosis = eamp.diagnose(deep(), (features(), grid()))
    heading, words = verdict_of(diagnosis)
    assert heading == headline(diagnosis.findings[0], 32)
    assert words[0].isupper()
    assert words.endswith(".")
