import math
from pathlib import Path

import pytest
import torch
from torch.nn import Module
from torch_geometric import nn as pyg
from torch_geometric.data import Data

import eamp
from eamp.nn import EGNN, G2, GCN, GCNII, NoisyNodes
from eamp.training import loop as training
from eamp.training.checkpoints import CheckpointError
from eamp.training.loop import (
    PROTOCOLS,
    Epoch,
    Protocol,
    learning_rate,
    out_of_patience,
    selected,
    train,
)

SHORT = Protocol("val_loss", epochs=12, learning_rate=0.01, weight_decay=5e-4, schedule="cosine")


def graph() -> Data:
    return eamp.data.load("csbm:nodes=80,features=8,classes=3,seed=1")


def model(seed: int = 0, **options: object) -> Module:
    torch.manual_seed(seed)
    data = graph()
    return GCNII(data.num_features, 8, data.num_classes, num_layers=3, dropout=0.5, **options)  # type: ignore[arg-type]


def test_training_learns_and_leaves_the_selected_weights() -> None:
    data = graph()
    network = GCNII(data.num_features, 8, data.num_classes, num_layers=3)
    result = train(network, data, SHORT.with_changes(epochs=60))
    assert result.history[-1].train_loss < 0.9 * result.history[0].train_loss
    assert result.epoch == min(range(60), key=lambda epoch: result.history[epoch].val_loss)
    assert result.test_accuracy == result.history[result.epoch].test_accuracy
    logits = network.eval()(data.x, data.edge_index)
    accuracy = (logits.argmax(1) == data.y)[data.test_mask].float().mean().item()
    assert accuracy == result.test_accuracy
    assert len(result.energy) == 3
    assert all(energy >= 0 for energy in result.energy)


def test_the_same_seed_gives_the_same_run_and_another_does_not() -> None:
    first, second, third = (train(model(), graph(), SHORT, seed=seed).history for seed in (1, 1, 2))
    assert first == second
    assert first != third


def test_the_pass_that_is_saved_without_dropout_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def network(dropout: float = 0.0) -> Module:
        torch.manual_seed(0)
        entropy = {"weight": 2.0, "temperature": "auto", "detach": False}
        return GCN(
            graph().num_features,
            8,
            graph().num_classes,
            num_layers=2,
            dropout=dropout,
            entropy=entropy,
        )

    for dropout in (0.0, 0.5):
        tried = network(dropout)
        assert training.same_in_training(
            tried, training.call_on(tried, graph().x, eamp.Graph(graph()))
        ) is (dropout == 0)
    saved = train(network(), graph(), SHORT)
    monkeypatch.setattr(training, "same_in_training", lambda *given: False)
    assert train(network(), graph(), SHORT) == saved


def weighted() -> Data:
    data = graph()
    row, col = data.edge_index
    data.edge_weight = 0.1 + (row + col) % 7
    return data


@pytest.mark.parametrize("entropy", [None, {"weight": 0.5, "temperature": 1.0}])
def test_edges_count_as_much_as_they_weigh(entropy: dict[str, float] | None) -> None:
    losses = []
    for data in (graph(), weighted()):
        torch.manual_seed(0)
        losses.append(
            train(GCN(data.num_features, 8, data.num_classes, 2, entropy=entropy), data, SHORT)
            .history[-1]
            .train_loss
        )
    assert losses[0] != losses[1]


def test_a_model_of_pyg_can_be_trained_bare_and_wrapped_in_part() -> None:
    def pygs() -> Module:
        torch.manual_seed(0)
        return pyg.GCN(graph().num_features, 8, 2, graph().num_classes)

    bare = train(pygs(), graph(), SHORT)
    assert bare.history == train(eamp.wrap(pygs(), weight=0.0), graph(), SHORT).history
    assert (
        train(eamp.wrap(pygs(), weight=0.5, skip="convs.1"), graph(), SHORT).history != bare.history
    )
    assert len(bare.energy) == 2
    heavy = train(pygs(), weighted(), SHORT)
    assert heavy.history != bare.history
    assert heavy.history[0].train_loss == pytest.approx(
        train(eamp.wrap(pygs(), weight=0.0), weighted(), SHORT).history[0].train_loss
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"select": "foo"}, "select must be one of 'val_loss', 'val_accuracy', but is 'foo'"),
        ({"reduction": "max"}, "reduction must be one of 'sum', 'mean', but is 'max'"),
        ({"schedule": None}, "schedule must be one of 'cosine', 'none', but is None"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, but is 0"),
    ],
)
def test_a_protocol_that_cannot_be(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PROTOCOLS["standard"].with_changes(**changes)


@pytest.mark.parametrize(
    "entropy", [None, {"weight": 0.5, "temperature": "auto", "learn_weight": True, "detach": False}]
)
def test_an_interrupted_run_goes_on_bit_for_bit(
    tmp_path: Path, entropy: dict[str, object] | None
) -> None:
    class Interrupted(Exception):  # noqa: N818  # stands in for a kill
        pass

    def interrupt(epoch: int, figures: Epoch) -> None:
        if epoch == 8:
            raise Interrupted

    expected = train(model(entropy=entropy), graph(), SHORT, seed=3)
    checkpoint = tmp_path / "run.safetensors"
    with pytest.raises(Interrupted):
        train(
            model(entropy=entropy),
            graph(),
            SHORT,
            seed=3,
            checkpoint=checkpoint,
            checkpoint_every=5,
            on_epoch=interrupt,
        )
    network = model(seed=99, entropy=entropy)  # whatever it was, the checkpoint decides
    resumed = train(network, graph(), SHORT, seed=3, checkpoint=checkpoint, checkpoint_every=5)
    assert resumed == expected
    assert list(tmp_path.iterdir()) == [checkpoint]


def test_checkpoints_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.safetensors"
    train(model(), graph(), SHORT, checkpoint=checkpoint, checkpoint_every=4)
    with pytest.raises(CheckpointError, match="run with other settings"):
        train(model(), graph(), SHORT, seed=5, checkpoint=checkpoint)
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=r"run.safetensors is no checkpoint .* delete it"):
        train(model(), graph(), SHORT, checkpoint=checkpoint)


