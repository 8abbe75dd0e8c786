"""The fault campaign of ``make campaign``, with numbers so small that it cannot rot unnoticed."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.campaign import disk, graphs, hostile, kills, ranks, signals, stores
from tests.campaign.__main__ import KINDS, print_summary
from tests.campaign.hostile_inputs import INPUTS, Place, npz_of_objects, yaml_objects
from tests.campaign.oracle import expected
from tests.campaign.processes import Ended, Running, descendants, run
from tests.campaign.random_graphs import draw, graph_of
from tests.campaign.tally import Options, Tally

PYTHON = [sys.executable, "-c"]


def test_random_graphs_are_drawn_again_from_seed_and_number() -> None:
    for number in range(20):
        first, again = draw(3, number), draw(3, number)
        assert str(first) == str(again)
        assert torch.equal(first.x, again.x)


def test_backends_agree_with_the_oracle_on_a_few_graphs_of_moderate_size() -> None:
    cases = [(number, draw(0, number)) for number in range(60)]
    moderate = [each for each in cases if 1e-3 < float(each[1].x.double().abs().max()) < 1e3][:20]
    assert len(moderate) == 20
    for number, case in moderate:
        graph = graph_of(case, random.Random(number))
        assert graphs.compare(case, graph, ["numba", "torch"]) == []


def test_a_wrong_value_is_seen() -> None:
    wrong = 0
    for number in range(20):
        case = draw(0, number)
        for value in expected(case)["difference"].values():
            assert (
                value.complaint(torch.full_like(value.value, torch.nan)) or not value.value.numel()
            )
            moderate = (value.value.abs() > 1e-3) & (value.tolerance < 1e-3 * value.value.abs())
            if moderate.any():
                wrong += 1
                assert value.complaint(value.value * 1.01)
    assert wrong > 20


def test_every_kind_can_be_run_by_name() -> None:
    found = {graphs.graphs, kills.kills, signals.signals, hostile.hostile, disk.disk, ranks.ranks}
    assert {function.__name__ for function in found} | {"database"} == set(KINDS)
    assert len(INPUTS) == len(set(INPUTS)) >= 30


def test_hostile_inputs_are_what_they_say(tmp_path: Path) -> None:
    """Every input can be made, and its program would leave the marker if it were executed."""
    heavy = {"npz_bomb", "job_with_a_hostile_dataset", "job_that_is_none"}
    for number, each in enumerate(INPUTS):
        if each.__name__ not in heavy:
            place = Place(tmp_path / str(number), tmp_path / str(number) / "executed")
            place.folder.mkdir()
            assert each(place).command
    place = Place(tmp_path / "pickle", tmp_path / "executed")
    place.folder.mkdir()
    command = npz_of_objects(place).command
    file = str(command[command.index("--data") + 1])
    code = f"import numpy as np; np.load({file!r}, allow_pickle=True)['edge_weight']"
    subprocess.run([*PYTHON, code], check=True)
    assert place.marker.exists()


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("import sys; print('eamp: no.', file=sys.stderr); sys.exit(2)", None),
        ("raise ValueError('no')", "a traceback"),
        ("import os; os.mkdir(os.environ['EAMP_CACHE'] + '/../executed')", "executed"),
        ("import time; time.sleep(60)", "does not end"),
        ("import sys, time; x = b'a' * 2**27; time.sleep(0.2); sys.exit(2)", "GiB"),
        ("import os; os.kill(os.getpid(), 11)", "status -11"),
    ],
)
def test_outcomes_of_hostile_inputs_are_told_apart(
    code: str, fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostile, "SECONDS", 1)
    monkeypatch.setattr(hostile, "BYTES", 2**26)

    def each(place: Place) -> object:
        (place.folder / "cache").mkdir()
        tried = yaml_objects(place)
        tried.command = [*PYTHON, code]
        return tried

    _, faults = hostile.attempt(each, tmp_path, Ended(0, "", "", 1.0, 0))  # type: ignore[arg-type]
    assert bool(faults) is (fault is not None)
    assert fault is None or any(fault in words for words in faults)


def test_lost_doubled_and_changed_results_are_counted(tmp_path: Path) -> None:
    found = {
        "calm": [("a", "1"), ("b", "3"), ("c", "4")],
        "disturbed": [("a", "1"), ("a", "1"), ("b", "2")],
    }
    work = stores.training()._replace(results=lambda folder: found[folder.name])
    calm, disturbed, tally = tmp_path / "calm", tmp_path / "disturbed", Tally("kills")
    assert not stores.check(work, disturbed, calm, tally)
    assert (tally.counts["doubled"], tally.counts["changed"], tally.counts["lost"]) == (1, 1, 1)
    assert stores.check(work, calm, calm, tally)


def test_a_killed_command_is_resumed_until_it_has_finished(tmp_path: Path) -> None:
    """A command that works in three steps, each of which may be killed."""
    step = (
        "import pathlib, sys, time; p = pathlib.Path(sys.argv[1]); p.mkdir(exist_ok=True)\n"
        "for i in range(3):\n"
        "    f = p / f'seed_{i}.json'\n"
        "    if not f.exists(): time.sleep(0.1); f.write_text(str(i))"
    )
    work = stores.Work(
        "train", lambda folder: [*PYTHON, step, str(folder)], stores.trained, lambda *_: True
    )
    tally, chance = Tally("kills", {"kills": 0}), random.Random(0)
    chance.uniform = lambda low, high: 0.15  # type: ignore[method-assign]
    options = Options(0, tmp_path / "kills")
    calm = stores.undisturbed(work, options, tally)
    assert calm is not None
    kills.storm(work, 3, chance, calm, options.folder, tally)
    assert tally.faults == []
    assert tally.counts["kills"] == 3
    assert tally.counts["cells"] % 3 == 0


def test_limits_and_children_of_a_running_command(tmp_path: Path) -> None:
    code = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('a' * 5000)"
    command = [*PYTHON, code, str(tmp_path / "file")]
    ended = run(command, tmp_path, limits={"RLIMIT_FSIZE": 1000})
    assert "File too large" in ended.err
    running = Running(["sh", "-c", "sleep 9 & sleep 9"], tmp_path)
    while len(found := running.children()) < 2:
        assert not running.wait(0.01)
    assert set(found) < set(descendants(running.process.pid))
    assert running.ended(0.01).status is None


def test_the_summary_names_every_fault(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally("graphs", {"graphs": 3})
    tally.fault("wrong")
    print_summary(7, [tally, Tally("kills", {"kills": 2})])
    said = capsys.readouterr().out
    assert "seed 7" in said
    assert "FAULT graphs: wrong" in said
    assert Options(1, Path()).graphs == 10_000
