from __future__ import annotations

import math

import pytest
import torch

import eamp
from diagnostics.faulty_models import features, grid
from eamp.diagnostics.measures.named_measures import select_measures


def test_all_measures_are_finite_on_an_ordinary_embedding() -> None:
    labels = torch.arange(100) % 3
    measures = select_measures(None, temperature=10.0, labels=labels)
    values = measures.evaluate(features(), eamp.Graph(grid()))
    assert list(values) == [*measures.on_graph, *measures.on_features]
    assert len(values) == 16
    assert all(math.isfinite(value) for value in values.values())


def test_without_a_graph_measures_that_need_one_are_nan() -> None:
    values = select_measures(["energy", "norm"], 10.0, None).evaluate(torch.ones(3, 2), None)
    assert math.isnan(values["energy"])
    assert values["norm"] == 1


def test_nothing_raises_on_an_embedding_that_is_not_finite() -> None:
    x = features()
    x[3, 4] = math.nan
    values = select_measures(None, 10.0, torch.arange(100) % 3).evaluate(x, eamp.Graph(grid()))
    assert math.isnan(values["relative_energy"])
    assert math.isnan(values["effective_rank"])


def test_entropy_is_measured_at_the_given_temperature() -> None:
    graph, x = eamp.Graph(grid()), features()
    values = select_measures("entropy", 3.0, None).evaluate(x, graph)
    assert values == {"entropy": pytest.approx(eamp.entropy(x.double(), graph, 3.0).item())}


def test_a_user_s_own_measures() -> None:
    measures = select_measures({"nodes twice": lambda x, graph: 2.0 * graph.num_nodes}, 10.0, None)
    assert measures.evaluate(torch.ones(100, 1), eamp.Graph(grid())) == {"nodes twice": 200}


def test_error_on_a_wrong_name_lists_the_right_ones() -> None:
    with pytest.raises(ValueError, match=r"no measure is named energie\. .* energy, .*mad_gap"):
        select_measures(["energie"], 10.0, None)


def test_class_separation_needs_labels() -> None:
    with pytest.raises(ValueError, match="labels="):
        select_measures(["group_distance_ratio"], 10.0, None)
    measures = select_measures("group_distance_ratio", 10.0, torch.zeros(3, dtype=torch.long))
    assert not measures.on_graph
    assert list(measures.on_features) == ["group_distance_ratio"]
    assert math.isnan(measures.evaluate(torch.ones(5, 1), None)["group_distance_ratio"])
