import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from optuna.artifacts import download_artifact, get_all_artifact_meta
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console

from eamp import cli
from eamp.experiments import sweep as module
from eamp.experiments import worker_pool as crew
from eamp.experiments.cell import Cell
from eamp.experiments.recipe import load_recipe
from eamp.experiments.store import Store
from eamp.experiments.sweep import finished, run_cell, save, summary, sweep
from eamp.experiments.worker import work

# Each is a worker killed (W), the sweep itself killed (S), or interrupted (I). EAMP_STOPS=WSIWSW is the long proof, some minutes.
STOPS = os.environ.get("EAMP_STOPS", "WS")
CELLS = [
    Cell(
        "gcn",
        "csbm:nodes=60,features=8",
        depth,
        width=8,
        protocol="paper",
        changes={"epochs": 40},
        entropy=entropy,
        seed=seed,
    )
    for seed in (0, 1, 2)
    for depth in (2, 4)
    for entropy in (None, {"weight": 1.0, "temperature": 1.0})
]
RECIPE = """
name: "short / one"
protocol: paper
width: 8
data: "csbm:nodes=60,features=8"
depth: [2, 4]
changes: {epochs: 40}
seeds: 3
runs:
  - {model: gcn}
  - {model: gcn, entropy: {weight: 1.0, temperature: 1.0}}
"""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine make tiny networks many times slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sweeps do their jobs here instead of in processes of their own; the value lists how many each had to do."""
    done: list[int] = []

    def settle(
        store: Store,
        jobs: list[Any],
        workers: int,
        threads: int | None,
        retry_failed: bool,
        progress: bool,
    ) -> None:
        store.enqueue(jobs, retry_failed)
        done.append(work(store, run_cell))

    monkeypatch.setattr(module, "settle", settle)
    return done


def written(folder: Path, text: str = RECIPE) -> str:
    file = folder / "recipe.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def running(store: Store) -> list[FrozenTrial]:
    return store.trials(TrialState.RUNNING)


def without_times(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=["seconds", "threads"])


# --- Interrupted and killed -------------------------------------------------------------------------------------------


class Running:
    """``eamp sweep`` in a process of its own, with two workers."""

    def __init__(self, recipe: str, folder: Path) -> None:
        command = [sys.executable, "-m", "eamp", "sweep", recipe, "--output", str(folder)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def workers(self) -> list[int]:
        number = self.process.pid
        return list(map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split()))

    def wait_until(self, condition: Callable[[], Any]) -> bool:
        """Whether it came true before the process ended."""
        while not condition():
            if self.ended_within(0.05):
                return False
        return True

    def is_training(self, store: Store) -> bool:
        """Whether a worker gets to train."""
        return self.wait_until(
            lambda: any(
                int(trial.user_attrs.get("worker", ":0").split(":")[1]) in self.workers()
                for trial in running(store)
            )
        )

    def replaced_one_of(self, workers: list[int]) -> bool:
        """Whether another worker takes the place of one that died."""
        return self.wait_until(lambda: set(self.workers()) - set(workers))

    def ended_within(self, seconds: float) -> bool:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def output(self) -> tuple[int, str]:
        _, errors = self.process.communicate()
        return self.process.returncode, errors


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds workers in /proc")
def test_stopped_and_killed_it_ends_up_the_same(tmp_path: Path, in_this_process: list[int]) -> None:
    folder, chance, stops = tmp_path / "a folder", random.Random(3), list(STOPS)
    recipe = written(tmp_path)
    name, cells = load_recipe(Path(recipe))
    store = Store(folder, name)
    while stops:
        sweeping = Running(recipe, folder)
        while (
            stops
            and sweeping.is_training(store)
            and not sweeping.ended_within(chance.uniform(0, 3 / len(STOPS)))
        ):
            workers, stop = sweeping.workers(), stops.pop(0)
            if stop == "W":
                os.kill(chance.choice(workers), signal.SIGKILL)
                assert sweeping.replaced_one_of(workers)
                continue
            handles = [os.pidfd_open(worker) for worker in workers]
            os.kill(sweeping.process.pid, signal.SIGINT if stop == "I" else signal.SIGKILL)
            for handle in handles:
                assert_ends(handle)  # workers do not outlive the sweep
            break
        code, said = sweeping.output()
        assert code in (0, 130, -signal.SIGKILL), said
        assert code or not stops, "it was finished before it could be stopped"
        if code == 130:
            assert "the same command goes on from here" in said
            assert "Traceback" not in said
            assert not running(store)
    assert cli.main(["sweep", recipe, "--output", str(folder)]) == 0

    assert Counter(
        trial.state.name for trial in store.trials() if trial.state != TrialState.FAIL
    ) == {"COMPLETE": len(cells)}
    assert sorted(finished(store)) == sorted(cell.key for cell in cells)
    assert not list((folder / "checkpoints").iterdir())
    tables = [sweep(cells, each) for each in (store, Store(tmp_path / "undisturbed", name))]
    assert in_this_process[-2:] == [0, len(cells)]
    pd.testing.assert_frame_equal(*map(without_times, tables), check_exact=True)


def assert_ends(handle: int) -> None:
    """Wait for a process that is no child of ours."""
    import select

    poll = select.poll()
    poll.register(handle, select.POLLIN)
    assert poll.poll(60_000)
    os.close(handle)


def test_a_sweep_that_is_finished_starts_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = written(tmp_path)
    name, cells = load_recipe(Path(recipe))
    store = Store(tmp_path, name)
    store.enqueue(map(asdict, cells))
    found = dict.fromkeys(("best_val_accuracy", "test_accuracy"), 0.5) | {
        name: [1.0, 2.0] for name in ("energy", "final_energy")
    }

    def run(claim: Any) -> str:
        claim.finish(0.5, found)
        return ""

    work(store, run)
    monkeypatch.setattr(crew, "Member", None)
    monkeypatch.setattr(module, "load_graph", None)
    assert cli.main(["sweep", recipe, "--output", str(tmp_path)]) == 0
    assert "12 of 12 cells" in capsys.readouterr().out
    assert len(store.trials()) == len(cells)


def workers_are(code: str, monkeypatch: pytest.MonkeyPatch) -> list[crew.Member]:
    """Workers run some Python code instead; the value is filled with them as they start."""
    started: list[crew.Member] = []

    def start(self: crew.Member) -> None:
        self.command = [sys.executable, "-c", code]
        really(self)
        started.append(self)

    really = crew.Member.start
    monkeypatch.setattr(crew.Member, "start", start)
    return started


def test_ctrl_c_stops_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = written(tmp_path)
    store = Store(tmp_path, load_recipe(Path(recipe))[0])
    started = workers_are("import threading; threading.Event().wait()", monkeypatch)

    class Clock:
        perf_counter = staticmethod(time.perf_counter)

        def sleep(self, seconds: float) -> None:
            claim = store.claim()
            assert claim is not None
            assert claim.lock is not None
            claim.lock.release()  # as the worker's would be, once it is stopped
            raise KeyboardInterrupt

    monkeypatch.setattr(crew, "time", Clock())
    assert cli.main(["sweep", recipe, "--output", str(tmp_path)]) == 130
    assert "interrupted; the same command goes on from here" in capsys.readouterr().err
    assert [member.process.returncode for member in started] == [-signal.SIGTERM] * 2
    assert not running(store)


def test_workers_that_die_at_once_end_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers_are("import sys; sys.exit('no luck today')", monkeypatch)
    with pytest.raises(
        crew.SweepError, match=r"5 workers died one after the other(?s:.*)no luck today"
    ):
        sweep(CELLS[:1], Store(tmp_path, "study"), progress=False)


# --- In one process ---------------------------------------------------------------------------------------------------


def test_a_cell_that_fails(
    tmp_path: Path, in_this_process: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        RECIPE.replace("seeds: 3", "seeds: 1").replace("[2, 4]", "2")
        + "  - {model: gcn, name: bad, options: {nonsense: 1}}\n"
    )
    command = ["sweep", written(tmp_path, text), "--output", str(tmp_path / "a folder")]
    reason = "failed: csbm:nodes=60,features=8 bad depth 2 seed 0: ValueError: gcn cannot be made with {'nonsense': 1}: "
    reason += "GCN.__init__() got an unexpected keyword argument 'nonsense'."
    for options, done in (([], 3), ([], 0), (["--retry_failed"], 1)):
        assert cli.main([*command, *options]) == 1
        said = capsys.readouterr()
        assert said.err.strip() == reason
        assert "2 of 3 cells" in said.out
        assert in_this_process.pop() == done


def test_a_recipe_that_grows_runs_what_is_new(tmp_path: Path, in_this_process: list[int]) -> None:
    store = Store(tmp_path, "study")
    few = sweep(CELLS[:2], store)
    more = sweep(CELLS[:3], store)
    assert in_this_process == [2, 1]
    pd.testing.assert_frame_equal(few, more[:2])


def test_two_recipes_in_one_folder(tmp_path: Path, in_this_process: list[int]) -> None:
    first, second = Store(tmp_path, "first"), Store(tmp_path, "second")
    tables = [sweep(CELLS[:1], first), sweep(CELLS[:2], second)]
    assert in_this_process == [1, 2]
    assert list(map(len, tables)) == [1, 2]
    assert len(first.trials()) == 1


def test_data_that_cannot_be_had_are_found_out_first(
    tmp_path: Path, in_this_process: list[int]
) -> None:
    store = Store(tmp_path, "study")
    with pytest.raises(ValueError, match="nowhere"):
        sweep([CELLS[0], replace(CELLS[0], data="nowhere")], store)
    assert not store.trials()


def test_every_epoch_and_layer_is_kept_with_the_trial(
    tmp_path: Path, in_this_process: list[int]
) -> None:
    store = Store(tmp_path, "study")
    table = sweep(CELLS[:1], store)
    (trial,) = store.trials()
    (kept,) = get_all_artifact_meta(trial, storage=store.storage)
    assert kept.filename == "curves.json"
    download_artifact(
        artifact_store=store.artifacts,
        artifact_id=kept.artifact_id,
        file_path=str(tmp_path / "again.json"),
    )
    curves = json.loads((tmp_path / "again.json").read_text())
    result = CELLS[0].train()
    assert curves["epochs"] == [row._asdict() for row in result.history]
    assert len(curves["epochs"]) == 40
    assert curves["energy"] == result.energy == table["energy"][0]
    assert curves["final_energy"] == result.final_energy
    assert trial.intermediate_values == {
        epoch: result.history[epoch - 1].val_accuracy for epoch in (10, 20, 30, 40)
    }
    assert table["best_val_accuracy"][0] == max(row.val_accuracy for row in result.history)
    assert (
        table["test_accuracy"][0] == min(result.history, key=lambda row: row.val_loss).test_accuracy
    )


def test_tables_can_be_read_back(tmp_path: Path, in_this_process: list[int]) -> None:
    cells = [CELLS[0], CELLS[1]]
    table = sweep(cells, Store(tmp_path, "study"))
    save(table, tmp_path)
    again = pd.read_csv(
        tmp_path / "cells.csv",
        converters=dict.fromkeys(("entropy", "options", "changes"), json.loads),
    )
    pd.testing.assert_frame_equal(
        again, table.drop(columns=["energy", "final_energy"]), check_exact=True
    )
    energies = pd.read_csv(tmp_path / "layer_energies.csv")
    assert energies["energy"].tolist() == [
        value for layers in table["final_energy"] for value in layers
    ]


def test_the_summary_names_its_numbers() -> None:
    rows = [
        {"data": "cora", "name": "GCN", "depth": 4, "best_val_accuracy": a, "test_accuracy": b}
        for a, b in ((0.8, 0.7), (0.6, 0.5))
    ]
    console = Console(width=200)
    with console.capture() as capture:
        console.print(summary(pd.DataFrame(rows)))
    said = capture.get()
    assert "highest validation accuracy" in said
    assert "test accuracy at lowest validation loss" in said
    assert "70.00 ± 14.14" in said
    assert "60.00 ± 14.14" in said


# --- eamp work --------------------------------------------------------------------------------------------------------


def test_work_joins_the_only_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path, "study")
    store.enqueue(map(asdict, CELLS[:1]))
    assert cli.main(["work", "--output", str(tmp_path)]) == 0
    assert (
        "csbm:nodes=60,features=8 gcn depth 2 seed 0: highest validation accuracy"
        in capsys.readouterr().out
    )
    assert list(finished(store)) == [CELLS[0].key]


def test_work_on_no_store_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (
        ["--output", str(tmp_path / "none")],
        ["--storage", f"sqlite:///{tmp_path / 'none.db'}"],
    ):
        assert cli.main(["work", *options]) == 2
        assert "there is no store at" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_stores_address_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    store = Store(tmp_path, "study", url)
    store.enqueue(map(asdict, CELLS[:1]))
    monkeypatch.setenv("EAMP_STORAGE", url)
    assert cli.main(["work", "--output", str(tmp_path / "mine")]) == 0
    assert list(finished(store)) == [CELLS[0].key]


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (["work", "--study", "study"], "eamp.experiments.worker.work"),
        (["sweep", "recipe.yaml"], "eamp.experiments.sweep.sweep"),
        (["tune", "--model", "gcn", "--data", "csbm"], "eamp.experiments.tune.tune"),
    ],
    ids=["work", "sweep", "tune"],
)
def test_who_loses_the_store_says_so(
    command: list[str],
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise StorageInternalError("invalid data") from OSError(
            "server closed the connection\nmore of it"
        )

    monkeypatch.chdir(tmp_path)
    Path("recipe.yaml").write_text(
        "name: study\nruns: [{model: gcn, data: csbm, depth: 1}]\n", encoding="utf-8"
    )
    Store(tmp_path, "study")
    monkeypatch.setattr(place, lost)
    assert cli.main([*command, "--output", str(tmp_path)]) == 2
    assert (
        "the store was lost: server closed the connection. What has been trained is safe"
        in capsys.readouterr().err
    )
