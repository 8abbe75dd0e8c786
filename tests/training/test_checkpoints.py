"""A run that was interrupted continues bit for bit, and refuses checkpoints of other runs."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from eamp.nn import GCN
from eamp.training import Epoch, train
from eamp.training.checkpoints import CheckpointError
from training.problem import SHORT, graph, network


@pytest.mark.parametrize(
    "entropy", [None, {"weight": 0.5, "temperature": "auto", "learn_weight": True, "detach": False}]
)
def test_an_interrupted_run_continues_bit_for_bit(
    tmp_path: Path, entropy: dict[str, object] | None
) -> None:
    class Interrupted(Exception):  # noqa: N818  # stands in for a kill
        pass

    def interrupt(epoch: int, figures: Epoch) -> None:
        if epoch == 8:
            raise Interrupted

    expected = train(network(entropy=entropy), graph(), SHORT, seed=3)
    checkpoint = tmp_path / "run.safetensors"
    given = {"seed": 3, "checkpoint": checkpoint, "checkpoint_every": 5}
    with pytest.raises(Interrupted):
        train(network(entropy=entropy), graph(), SHORT, **given, on_epoch=interrupt)
    other = network(seed=99, entropy=entropy)  # its weights come from the checkpoint
    assert train(other, graph(), SHORT, **given) == expected
    assert list(tmp_path.iterdir()) == [checkpoint]


def test_a_finished_run_is_not_repeated(tmp_path: Path) -> None:
    file, epochs = tmp_path / "run.safetensors", list[int]()
    first, second = (
        train(network(), graph(), SHORT, checkpoint=file, on_epoch=lambda e, _: epochs.append(e))
        for _ in range(2)
    )
    assert first == second
    assert epochs == list(range(12))


def test_a_run_that_diverged_stays_as_long_as_it_was(tmp_path: Path) -> None:
    file, wild = tmp_path / "run.safetensors", SHORT.with_changes(learning_rate=1e30)
    lengths = {
        len(train(network(), graph(), wild, checkpoint=file, checkpoint_every=1).history)
        for _ in range(3)
    }
    assert len(lengths) == 1
    assert lengths.pop() < 12


def test_checkpoints_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.safetensors"
    train(network(), graph(), SHORT, checkpoint=checkpoint, checkpoint_every=4)
    with pytest.raises(CheckpointError, match="run with other settings"):
        train(network(), graph(), SHORT, seed=5, checkpoint=checkpoint)
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=r"run.safetensors is no checkpoint .* delete it"):
        train(network(), graph(), SHORT, checkpoint=checkpoint)
    save_file({"weight": torch.ones(3)}, checkpoint)
    with pytest.raises(CheckpointError, match=r"run.safetensors is no checkpoint .* delete it"):
        train(network(), graph(), SHORT, checkpoint=checkpoint)


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.safetensors"
    first = train(network(), graph(), SHORT, checkpoint=file, about="this")
    with pytest.raises(CheckpointError, match="other settings"):
        train(network(), graph(), SHORT, checkpoint=file, about="that")
    with pytest.raises(CheckpointError, match="another network"):
        train(GCN(8, 16, 3, num_layers=1), graph(), SHORT, checkpoint=file, about="this")
    asked = list[tuple[str, str]]()

    def same_run(before: str, now: str) -> bool:
        asked.append((before, now))
        return True

    given = {"checkpoint": file, "about": "this, by another name", "same_run": same_run}
    assert train(network(), graph(), SHORT, **given) == first
    assert asked == [("this", "this, by another name")]
