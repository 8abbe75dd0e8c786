"""The progress bar of sweeps and searches, from the epochs in their store."""

import io
import re
from pathlib import Path

import pytest

from eamp.experiments import progress as module
from eamp.experiments.cell import Cell
from eamp.experiments.progress import ALMOST, Lines, Progress, plan, progress, progress_bar, show
from eamp.experiments.search import Search
from eamp.experiments.store import Claim, Store

CELLS = [Cell("gcn", "grid:4x4", 2, seed=seed, changes={"epochs": 200}) for seed in range(4)]
JOBS = [cell.job for cell in CELLS]


def claimed(store: Store) -> Claim:
    claim = store.claim()
    assert claim is not None
    return claim


def test_running_cells_count_by_their_epochs_until_one_has_finished(tmp_path: Path) -> None:
    store = Store(tmp_path, "s")
    store.enqueue(JOBS)
    assert progress(store, JOBS) == Progress(0, 0, [])
    with claimed(store) as first, claimed(store) as second:
        first.report(0.5, 10)
        first.report(0.5, 20)
        running = ["grid:4x4 gcn depth 2 seed 0 (20 epochs)", "grid:4x4 gcn depth 2 seed 1 (0 epo"]
        found = progress(store, JOBS)
        assert [
            name[: len(start)] for name, start in zip(found.running, running, strict=True)
        ] == running
        assert (found.settled, found.done) == (0, pytest.approx(20 / 200))
        first.report(0.5, 40)
        first.finish(0.5, {})
        second.report(0.5, 10)
        # The first stopped early: the second is expected to do the same.
        found = progress(store, JOBS)
        assert (found.settled, found.done) == (1, pytest.approx(1 + 10 / 40))
        second.report(0.5, 100)
        assert progress(store, JOBS).done == 1 + ALMOST
        second.fail("broken")
        assert progress(store, JOBS) == Progress(2, 2, [])


def test_other_jobs_of_the_store_do_not_count(tmp_path: Path) -> None:
    store = Store(tmp_path, "s")
    store.enqueue(JOBS)
    with claimed(store) as claim:
        claim.report(0.5, 10)
        assert progress(store, JOBS[1:]) == Progress(0, 0, [])


def test_a_try_trains_all_of_its_seeds(tmp_path: Path) -> None:
    store = Store(tmp_path, "s")
    Search(CELLS[0], {"dropout": [0.0]}, seeds=3).save_in(store)
    jobs = [{**JOBS[0], "try": number} for number in range(2)]
    store.enqueue(jobs)
    with claimed(store) as claim:
        claim.report(0.5, 300)
        assert progress(store, jobs) == Progress(0, 0.5, ["try 0 (300 epochs)"])


def test_the_bar_is_one_line_with_names_and_an_estimate() -> None:
    out = io.StringIO()
    with progress_bar(4, 1, disable=False, file=out, ncols=60, dynamic_ncols=False) as bar:
        bar.start_t -= 30  # as if half a minute had passed
        show(
            bar,
            Lines(4, 1),
            Progress(1, 1.5, ["cora gcn depth 4 seed 0 (50 epochs)", "a second cell"]),
        )
        line = out.getvalue().split("\r")[-1]
    assert line.startswith("1/4  38%|")
    assert re.search(r"\[00:[3-5]\d<0\d:\d\d, cora gcn depth", line)  # 2:30, on a quick machine
    assert len(line) <= 60


def test_without_a_terminal_finished_jobs_are_told_in_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines(4, 1)
    with progress_bar(4, 1) as bar:
        show(bar, lines, Progress(1, 1.5, ["cora"]))
        assert capsys.readouterr() == ("", "")  # nothing has finished
        show(bar, lines, Progress(2, 2.0, ["cora gcn", "cora gat"]))
        assert capsys.readouterr() == ("", "2/4 finished; training cora gcn, cora gat\n")
        show(bar, lines, Progress(3, 3.0, ["cora gat"]))
        assert capsys.readouterr() == ("", "")  # within the same minute
        monkeypatch.setattr(module, "EVERY", 0.0)
        lines.due = 0.0
        show(bar, lines, Progress(4, 4.0, []))
        assert capsys.readouterr() == ("", "4/4 finished\n")


def test_the_plan_says_what_is_left_and_where_the_logs_are(tmp_path: Path) -> None:
    store = Store(tmp_path, "s")
    said = f"Training 3 of 4 networks with 2 workers; logs in {tmp_path / 'logs'}"
    assert plan(store, JOBS, 3, 2) == said
    assert "1 of 1 trials with 1 worker;" in plan(store, [{**JOBS[0], "try": 0}], 1, 1)
