"""Training by several processes gives the run of one process, also after a restart."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from eamp.scale.process_group import under_torchrun
from eamp.training.process import SingleProcess
from scale.jobs import (
    gathered_by_the_group,
    last_words,
    started_differently,
    together,
    trained,
    warned,
)

pytestmark = pytest.mark.slow

EXACT: dict[str, Any] = {
    "model": "entropic-gcn",
    "entropy": {"weight": 2.0, "temperature": 1.0, "detach": False},
}
CALIBRATED: dict[str, Any] = {
    "model": "entropic-gcn",
    "entropy": {"weight": 2.0, "temperature": "auto", "detach": True},
}
DROPPING: dict[str, Any] = {"model": "gcnii", "dropout": 0.5, "sparse": True}
CONSISTENT: dict[str, Any] = {
    **DROPPING,
    "changes": {"consistency": {"passes": 2, "weight": 3.0, "confidence": 0.4}},
}
PSEUDO_LABELS: dict[str, Any] = {
    **DROPPING,
    "changes": {"pseudo_labels": {"weight": 3.0, "confidence": 0.4, "warmup": 0}},
}


def difference(a: list[Any], b: list[Any]) -> float:
    return float((torch.tensor(a).double() - torch.tensor(b).double()).abs().max())


@pytest.mark.parametrize("processes", [2, 4])
def test_fifty_epochs_are_those_of_one_process(processes: int) -> None:
    wanted = trained(EXACT, 50, torch.float64)
    got = together(processes, trained, EXACT, 50, torch.float64)
    for name, a, b in zip(("history", "parameters", "energies"), got[0], wanted, strict=True):
        assert difference(a, b) < 1e-10, name
    assert all(other == got[0] for other in got)  # to the bit


@pytest.mark.parametrize(("labels", "metric"), [("numbers", "rmse"), ("answers", "roc_auc")])
def test_several_targets_are_those_of_one_process(labels: str, metric: str) -> None:
    settings = {"model": "gcn", "labels": labels, "metric": metric}
    wanted = trained(dict(settings), 8, torch.float64)
    got = together(2, trained, dict(settings), 8, torch.float64)
    for name, a, b in zip(("history", "parameters", "energies"), got[0], wanted, strict=True):
        assert difference(a, b) < 1e-6 if name == "history" else difference(a, b) < 1e-10, name
    assert got[1] == got[0]


def test_in_single_precision_losses_are_those_of_one_process_up_to_rounding() -> None:
    wanted, _, _ = trained(EXACT, 50, torch.float32)
    history, _, _ = together(2, trained, EXACT, 50, torch.float32)[0]
    # Losses only: an accuracy changes by a whole node at a time.
    assert difference([row[:2] for row in history], [row[:2] for row in wanted]) < 1e-5


def test_rows_are_gathered_one_process_after_the_other() -> None:
    rows, places = [[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]], [0, 0, 1]
    assert together(3, gathered_by_the_group) == [[True, rows, places, []]] * 3


@pytest.mark.parametrize(
    "settings", [{"metric": "roc_auc", "classes": 2}, {"metric": "macro_f1"}], ids=str
)
def test_a_metric_that_is_no_sum_over_nodes_is_that_of_one_process(
    settings: dict[str, Any],
) -> None:
    wanted, _, _ = trained(EXACT | settings, 5, torch.float64)
    found = together(2, trained, EXACT | settings, 5, torch.float64)
    assert len(wanted[0]) == 6
    assert difference(found[0][0], wanted) < 1e-10
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "settings",
    [EXACT, DROPPING, CONSISTENT, PSEUDO_LABELS],
    ids=["exact", "dropping", "consistent", "pseudo-labels"],
)
def test_checkpointed_layers_exchange_and_drop_the_same_again(settings: dict[str, Any]) -> None:
    wanted = trained(settings, 10, torch.float64)
    got = together(2, trained, settings | {"checkpoint": True}, 10, torch.float64)[0]
    for name, a, b in zip(("history", "parameters", "energies"), got, wanted, strict=True):
        assert difference(a, b) < 1e-10, name


@pytest.mark.parametrize("settings", [CALIBRATED, DROPPING], ids=["calibrated", "dropping"])
def test_a_dead_process_ends_the_job_and_any_number_of_processes_continues(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    checkpoint = str(tmp_path / "run.safetensors")
    ends = last_words(3, trained, settings, 20, torch.float64, checkpoint, 12)
    assert ends[1] == (-9, "")
    assert all(
        words.startswith(f"PeerError: process {rank} of 3 lost touch")
        for rank, (_, words) in enumerate(ends)
        if rank != 1
    )
    wanted = trained(settings, 20, torch.float64)
    resumed = together(2, trained, settings, 20, torch.float64, checkpoint)[0]
    alone = trained(settings, 20, torch.float64, checkpoint)
    for got in (resumed, alone):
        for name, a, b in zip(("history", "parameters", "energies"), got, wanted, strict=True):
            assert difference(a, b) < 1e-10, name


def test_one_process_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with under_torchrun(None) as process:
        assert type(process) is SingleProcess
    with (
        pytest.raises(
            ValueError, match="--partition metis cuts the graph among the processes of torchrun"
        ),
        under_torchrun("metis"),
    ):
        pass
    monkeypatch.setenv("WORLD_SIZE", "1")
    with under_torchrun("metis") as process:
        assert type(process) is SingleProcess
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="add --partition metis"), under_torchrun(None):
        pass


def test_processes_that_were_started_differently_all_stop() -> None:
    expected = {
        "epochs is 2 in process 0 and 3 in process 1": {"epochs": 3},
        "model is .* in process 0 and .* in process 1": {"dropout": 0.5},
        "model is": {"width": 16},
        "graph is": {"data": "csbm:nodes=70,features=6,classes=3"},
        "seeds is 1 in process 0 and 2 in process 1": {"seeds": 2},
    }
    for found in together(2, started_differently, list(expected.values())):
        for said, words in zip(expected, found, strict=True):
            assert re.match(f"the processes of one job .* {said}.* Start the same", words)


def test_all_processes_set_a_damaged_checkpoint_aside(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.safetensors"
    wanted = together(2, trained, EXACT, 4, torch.float64, str(checkpoint))[0]
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    found = together(2, warned, trained, EXACT, 4, torch.float64, str(checkpoint))
    assert [result for _, result in found] == [wanted] * 2
    assert ["is damaged" in words for words, _ in found] == [True, False]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["run.safetensors", "run.safetensors.damaged"]
