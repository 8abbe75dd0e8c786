from __future__ import annotations

import subprocess
import sys
from typing import Any

import pandas as pd
import pytest
import torch
from torch_geometric.nn import GCN

import eamp
from diagnostics.faulty_models import Apply, Stack, features, grid, scale
from eamp.diagnostics.charts import depth_charts


@pytest.mark.slow
def test_altair_is_loaded_only_to_draw() -> None:
    code = "import sys, eamp.diagnostics; sys.exit('altair' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def specification(p: Any, *args: Any) -> dict[str, Any]:
    spec: dict[str, Any] = p.plot(*args).to_dict(format="vega-lite")
    return spec


def axis(chart: dict[str, Any]) -> dict[str, Any]:
    encoding: dict[str, Any] = chart["layer"][-1]["encoding"]
    return encoding


def test_a_chart_per_measure_with_logarithmic_axes_where_values_span_decades() -> None:
    with eamp.probe(Stack(*(Apply(scale(0.3)) for _ in range(12)))) as p:
        p.model(features(), grid())
    spec = specification(p, ["energy", "relative_energy"])
    energy, relative = spec["concat"]
    assert axis(energy)["y"]["scale"]["type"] == "log"
    assert "type" not in axis(relative)["y"]["scale"]
    assert axis(energy)["x"]["scale"]["domain"] == [1, 12]
    low, high = axis(energy)["y"]["scale"]["domain"]
    assert low <= p.energy.min() < p.energy.max() <= high


def test_history_is_a_line_per_pass() -> None:
    torch.manual_seed(0)
    model = GCN(32, 16, 3)
    with eamp.probe(model, history=True) as p:
        for _ in range(2):
            model(features(), grid())
    assert all(axis(chart)["color"]["field"] == "forward" for chart in specification(p)["concat"])


def test_a_rule_marks_the_layer_of_a_diagnosis() -> None:
    diagnosis = eamp.diagnose(Stack(*(Apply(scale(0.3)) for _ in range(12))), (features(), grid()))
    spec = diagnosis.plot(["norm"]).to_dict(format="vega-lite")
    assert spec["concat"][0]["layer"][0]["mark"]["type"] == "rule"
    rule_data = spec["datasets"][spec["concat"][0]["layer"][0]["data"]["name"]]
    assert rule_data == [{"layer": diagnosis.layer}]


def test_zeros_and_missing_values_do_not_reach_a_logarithmic_axis() -> None:
    table = pd.DataFrame(
        {"layer": [1, 2, 3, 4], "name": "c", "type": "C", "energy": [1.0, 1e-6, 0.0, float("nan")]}
    )
    spec = depth_charts(table).to_dict(format="vega-lite")
    (values,) = spec["datasets"].values()
    assert [row["layer"] for row in values] == [1, 2]


def test_a_user_s_own_measures_are_drawn_under_their_names() -> None:
    with eamp.probe(
        Stack(Apply(scale(2.0)), Apply(scale(2.0))), {"largest": lambda x, graph: x.max()}
    ) as p:
        p.model(features(), grid())
    (chart,) = specification(p)["concat"]
    assert chart["layer"][0]["title"]["text"] == "largest"
    with pytest.raises(ValueError, match=r"has no energy\. Choose among largest"):
        p.plot(["energy"])
