from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from eamp.cli import main
from eamp.data import DataError
from eamp.experiments import sweep
from eamp.experiments.cell import Cell
from eamp.experiments.schema import Job
from eamp.experiments.store import Store
from eamp.experiments.worker import work
from eamp.paper import reproduce as room
from eamp.paper.energy_by_depth import NETWORKS
from eamp.paper.published import table_1
from eamp.paper.reproduce import recipe, reproduce, with_available_data

SMALL = "csbm:nodes=60,features=8"
TINY = [
    Cell(model, SMALL, depth, name, width=8, protocol="paper", changes={"epochs": 4})
    for name, model in (("Basic GCN", "gcn"), ("Entropic GCN", "entropic-gcn"))
    for depth in (4, 8)
]


def test_the_recipe_of_table_1_has_every_cell_once_per_seed() -> None:
    cells = recipe("table_1", seeds=2)
    wanted = table_1()[["data", "name", "depth"]].itertuples(index=False, name=None)
    counted = Counter((cell.data, cell.name, cell.depth, cell.seed) for cell in cells)
    assert counted == Counter((*key, seed) for key in wanted for seed in (0, 1))
    assert {(cell.width, cell.protocol, cell.dropout) for cell in cells} == {(256, "paper", 0.0)}


def test_entropic_networks_are_run_as_their_authors_ran_them() -> None:
    entropic = {
        cell.data: cell.entropy
        for cell in recipe("table_1", seeds=1)
        if cell.name == "Entropic GCN"
    }
    authors = {"variant": "paper", "detach": False}
    assert entropic["cora"] == {"weight": 1, "temperature": 10, **authors}
    assert entropic["citeseer"] == {"weight": 10, "temperature": 1, **authors}


def test_pairnorm_counts_its_output_convolution_as_its_depth_in_the_paper_does() -> None:
    cells = [*recipe("table_1", seeds=1), *recipe("quick", seeds=1)]
    options = [cell.options for cell in cells if cell.model == "pairnorm"]
    options += [network.options for network in NETWORKS if network.model == "pairnorm"]
    assert len(options) == 2 * 5 + 1 + 1
    assert all(given is not None and given["count_output"] is True for given in options)


def test_the_quick_recipe_is_a_part_of_the_table() -> None:
    assert {cell.key for cell in recipe("quick", seeds=1)} < {
        cell.key for cell in recipe("table_1", seeds=1)
    }


def test_every_shipped_recipe_builds_its_networks() -> None:
    for name in ("quick", "table_1", "variants", "depth"):
        for cell in recipe(name, seeds=1):
            if cell.depth == 4:
                small = replace(cell, data=SMALL, width=8)
                assert sum(parameter.numel() for parameter in small.build().parameters()) > 0


def test_a_dataset_that_cannot_be_loaded_is_replaced_with_a_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreachable(name: str) -> None:
        raise DataError("no folder, no network")

    monkeypatch.setattr(room, "load", unreachable)
    notices: list[str] = []
    cells = with_available_data(recipe("quick", seeds=1), notices, lambda line: None)
    assert {cell.data for cell in cells} == {"csbm"}
    assert len(notices) == 1
    assert "cora could not be loaded" in notices[0]
    assert "no folder, no network" in notices[0]


def in_this_process(store: Store, jobs: Collection[Job], *_: object) -> None:
    store.enqueue(jobs)
    work(store, sweep.run_cell)


@pytest.mark.slow
def test_the_command_ends_with_a_page_and_goes_on_with_more_seeds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        room,
        "recipe",
        lambda name, seeds: [replace(cell, seed=seed) for seed in range(seeds) for cell in TINY],
    )
    monkeypatch.setattr(room, "NETWORKS", NETWORKS[:3])
    monkeypatch.setattr(room, "DEPTHS", (1, 10))
    found = {"graph": ["g"], "degree": [4.0], "width": [64], "predicted": [2.5], "measured": [2.4]}
    monkeypatch.setattr(room, "measure_thresholds", lambda *given: pd.DataFrame(found))
    command = ["reproduce", "--output", str(tmp_path / "out"), "--workers", "1"]
    assert main([*command, "--only", "figures", "table", "depth"]) == 0
    page = tmp_path / "out" / "report.html"
    assert str(page) in capsys.readouterr().out
    assert "Entropic GCN" in page.read_text(encoding="utf-8")
    assert "With 8 layers, " in page.read_text(encoding="utf-8")
    assert len(pd.read_csv(tmp_path / "out" / "deep_cells.csv")) == 3 * 4
    assert len(pd.read_csv(tmp_path / "out" / "cells.csv")) == 4
    monkeypatch.setattr(sweep, "run_jobs", in_this_process)
    again = reproduce(tmp_path / "out", seeds=2, only=["table"], say=lambda line: None)
    assert Counter(again.cells["seed"]) == {0: 4, 1: 4}
    first = pd.read_csv(tmp_path / "out" / "cells.csv")
    kept = again.cells.query("seed == 0")["seconds"].tolist()
    assert kept == pytest.approx(first["seconds"].tolist())  # the first seed was not run again
