"""A run that was interrupted continues bit for bit, and refuses checkpoints of other runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save, save_file

from eamp.nn import GCN
from eamp.training import CheckpointError, Epoch, TrainingWarning, train
from eamp.training.checkpoints import content_digest
from training.problem import SHORT, graph, network


@pytest.mark.parametrize(
    "entropy", [None, {"weight": 0.5, "temperature": "auto", "learn_weight": True, "detach": False}]
)
@pytest.mark.parametrize(
    "changes",
    [{}, {"consistency": {"passes": 3}}, {"pseudo_labels": {"confidence": 0.3, "warmup": 6}}],
    ids=["one pass", "consistency", "pseudo-labels"],
)
def test_an_interrupted_run_continues_bit_for_bit(
    tmp_path: Path, entropy: dict[str, object] | None, changes: dict[str, object]
) -> None:
    class Interrupted(Exception):  # noqa: N818  # stands in for a kill
        pass

    def interrupt(epoch: int, figures: Epoch) -> None:
        if epoch == 8:
            raise Interrupted

    rules = SHORT.with_changes(**changes)
    expected = train(network(entropy=entropy), graph(), rules, seed=3)
    checkpoint = tmp_path / "run.safetensors"
    given = {"seed": 3, "checkpoint": checkpoint, "checkpoint_every": 5}
    with pytest.raises(Interrupted):
        train(network(entropy=entropy), graph(), rules, **given, on_epoch=interrupt)
    other = network(seed=99, entropy=entropy)  # its weights come from the checkpoint
    assert train(other, graph(), rules, **given) == expected
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
    lengths = set()
    for _ in range(3):
        with pytest.warns(TrainingWarning, match="diverged"):
            result = train(network(), graph(), wild, checkpoint=file, checkpoint_every=1)
        lengths.add(len(result.history))
    assert len(lengths) == 1
    assert lengths.pop() < 12


def test_checkpoints_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.safetensors"
    train(network(), graph(), SHORT, checkpoint=checkpoint, checkpoint_every=4)
    with pytest.raises(CheckpointError, match=r"run with other settings \(seed\)\."):
        train(network(), graph(), SHORT, seed=5, checkpoint=checkpoint)
    steps = [{"weight": weight, "temperature": 1.0} for weight in (0.5, 1.5)]
    of_a_step = tmp_path / "step.safetensors"
    train(network(entropy=steps[0]), graph(), SHORT, checkpoint=of_a_step)
    with pytest.raises(CheckpointError, match=r"run with other settings \(model\)\."):
        train(network(entropy=steps[1]), graph(), SHORT, checkpoint=of_a_step)
    train(network(entropy=steps[0]).eval(), graph(), SHORT, checkpoint=of_a_step)
    save_file({"weight": torch.ones(3)}, checkpoint)
    with pytest.raises(
        CheckpointError, match=r"run.safetensors is no checkpoint .* no record .* delete it"
    ):
        train(network(), graph(), SHORT, checkpoint=checkpoint)


def flipped(content: bytes) -> bytes:
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


def nested(content: bytes) -> bytes:
    tensors, record = {"weight": torch.ones(3)}, {"fingerprint": "{}", "history": "[" * 100_000}
    return save(tensors, {**record, "digest": content_digest(tensors, record)})


@pytest.mark.parametrize(
    "damage",
    [lambda c: c[:100], lambda c: c[:-1], lambda c: b"", lambda c: bytes(len(c)), flipped, nested],
    ids=["header", "truncated", "empty", "zeros", "bit", "nested"],
)
def test_a_damaged_checkpoint_is_set_aside_and_the_run_starts_anew(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    file, epochs = tmp_path / "run.safetensors", list[int]()
    wanted = train(network(), graph(), SHORT, checkpoint=file)
    damaged = damage(file.read_bytes())
    file.write_bytes(damaged)
    given = {"checkpoint": file, "on_epoch": lambda epoch, _: epochs.append(epoch)}
    with pytest.warns(TrainingWarning, match=r"is damaged.* now .*run.safetensors.damaged"):
        assert train(network(), graph(), SHORT, **given) == wanted
    assert epochs == list(range(12))
    assert (tmp_path / "run.safetensors.damaged").read_bytes() == damaged
    assert train(network(), graph(), SHORT, checkpoint=str(file)) == wanted


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    file, changed = tmp_path / "run.safetensors", graph().clone()
    train(network(), graph(), SHORT, checkpoint=file)
    changed.x = changed.x + 1
    with pytest.raises(CheckpointError, match=r"the graph has changed since\. Delete the file"):
        train(network(), changed, SHORT, checkpoint=file)


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".run.safetensors.0123.part").touch()
    train(network(), graph(), SHORT, checkpoint=tmp_path / "run.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["run.safetensors"]


def test_a_place_that_cannot_be_written_is_told_before_training(tmp_path: Path) -> None:
    def never(epoch: int, figures: Epoch) -> None:
        raise AssertionError

    (tmp_path / "file").touch()
    place = tmp_path / "file" / "run.safetensors"
    with pytest.raises(OSError, match=r"nothing can be written to .*file: .* Choose another"):
        train(network(), graph(), SHORT, checkpoint=place, on_epoch=never)
    with pytest.raises(CheckpointError, match=r"is a folder; use .*run.safetensors"):
        train(network(), graph(), SHORT, checkpoint=tmp_path, on_epoch=never)


def test_the_epochs_of_the_checkpoint_are_told(tmp_path: Path) -> None:
    file, told = tmp_path / "run.safetensors", list[list[Epoch]]()
    result = train(network(), graph(), SHORT, checkpoint=file, on_resume=told.append)
    assert told == []
    train(network(), graph(), SHORT, checkpoint=file, on_resume=told.append)
    assert told == [result.history]


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.safetensors"
    train(network(), graph(), SHORT, checkpoint=file, about="this")
    with pytest.raises(CheckpointError, match="other settings"):
        train(network(), graph(), SHORT, checkpoint=file, about="that")
    with pytest.raises(CheckpointError, match="another network"):
        train(GCN(8, 16, 3, num_layers=1), graph(), SHORT, checkpoint=file, about="this")
