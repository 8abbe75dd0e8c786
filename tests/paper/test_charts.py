import json
import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import torch

import eamp
from eamp.paper import accuracy_charts, energy_charts, entropy_charts
from eamp.report.colours import FAMILIES, looks
from eamp.report.figure import disk_spec, page_spec
from eamp.report.log_axis import Decades


def texts(spec: dict[str, Any]) -> str:
    return json.dumps(spec, ensure_ascii=False)


def test_a_model_has_one_colour_in_every_figure(frames: dict[str, pd.DataFrame]) -> None:
    figures = [
        accuracy_charts.table_1(frames["cells"]),
        accuracy_charts.variants(frames["cells"]),
        energy_charts.figure_2(frames["depth_energies"]),
        energy_charts.figure_3(frames["layer_energies"]),
    ]
    assert all(figures)
    for figure in figures:
        assert figure is not None
        for name, look in figure.legend.items():
            assert look.colour == FAMILIES[{"GCN": "Basic GCN"}.get(name, name.split(",")[0])][0]


def test_variants_are_told_apart_by_dashes_and_their_parent_is_solid() -> None:
    found = looks(["Entropic GCN, detached", "Entropic GCN, exact gradient", "Entropic GCN"])
    assert list(found) == ["Entropic GCN, detached", "Entropic GCN, exact gradient", "Entropic GCN"]
    assert len({look.dash for look in found.values()}) == 3
    assert found["Entropic GCN"].dash == (1, 0)


def test_a_model_nobody_knows_looks_the_same_in_every_figure() -> None:
    assert looks(["Mine", "Other"])["Mine"] == looks(["Third", "Mine"])["Mine"]


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", FAMILIES)
def test_colours_stand_out_on_light_and_on_dark(name: str) -> None:
    value = luminance(FAMILIES[name][0])
    assert 1.05 / (value + 0.05) >= 2.7
    assert (value + 0.05) / (luminance("#151a21") + 0.05) >= 3


def test_zeros_have_a_lane_of_their_own() -> None:
    decades = Decades([1.0, 1e-30, 0.0])
    assert decades.place(1e-30) == 1e-30
    assert decades.bottom < decades.place(0.0) < decades.border < 1e-30
    assert len(decades.lane("energy")) == 2
    assert Decades([1.0, 0.5]).lane("energy") == []


def test_a_chart_with_zeros_says_so(frames: dict[str, pd.DataFrame]) -> None:
    figure = energy_charts.figure_2(frames["depth_energies"])
    assert figure is not None
    assert "exactly 0" in figure.caption
    assert "exactly 0" in texts(page_spec(figure.panels[0]))
    rest = energy_charts.figure_2(frames["depth_energies"].query("energy > 0"))
    assert rest is not None
    assert "exactly 0" not in rest.caption


def test_figure_3_shows_the_papers_landmarks_only_where_they_belong(
    frames: dict[str, pd.DataFrame],
) -> None:
    layers = frames["layer_energies"]
    here, elsewhere = (
        energy_charts.figure_3(layers),
        energy_charts.figure_3(layers.assign(data="citeseer")),
    )
    assert here is not None
    assert elsewhere is not None
    assert "paper's lowest" in texts(page_spec(here.panels[0]))
    assert "paper's lowest" not in texts(page_spec(elsewhere.panels[0]))
    assert "Entropic GCN, detached" not in here.legend


def test_published_points_only_where_there_are_some(frames: dict[str, pd.DataFrame]) -> None:
    figure = accuracy_charts.table_1(frames["cells"].query("data == 'cora'").assign(data="csbm"))
    assert figure is not None
    assert "Hollow" not in figure.caption
    assert "the paper's Table 1" not in texts(page_spec(figure.panels[0]))


def test_keys_name_every_line_in_full(frames: dict[str, pd.DataFrame]) -> None:
    figure = energy_charts.figure_2(frames["depth_energies"])
    assert figure is not None
    name = "A network of one's own, with a name that is longer than any legend would like it to be"
    look = next(iter(figure.legend.values()))
    assert name in texts(disk_spec(replace(figure, legend={name: look})))


def test_neighbours_vectors_add_up_to_the_gradient() -> None:
    vectors = entropy_charts.neighbour_vectors()
    assert (vectors["dx"].sum(), vectors["dy"].sum()) == pytest.approx(
        entropy_charts.total_vector()
    )


def test_the_example_shows_a_push_and_a_pull() -> None:
    vectors = entropy_charts.neighbour_vectors()
    x, graph = entropy_charts.example()
    assert (vectors["weight"] > 0).any()
    pulling = vectors[vectors["weight"] < 0]
    assert not pulling.empty
    assert (pulling["energy"] > entropy_charts.TEMPERATURE).all()
    for row in vectors.to_dict("records"):
        towards = x[int(row["node"])] - x[0]
        along = float(torch.tensor([row["dx"], row["dy"]], dtype=torch.float64) @ towards)
        assert (along < 0) == (row["weight"] > 0)
    assert eamp.dirichlet_energy(x, graph)[1:4].max() < entropy_charts.TEMPERATURE


@pytest.mark.parametrize("temperature", entropy_charts.TEMPERATURES)
def test_the_entropy_peaks_where_energy_is_temperature(temperature: float) -> None:
    curve = entropy_charts.entropy_curves().query("temperature == @temperature")
    top = curve.loc[curve["entropy"].idxmax()]
    assert top["energy"] == pytest.approx(temperature)
    assert top["entropy"] == pytest.approx(math.exp(-1))
