from __future__ import annotations

import math

import pytest
import torch
from torch_geometric.nn import GCN

import eamp
from diagnostics.faulty_models import features, grid
from eamp.diagnostics.rendering import (
    format_number,
    logarithmic,
    normalized,
    sparkline,
    text_summary,
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (1, "1"),
        (0.4567, "0.457"),
        (0.001, "0.001"),
        (1.23e-7, "1.2e-7"),
        (54321, "54321"),
        (1.2e5, "1.2e5"),
        (-3.0, "-3"),
        (math.nan, "–"),
        (math.inf, "inf"),
    ],
)
def test_numbers_are_short(value: float, words: str) -> None:
    assert format_number(value) == words


def test_scale_is_logarithmic_where_values_span_decades() -> None:
    assert logarithmic([1, 1e-3])
    assert not logarithmic([1, 0.5])
    assert not logarithmic([1e-3, -1.0, 100.0])
    assert not logarithmic([])
    assert normalized([1.0, 1e-2, 1e-4]) == pytest.approx([1, 0.5, 0])
    assert normalized([2.0, 2.0, math.nan]) == [0.5, 0.5, None]


def test_sparkline() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([1.0, math.nan, 0.0]) == "█·▁"
    assert len(sparkline([float(k) for k in range(1000)])) == 32


def test_text_has_a_line_per_measure_and_names_the_extremes() -> None:
    rows = [
        {"layer": k + 1, "name": "conv", "energy": value}
        for k, value in enumerate([1.0, 1e-4, 0.5])
    ]
    lines = text_summary("Probe of M: 3 layers", rows).splitlines()
    assert lines[0] == "Probe of M: 3 layers"
    assert lines[1].split() == ["first", "lowest", "highest", "last", "over", "depth"]
    assert lines[2].split() == ["energy", "1", "1.0e-4", "@2", "1", "@1", "0.5", "█▁█", "log"]
    assert len(lines) == 3


def test_probe_shows_itself() -> None:
    torch.manual_seed(0)
    model = GCN(32, 16, 4)
    with eamp.probe(model, history=True) as p:
        model(features(), grid())
        model(features(), grid())
    text, page = repr(p), p._repr_html_()
    assert text.startswith("Probe of GCN: 4 layers, last of 2 forward passes")
    lines = [
        line for line in text.splitlines() if "relative_energy" in line or "dead_inputs" in line
    ]
    assert len({line.find("@") for line in lines}) == 1  # aligned
    assert page.count("<tr>") == page.count("</tr>") == len(text.splitlines()) - 1
    assert "<svg" in page
