import re
from typing import Any

import pandas as pd
import pytest
import vl_convert

from eamp.report.depth_chart import axis_ends, depth_chart
from eamp.report.figure import disk_spec


def means(depths: list[int], deviation: float = 0.02) -> pd.DataFrame:
    rows = [
        {"data": data, "name": name, "depth": depth, "mean": 0.83 - depth / 100}
        for data in ("x", "y")
        for name in ("GCN", "GCNII")
        for depth in depths
    ]
    return pd.DataFrame(rows).assign(deviation=deviation, runs=3)


def marks(chart: Any) -> list[str]:
    return [layer["mark"]["type"] for layer in chart.to_dict()["layer"]]


def test_several_depths_are_lines_with_bands() -> None:
    figure = depth_chart(means([2, 8, 32]), "test accuracy", titles={"x": "X"})
    assert [panel.heading for panel in figure.panels] == ["X", "y"]
    assert list(figure.legend) == ["GCN", "GCNII"]
    assert marks(figure.panels[0].chart) == ["area", "line", "point"]
    assert "Bands: one sample standard deviation" in figure.caption


def test_one_seed_has_no_bands() -> None:
    figure = depth_chart(means([2, 8], float("nan")), "test accuracy", caption="One seed.")
    assert marks(figure.panels[0].chart) == ["line", "point"]
    assert figure.caption == "One seed."


def test_one_depth_is_a_bar_per_network() -> None:
    figure = depth_chart(means([4]), "test accuracy")
    assert marks(figure.panels[0].chart) == ["bar", "rule", "text"]
    assert figure.legend == {}  # the axis names the bars


@pytest.mark.parametrize("depths", [[0, 2], [2, 4], [3]])
def test_files_can_be_made_for_any_depths(depths: list[int]) -> None:
    assert disk_spec(depth_chart(means(depths), "test accuracy"))["params"]


def test_the_zero_of_an_axis_is_a_zero() -> None:
    spread = means([2, 4]).assign(mean=[0.0, 0.3] * 4)
    drawn = vl_convert.vegalite_to_svg(disk_spec(depth_chart(spread, "test accuracy")))
    labels = re.findall(r">([.\d]+)<", drawn)
    assert {"0", ".1", ".3"} <= set(labels)
    assert ".0" not in labels


def test_the_axis_has_whole_tenths_and_ends_at_1() -> None:
    shown = pd.DataFrame({"mean": [0.35, 0.99], "low": [0.31, 0.9], "high": [0.4, 1.0]})
    assert axis_ends(shown) == (0.3, 1.0)
    equal = pd.DataFrame({"mean": [0.5], "low": [float("nan")], "high": [float("nan")]})
    assert axis_ends(equal) == (0.5, 0.6)


@pytest.mark.parametrize("depths", [(2, 4), (2, 2)])
def test_a_value_that_is_not_finite_is_left_out(depths: tuple[int, int]) -> None:
    row = {"data": "d", "runs": 1, "deviation": float("nan")}
    rows = [
        {**row, "name": name, "depth": depth, "mean": mean}
        for name, depth, mean in zip("ab", depths, (0.5, float("nan")), strict=True)
    ]
    assert len(depth_chart(pd.DataFrame(rows), "test").panels) == 1
    assert depth_chart(pd.DataFrame(rows[1:]), "test").panels == ()
