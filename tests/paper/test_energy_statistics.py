import pandas as pd

from eamp.paper.energy_statistics import energy_kept, figure_2_threshold, u_curves


def test_u_curves_in_numbers(frames: dict[str, pd.DataFrame]) -> None:
    curve = u_curves(frames["layer_energies"]).set_index("name").loc["Entropic GCN"]
    assert 0.12 < curve["lowest"] < 0.121
    assert curve["lowest_layer"] == 32
    assert curve["lowest"] < curve["middle"] < curve["first"] < curve["last"] * 1.001


def test_networks_that_keep_a_tenth_of_their_energy(frames: dict[str, pd.DataFrame]) -> None:
    table = energy_kept(frames["depth_energies"].iloc[::-1]).set_index("network")
    assert table["kept"].to_dict() == {
        "PairNorm": True,
        "Entropic GCN, λ = 10, T = 1": True,
        "Basic GCN": False,
    }
    assert table.loc["PairNorm", ["depth", "first", "last"]].tolist() == [1000, 0.1, 0.05]


def test_the_threshold_at_the_papers_width_or_else_the_greatest(
    frames: dict[str, pd.DataFrame],
) -> None:
    found = frames["thresholds"]
    row = figure_2_threshold(pd.concat([found, found.assign(width=1024)]))
    assert row is not None
    assert row["width"] == 256
    narrow = figure_2_threshold(found.query("width == 64"))
    assert narrow is not None
    assert narrow["width"] == 64
    assert figure_2_threshold(found.assign(graph="torus")) is None
