"""The verdict on every constructed case is the one that its construction calls for."""

from __future__ import annotations

import pytest
import torch

import eamp
from diagnostics.cases import CASES

RUNS = [(name, seed) for name, case in CASES.items() for seed in case.seeds]


@pytest.mark.parametrize(("name", "seed"), RUNS)
def test_the_verdict_names_what_was_built_in(name: str, seed: int) -> None:
    case = CASES[name]
    torch.manual_seed(seed)
    model, data = case.make()
    diagnosis = eamp.diagnose(model, data)
    kinds = [finding.kind for finding in diagnosis.findings]
    assert set(case.finds) <= set(kinds) <= {*case.finds, *case.allows}, str(diagnosis)
    if not case.finds:
        assert diagnosis.kind == "healthy"
        assert diagnosis.advice == ()
        return
    first = next(f for f in diagnosis.findings if f.kind == case.finds[0])
    if case.culprit is not None:
        assert first.culprit == case.culprit, str(diagnosis)
    assert first.harmless == case.harmless
    assert diagnosis.advice


def test_there_are_at_least_twenty_cases() -> None:
    assert len(CASES) >= 20
