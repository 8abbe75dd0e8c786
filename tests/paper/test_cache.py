from pathlib import Path

import pandas as pd
import pytest

from eamp.paper import reproduce as room
from eamp.paper.cache import cached
from eamp.paper.energy_by_depth import Network
from eamp.paper.reproduce import measure_energies, measure_thresholds


class Counted:
    """A measurement that counts its calls; each call has a result of its own."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns
        self.calls: list[tuple[object, ...]] = []

    def __call__(self, *arguments: object) -> pd.DataFrame:
        self.calls.append(arguments)
        row = {column: 0.1 * len(self.calls) + 1e-17 for column in self.columns}
        return pd.DataFrame([row])


def test_a_frame_is_computed_once_for_its_settings(tmp_path: Path) -> None:
    compute = Counted("energy")
    first = cached(tmp_path, "gcn, λ = 1", {"a": 1, "b": [2]}, compute)
    assert cached(tmp_path, "gcn, λ = 1", {"b": [2], "a": 1}, compute).equals(first)
    assert len(compute.calls) == 1
    assert not cached(tmp_path, "gcn, λ = 1", {"a": 1, "b": [3]}, compute).equals(first)
    assert len(compute.calls) == 2
    assert all(file.name.startswith("gcn-1-") for file in tmp_path.iterdir())


def test_an_interrupted_computation_leaves_no_file(tmp_path: Path) -> None:
    def interrupted() -> pd.DataFrame:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(tmp_path, "gcn", {}, interrupted)
    assert list(tmp_path.iterdir()) == []


NETWORKS = tuple(
    Network(f"λ = {weight}", "gcn", {"entropy": {"weight": weight}}) for weight in (1.0, 2.0)
)


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Replaces the measurement of a network by one that is told by its weight and seed."""
    calls: list[tuple[str, int]] = []

    def energy_by_depth(
        network: Network, seed: int, depths: list[int], width: int, grid: str
    ) -> pd.DataFrame:
        calls.append((network.label, seed))
        energy = 100 * network.options["entropy"]["weight"] + seed
        rows = [(network.label, depth, seed, energy + depth / 1000) for depth in depths]
        return pd.DataFrame(rows, columns=["network", "depth", "seed", "energy"])

    monkeypatch.setattr(room, "energy_by_depth", energy_by_depth)
    return calls


def test_more_seeds_cost_only_the_new_ones(measure: list[tuple[str, int]], tmp_path: Path) -> None:
    first = measure_energies(tmp_path, NETWORKS, (1, 10), seeds=1)
    measure.clear()
    second = measure_energies(tmp_path, NETWORKS, (1, 10), seeds=2)
    assert measure == [("λ = 1.0", 1), ("λ = 2.0", 1)]
    assert second.query("seed == 0").reset_index(drop=True).equals(first)
    assert second[["depth", "seed"]].head(4).to_numpy().tolist() == [
        [1, 0],
        [1, 1],
        [10, 0],
        [10, 1],
    ]


def test_the_order_and_the_labels_of_the_networks_do_not_matter(
    measure: list[tuple[str, int]], tmp_path: Path
) -> None:
    first = measure_energies(tmp_path, NETWORKS, (1, 10), seeds=1)
    measure.clear()
    renamed = tuple(Network(n.label + "!", n.model, n.options) for n in reversed(NETWORKS))
    second = measure_energies(tmp_path, renamed, (1, 10), seeds=1)
    assert measure == []
    for network in NETWORKS:
        before = first[first["network"] == network.label]["energy"]
        after = second[second["network"] == network.label + "!"]["energy"]
        assert before.tolist() == after.tolist()


def test_other_depths_and_options_are_measured_anew(
    measure: list[tuple[str, int]], tmp_path: Path
) -> None:
    measure_energies(tmp_path, NETWORKS, (1, 10), seeds=1)
    measure.clear()
    measure_energies(tmp_path, NETWORKS, (1, 10, 100), seeds=1)
    assert len(measure) == 2
    measure.clear()
    changed = Network("λ = 1.0", "gcn", {"entropy": {"weight": 3.0}})
    found = measure_energies(tmp_path, (changed, NETWORKS[1]), (1, 10), seeds=1)
    assert measure == [("λ = 1.0", 0)]
    assert found["energy"].iloc[0] == 300.001


def test_more_widths_cost_only_the_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threshold = Counted("width", "measured")
    monkeypatch.setattr(room, "threshold", threshold)
    first = measure_thresholds(tmp_path, [256])
    assert len(threshold.calls) == len(first) == 4
    measure_thresholds(tmp_path, [64, 256])
    assert {arguments[2] for arguments in threshold.calls[4:]} == {64}
