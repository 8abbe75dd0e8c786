from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from eamp.cli import main
from eamp.data import DataError
from eamp.experiments.cell import Cell
from eamp.paper import reproduce as room
from eamp.paper.energy_by_depth import NETWORKS
from eamp.paper.published import DEPTHS, TABLE_1
from eamp.paper.reproduce import kept, recipe, reproduce, with_data_in_reach

TINY = [
    Cell(
        name=name,
        model=model,
        data="csbm:nodes=60,features=8",
        depth=depth,
        width=8,
        protocol="paper",
        changes={"epochs": 4},
    )
    for name, model in (("Basic GCN", "gcn"), ("Entropic GCN", "entropic-gcn"))
    for depth in (4, 8)
]


def test_the_tables_recipe_has_every_cell_of_the_paper_once_a_seed() -> None:
    cells = recipe("table_1", seeds=2)
    wanted = {
        (data, name, depth)
        for data, models in TABLE_1.items()
        for name in models
        for depth in DEPTHS
    }
    for seed in (0, 1):
        assert Counter(
            (cell.data, cell.name, cell.depth) for cell in cells if cell.seed == seed
        ) == Counter(wanted)
    assert {(cell.width, cell.protocol, cell.dropout) for cell in cells} == {(256, "paper", 0.0)}


def test_entropic_networks_are_run_as_their_authors_ran_them() -> None:
    entropic = {
        cell.data: cell.entropy
        for cell in recipe("table_1", seeds=1)
        if cell.name == "Entropic GCN"
    }
    assert entropic["cora"] == {"weight": 1, "temperature": 10, "variant": "paper", "detach": False}
    assert entropic["citeseer"] == {
        "weight": 10,
        "temperature": 1,
        "variant": "paper",
        "detach": False,
    }


def test_the_quick_recipe_is_a_part_of_the_table() -> None:
    assert {cell.key for cell in recipe("quick", seeds=1)} < {
        cell.key for cell in recipe("table_1", seeds=1)
    }


def test_every_shipped_recipe_builds_its_networks() -> None:
    for name in ("quick", "table_1", "variants"):
        for cell in recipe(name, seeds=1):
            if cell.depth == 4:
                small = Cell(**{**cell.__dict__, "data": "csbm:nodes=60,features=8", "width": 8})
                assert sum(parameter.numel() for parameter in small.build().parameters()) > 0


def test_a_dataset_out_of_reach_is_replaced_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(name: str) -> None:
        raise DataError("no folder, no network")

    monkeypatch.setattr(room, "load", unreachable)
    notices: list[str] = []
    cells = with_data_in_reach(recipe("quick", seeds=1), notices, lambda line: None)
    assert {cell.data for cell in cells} == {"csbm"}
    assert len(notices) == 1
    assert "cora could not be had" in notices[0]
    assert "no folder, no network" in notices[0]


def test_a_table_is_made_once(tmp_path: Path) -> None:
    calls = []

    def make() -> pd.DataFrame:
        calls.append(1)
        return pd.DataFrame({"energy": [0.1, 1e-40]})

    first = kept(tmp_path / "a.csv", make)
    assert kept(tmp_path / "a.csv", make).equals(first)
    assert len(calls) == 1


def test_the_command_ends_with_a_page_and_goes_on_with_more_seeds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        room,
        "recipe",
        lambda name, seeds: [
            Cell(**{**cell.__dict__, "seed": seed}) for seed in range(seeds) for cell in TINY
        ],
    )
    monkeypatch.setattr(room, "NETWORKS", NETWORKS[:3])
    monkeypatch.setattr(room, "DEPTHS", (1, 10))
    monkeypatch.setattr(
        room,
        "thresholds",
        lambda widths: pd.DataFrame(
            {"graph": ["g"], "degree": [4.0], "width": [64], "predicted": [2.5], "measured": [2.4]}
        ),
    )
    command = ["reproduce", "--output", str(tmp_path / "out"), "--only", "figures", "table"]
    assert main(command) == 0
    page = tmp_path / "out" / "report.html"
    assert str(page) in capsys.readouterr().out
    assert "Entropic GCN" in page.read_text(encoding="utf-8")
    assert len(pd.read_csv(tmp_path / "out" / "cells.csv")) == 4
    again = reproduce(tmp_path / "out", seeds=2, only=["table"], say=lambda line: None)
    assert Counter(again.cells["seed"]) == {0: 4, 1: 4}
    first = pd.read_csv(tmp_path / "out" / "cells.csv")
    assert again.cells.query("seed == 0")["seconds"].tolist() == pytest.approx(
        first["seconds"].tolist()
    )  # not run again
