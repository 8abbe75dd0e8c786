import json
import math
from typing import Any

import pandas as pd
import pytest
import torch

import eamp
from eamp.paper import accuracy_charts, energy_charts, entropy_charts
from eamp.report.colours import FAMILIES
from eamp.report.figure import page_spec


def texts(spec: dict[str, Any]) -> str:
    return json.dumps(spec, ensure_ascii=False)


def test_a_model_has_one_colour_in_every_figure(frames: dict[str, pd.DataFrame]) -> None:
    figures = [
        accuracy_charts.table_1(frames["cells"]),
        accuracy_charts.variants(frames["cells"]),
        energy_charts.figure_2(frames["depth_energies"]),
        energy_charts.figure_3(frames["layer_energies"]),
    ]
    for figure in figures:
        assert figure is not None
        for name, look in figure.legend.items():
            assert look.colour == FAMILIES[name.split(",")[0]][0]


def test_a_chart_with_zeros_says_so(frames: dict[str, pd.DataFrame]) -> None:
    figure = energy_charts.figure_2(frames["depth_energies"])
    assert figure is not None
    assert "exactly 0" in figure.caption
    assert "exactly 0" in texts(page_spec(figure.panels[0]))
    rest = energy_charts.figure_2(frames["depth_energies"].query("energy > 0"))
    assert rest is not None
    assert "exactly 0" not in rest.caption


def test_figure_3_shows_the_papers_energies_only_for_its_own_setting(
    frames: dict[str, pd.DataFrame],
) -> None:
    layers = frames["layer_energies"]
    here = energy_charts.figure_3(layers)
    elsewhere = energy_charts.figure_3(layers.assign(data="citeseer"))
    assert here is not None
    assert elsewhere is not None
    assert "paper's lowest" in texts(page_spec(here.panels[0]))
    assert "that the paper gives" in here.caption
    assert "paper's lowest" not in texts(page_spec(elsewhere.panels[0]))
    assert "that the paper gives" not in elsewhere.caption
    assert "Entropic GCN, detached" not in here.legend


def test_published_points_only_where_there_are_some(frames: dict[str, pd.DataFrame]) -> None:
    figure = accuracy_charts.table_1(frames["cells"].query("data == 'cora'").assign(data="csbm"))
    assert figure is not None
    assert "Hollow" not in figure.caption
    assert "the paper's Table 1" not in texts(page_spec(figure.panels[0]))


def test_the_vectors_of_the_neighbours_add_up_to_the_gradient() -> None:
    vectors = entropy_charts.neighbour_vectors()
    total = (vectors["dx"].sum(), vectors["dy"].sum())
    assert total == pytest.approx(entropy_charts.total_vector())


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
