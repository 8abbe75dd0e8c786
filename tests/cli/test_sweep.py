"""``eamp sweep``: where it leaves its files, and what it says."""

from pathlib import Path

import pandas as pd
import pytest

from eamp.cli import main
from eamp.experiments import sweep
from eamp.experiments.store import Store
from eamp.experiments.worker import work
from eamp.experiments.worker_pool import count_settled

TINY = "data: 'csbm:nodes=60,features=8'\nwidth: 4\nseeds: 2\nchanges: {epochs: 2}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, in which the jobs of sweeps run in this process."""

    def run_jobs(store: Store, jobs: list[dict[str, object]], *_: object) -> None:
        store.enqueue(jobs)
        work(store, sweep.run_cell)
        assert count_settled(store, jobs) == len(jobs)

    monkeypatch.setattr(sweep, "run_jobs", run_jobs)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recipe(name: str, runs: str) -> str:
    path = Path(f"{name.replace(' ', '_')}.yaml")
    path.write_text(f"name: {name}\n{TINY}runs: {runs}\n", encoding="utf-8")
    return str(path)


def test_recipes_have_folders_of_their_own(here: Path) -> None:
    first = recipe("quick look", "[{model: gcn, depth: 1}, {model: gcnii, depth: 1}]")
    second = recipe("another", "[{model: gcn, depth: 2}]")
    assert main(["sweep", first]) == 0
    assert main(["sweep", second]) == 0
    for folder, rows in (("quick_look", 4), ("another", 2)):
        assert len(pd.read_csv(here / "out" / folder / "cells.csv")) == rows
        assert (here / "out" / folder / "report.html").exists()


@pytest.mark.filterwarnings("ignore:training diverged")
def test_notices_on_the_page_have_one_prefix(here: Path) -> None:
    wild = "{model: gcn, depth: 1, name: wild, changes: {epochs: 2, learning_rate: 1e30}}"
    bad = "{model: pairnorm, depth: 1, name: bad, options: {scale: wide}}"
    assert main(["sweep", recipe("mine", f"[{wild}, {bad}]")]) == 1
    page = (here / "out" / "mine" / "report.html").read_text(encoding="utf-8")
    data = "csbm:nodes=60,features=8"
    assert f"<strong>Please note.</strong> {data} bad depth 1 seed 0 failed: TypeError" in page
    assert f"<strong>Please note.</strong> {data} wild depth 1 seed 0: training diverged" in page
    assert "2 of 4; width 4; 2 epochs" in page


def test_no_comparison_of_an_earlier_run_stays(here: Path) -> None:
    command = ["sweep", recipe("mine", "[{model: gcn, depth: 1}, {model: gcnii, depth: 1}]")]
    assert main([*command, "--against", "gcn"]) == 0
    found = list(here.rglob("comparison*"))
    assert {path.suffix for path in found} == {".csv", ".md", ".tex"}
    assert main(command) == 0
    assert not list(here.rglob("comparison*"))
