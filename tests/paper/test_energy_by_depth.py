"""The claim of Figure 2: energy vanishes with depth, unless the entropy step is strong enough."""

import networkx as nx
import pytest

import eamp
from eamp.paper.energy_by_depth import NETWORKS, Network, energy_by_depth
from eamp.paper.threshold import measured_threshold

DEPTHS = (1, 10, 50, 200, 1000)


def energies(label: str) -> dict[int, float]:
    network = next(network for network in NETWORKS if network.label == label)
    table = energy_by_depth(network, depths=DEPTHS)
    return dict(zip(table["depth"], table["energy"], strict=True))


@pytest.mark.parametrize("label", ["Basic GCN", "Entropic GCN, λ = 1, T = 10"])
def test_below_the_threshold_the_energy_falls_to_exactly_zero(label: str) -> None:
    energy = energies(label)
    assert energy[50] < 1e-6 * energy[1]
    assert energy[200] == energy[1000] == 0.0


def test_above_the_threshold_it_stays_near_the_temperature_to_a_thousand_layers() -> None:
    energy = energies("Entropic GCN, λ = 10, T = 1")
    assert all(1 / 3 < energy[depth] < 3 for depth in DEPTHS[1:])


@pytest.mark.parametrize("label", ["PairNorm", "G2"])
def test_rival_methods_keep_it_too(label: str) -> None:
    energy = energies(label)
    assert all(energy[depth] > 0.1 * energy[1] for depth in DEPTHS)


def test_a_regular_bipartite_graph_has_the_threshold_of_the_formula() -> None:
    k, width = 4, 64
    torus = eamp.Graph(nx.grid_2d_graph(10, 10, periodic=True))
    predicted = eamp.nn.collapse_threshold(torus, width).item()
    assert predicted == pytest.approx((k + 3) / (k - 1) * (width / k) ** 0.5 / 4, rel=0.01)
    assert measured_threshold(torus, width, 60, 1.0, 0) == pytest.approx(predicted, rel=0.1)


@pytest.mark.parametrize("model", ["graphsage", "linear"])
def test_models_are_measured_before_their_last_layer(model: str) -> None:
    table = energy_by_depth(Network(model, model, {}), depths=[2], width=8)
    assert (table["energy"] > 0).all()