def test_patience_stops_a_run_that_no_longer_improves() -> None:
    rows = [Epoch(1.0, loss, 0.5, 0.5) for loss in (3.0, 2.0, 1.0, 1.5, 1.6)]
    assert out_of_patience(rows, SHORT.with_changes(patience=2))
    assert not out_of_patience(rows, SHORT.with_changes(patience=3))
    assert not out_of_patience(rows, SHORT)
    result = train(
        model(),
        graph(),
        SHORT.with_changes(epochs=3000, learning_rate=0.1, schedule="none", patience=5),
    )
    assert len(result.history) < 3000


def test_selection_follows_the_protocol_takes_the_first_of_equals_and_skips_nan() -> None:
    rows = [
        Epoch(1.0, 2.0, 0.7, 0.1),
        Epoch(1.0, 1.0, 0.6, 0.2),
        Epoch(1.0, 1.0, 0.7, 0.3),
        Epoch(math.nan, math.nan, 0.9, 0.4),
    ]
    assert selected(rows, SHORT) == 1
    assert selected(rows, SHORT.with_changes(select="val_accuracy")) == 0


def test_the_papers_protocol_is_the_papers() -> None:
    paper = PROTOCOLS["paper"]
    assert (
        paper.epochs,
        paper.learning_rate,
        paper.weight_decay,
        paper.reduction,
        paper.select,
    ) == (100, 1e-3, 0.0, "sum", "val_accuracy")
    assert [learning_rate(paper, epoch) for epoch in (0, 50)] == pytest.approx([1e-3, 5e-4])
    assert learning_rate(paper, 99) < 1e-6
    assert PROTOCOLS["standard"].select == "val_loss"


def test_nan_ends_a_run_without_losing_what_was_there() -> None:
    data = graph()
    network = GCN(data.num_features, 8, data.num_classes, num_layers=2)

    def poison(epoch: int, figures: Epoch) -> None:
        if epoch == 3:
            next(network.parameters()).data.fill_(math.nan)

    result = train(network, data, SHORT, on_epoch=poison)
    assert len(result.history) < SHORT.epochs
    assert result.epoch <= 4
    assert math.isfinite(result.val_loss)
    assert all(torch.isfinite(parameter).all() for parameter in network.parameters())


def test_auxiliary_losses_are_part_of_the_loss() -> None:
    data = graph()
    sizes = (data.num_features, 8, data.num_classes)
    noisy = NoisyNodes(GCN(sizes[0], 8, sizes[0] + sizes[2], num_layers=2), sizes[2], weight=100.0)
    quiet = NoisyNodes(GCN(sizes[0], 8, sizes[0] + sizes[2], num_layers=2), sizes[2], weight=0.0)
    quiet.load_state_dict(noisy.state_dict())
    one = SHORT.with_changes(epochs=1)
    assert (
        train(noisy, data, one).history[0].train_loss
        > train(quiet, data, one).history[0].train_loss + 1
    )
    assert math.isfinite(train(EGNN(*sizes, num_layers=3), data, SHORT).val_loss)


def test_a_shared_layer_has_an_energy_per_application_and_a_gate_has_none() -> None:
    data = graph()
    result = train(
        G2(data.num_features, 8, data.num_classes, num_layers=5), data, SHORT.with_changes(epochs=2)
    )
    assert len(result.energy) == len(result.final_energy) == 5


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.safetensors"
    train(model(), graph(), SHORT, checkpoint=file, about="this")
    with pytest.raises(CheckpointError, match="other settings"):
        train(model(), graph(), SHORT, checkpoint=file, about="that")
    with pytest.raises(CheckpointError, match="another network"):
        train(GCN(8, 16, 3, num_layers=1), graph(), SHORT, checkpoint=file, about="this")


def test_a_finished_run_is_not_repeated(tmp_path: Path) -> None:
    file, epochs = tmp_path / "run.safetensors", []
    first = train(
        model(), graph(), SHORT, checkpoint=file, on_epoch=lambda epoch, _: epochs.append(epoch)
    )
    assert (
        train(
            model(), graph(), SHORT, checkpoint=file, on_epoch=lambda epoch, _: epochs.append(epoch)
        )
        == first
    )
    assert epochs == list(range(12))


def test_a_run_that_was_lost_stays_as_long_as_it_was(tmp_path: Path) -> None:
    file, wild = tmp_path / "run.safetensors", SHORT.with_changes(learning_rate=1e30)
    lengths = {
        len(train(model(), graph(), wild, checkpoint=file, checkpoint_every=1).history)
        for _ in range(3)
    }
    assert len(lengths) == 1
    assert lengths.pop() < 12
