"""Measures that share sums are those of the functions that compute each for itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import eamp
from diagnostics.faulty_models import features, grid
from eamp import diagnostics
from eamp.diagnostics.causes.dissection import length
from eamp.diagnostics.measures import embedding as module
from eamp.diagnostics.measures.embedding import Embedding
from eamp.diagnostics.measures.named_measures import ON_FEATURES, SHARED, select_measures
from eamp.ops import reference

ENERGIES = ("energy", "relative_energy", "rayleigh_quotient", "rusch_energy", "laplacian_energy")


def test_all_energies_need_two_passes_over_the_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []

    def counted(x: Any, graph: Any) -> Any:
        passes.append(x)
        return eamp.ops.squared_differences(x, graph)

    monkeypatch.setattr(module, "squared_differences", counted)
    select_measures(SHARED, 10.0, None).evaluate(features(), eamp.Graph(grid()))
    assert len(passes) == 2


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_shared_measures_are_those_taken_one_by_one(scale: float) -> None:
    graph, x = eamp.Graph(grid()), scale * features().double()
    together = select_measures(SHARED, 3.0, None).evaluate(x, graph)
    assert set(SHARED) == {*ENERGIES, "entropy", *ON_FEATURES}
    for name in ENERGIES:
        function = getattr(diagnostics, "mean_energy" if name == "energy" else name)
        assert together[name] == pytest.approx(float(function(x, graph)), rel=1e-12), name
    for name in ON_FEATURES:
        assert together[name] == pytest.approx(float(getattr(diagnostics, name)(x))), name
    assert together["entropy"] == pytest.approx(float(eamp.entropy(x, graph, 3.0)), rel=1e-12)
    expected = reference.dirichlet_energy(x, graph.csr).mean()
    assert together["energy"] == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
@pytest.mark.parametrize("offset", [0.0, 10.0])
def test_float32_is_exact_to_1e_6_where_neighbours_differ(scale: float, offset: float) -> None:
    graph, x = eamp.Graph(grid()), scale * (features() + offset)
    wide, narrow = Embedding(x, graph), Embedding(x, graph, dtype=torch.float32)
    for name in (*ENERGIES, "norm", "effective_rank"):
        values = (float(getattr(each, name)()) for each in (narrow, wide))
        assert next(values) == pytest.approx(next(values), rel=5e-6), name


def test_float32_keeps_small_energies_above_its_own_rounding() -> None:
    graph = eamp.Graph(grid())
    equal = torch.ones(100, 8) + 1e-4 * features(8)
    narrow = float(Embedding(equal, graph, dtype=torch.float32).relative_energy())
    wide = float(Embedding(equal, graph).relative_energy())
    assert wide < 1e-7
    assert narrow == pytest.approx(wide, rel=1e-4)


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_lengths_of_gradients_neither_underflow_nor_overflow(scale: float) -> None:
    gradient = scale * features()
    assert length(gradient) == pytest.approx(float(gradient.double().norm()), rel=1e-6)
