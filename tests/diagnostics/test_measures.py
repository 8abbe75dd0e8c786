from __future__ import annotations

import math

import pytest
import torch

import eamp
from diagnostics.faulty_models import features, grid
from eamp.diagnostics.measures import choose


def test_all_measures_are_finite_on_an_ordinary_embedding() -> None:
    labels = torch.arange(100) % 3
    measures = choose(None, temperature=10.0, labels=labels)
    values = measures.of(features(), eamp.Graph(grid()))
    assert list(values) == measures.names
    assert len(values) == 13
    assert all(math.isfinite(value) for value in values.values())


def test_measures_that_need_no_graph_do_without() -> None:
    values = choose(["energy", "norm"], 10.0, None).of(torch.ones(3, 2), None)
    assert math.isnan(values["energy"])
    assert values["norm"] == 1


def test_nothing_raises_on_an_embedding_that_is_not_finite() -> None:
    x = features()
    x[3, 4] = math.nan
    values = choose(None, 10.0, torch.arange(100) % 3).of(x, eamp.Graph(grid()))
    assert math.isnan(values["relative_energy"])
    assert math.isnan(values["effective_rank"])


def test_temperature_is_that_of_the_entropy() -> None:
    graph, x = eamp.Graph(grid()), features()
    values = choose("entropy", 3.0, None).of(x, graph)
    assert values == {"entropy": pytest.approx(eamp.entropy(x.double(), graph, 3.0).item())}


def test_measures_of_one_s_own() -> None:
    measures = choose({"nodes twice": lambda x, graph: 2.0 * graph.num_nodes}, 10.0, None)
    assert measures.of(torch.ones(100, 1), eamp.Graph(grid())) == {"nodes twice": 200}


def test_a_wrong_name_is_told_with_the_right_ones() -> None:
    with pytest.raises(ValueError, match=r"no measure named energie; there are energy, .*mad_gap"):
        choose(["energie"], 10.0, None)


def test_class_separation_needs_labels() -> None:
    with pytest.raises(ValueError, match="labels="):
        choose(["group_distance_ratio"], 10.0, None)
    assert choose("group_distance_ratio", 10.0, torch.zeros(3)).names == ["group_distance_ratio"]
    assert math.isnan(
        choose("group_distance_ratio", 10.0, torch.zeros(3)).of(torch.ones(5, 1), None)[
            "group_distance_ratio"
        ]
    )
