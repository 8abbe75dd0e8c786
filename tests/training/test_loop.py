"""The training loop: learning, selection, weights of edges, layers of PyG, auxiliary losses."""

import math
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
import torch
from torch.nn import Module
from torch_geometric import nn as pyg
from torch_geometric.data import Data

import eamp
from eamp.nn import EGNN, G2, GCN, MODELS, NoisyNodes
from eamp.training import METRICS, PROTOCOLS, Epoch, TrainingWarning, loop, train
from eamp.training.checkpoints import CheckpointError
from eamp.training.metrics import Metric
from eamp.training.tasks import node_level
from eamp.training.tasks.task import call_on, copy_of_state
from training.problem import SHORT, graph, network

SIZES = (graph().num_features, 8, graph().num_classes)


def test_training_learns_and_leaves_the_selected_weights() -> None:
    data, model = graph(), network(dropout=0.0)
    result = train(model, data, SHORT.with_changes(epochs=60))
    assert result.history[-1].train_loss < 0.9 * result.history[0].train_loss
    assert result.epoch == min(range(60), key=lambda epoch: result.history[epoch].val_loss)
    assert result.test_accuracy == result.history[result.epoch].test_accuracy
    logits = model.eval()(data.x, data.edge_index)
    accuracy = (logits.argmax(1) == data.y)[data.test_mask].float().mean().item()
    assert accuracy == result.test_accuracy
    assert len(result.energy) == 3
    assert all(energy >= 0 for energy in result.energy)


def test_every_epoch_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def merit(self: Metric, value: float) -> float:
        judged.append(value)
        return value

    judged, epochs = list[float](), 20
    monkeypatch.setattr(Metric, "merit", merit)
    train(network(dropout=0.0), graph(), SHORT.with_changes(select="val_metric", epochs=epochs))
    assert len(judged) <= 2 * epochs  # once to select, once for the result


def test_the_same_seed_gives_the_same_run_and_another_does_not() -> None:
    first, second, third = (
        train(network(), graph(), SHORT, seed=seed).history for seed in (1, 1, 2)
    )
    assert first == second
    assert first != third


def test_the_pass_that_is_saved_without_dropout_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(dropout: float = 0.0) -> Module:
        torch.manual_seed(0)
        entropy = {"weight": 2.0, "temperature": "auto", "detach": False}
        return GCN(*SIZES, num_layers=2, dropout=dropout, entropy=entropy)

    for dropout in (0.0, 0.5):
        tried = made(dropout)
        call = partial(call_on(tried, eamp.Graph(graph())), graph().x)
        assert node_level.same_in_training(tried, call) is (dropout == 0)
    saved = train(made(), graph(), SHORT)
    monkeypatch.setattr(node_level, "same_in_training", lambda *given: False)
    assert train(made(), graph(), SHORT) == saved


class Gated(Module):
    """A network with dropout whose initial outputs do not depend on it, as in ReZero."""

    def __init__(self, gate: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.inner = pyg.GCNConv(SIZES[0], 8), torch.nn.Linear(8, 8)
        self.head, self.gate = torch.nn.Linear(8, SIZES[2]), torch.nn.Parameter(torch.tensor(gate))
        if gate:  # then the output layer starts at zero
            torch.nn.init.zeros_(self.head.weight)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        x = self.first(x, edge_index)
        dropped = torch.nn.functional.dropout(self.inner(x), 0.5, self.training)
        return self.head(x + self.gate * dropped)


@pytest.mark.parametrize("gate", [0.0, 1.0])
def test_dropout_behind_a_zero_is_off_when_an_epoch_is_measured(gate: float) -> None:
    model, data = Gated(gate), graph()
    weights, state = copy_of_state(model), torch.get_rng_state()
    assert not node_level.same_in_training(model, lambda: model(data.x, data.edge_index))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(now, weights[name]) for name, now in model.state_dict().items())
    result = train(model, data, SHORT)
    logits = model.eval()(data.x, data.edge_index)[data.val_mask]
    loss = torch.nn.functional.cross_entropy(logits, data.y[data.val_mask])
    assert result.val_loss == pytest.approx(loss.item())


def test_dropout_in_a_network_whose_activations_are_zero_is_found() -> None:
    tried = GCN(*SIZES, num_layers=300, dropout=0.5)
    call = partial(call_on(tried, eamp.Graph(graph())), graph().x)
    with loop.denormals_flushed():
        assert not node_level.same_in_training(tried, call)


def weighted() -> Data:
    data = graph()
    row, col = data.edge_index
    data.edge_weight = 0.1 + (row + col) % 7
    return data


@pytest.mark.parametrize("entropy", [None, {"weight": 0.5, "temperature": 1.0}])
def test_weights_of_edges_count(entropy: dict[str, float] | None) -> None:
    losses = []
    for data in (graph(), weighted()):
        torch.manual_seed(0)
        result = train(GCN(*SIZES, num_layers=2, entropy=entropy), data, SHORT)
        losses.append(result.history[-1].train_loss)
    assert losses[0] != losses[1]


def test_a_model_of_pyg_can_be_trained_bare_and_wrapped_in_part() -> None:
    def pygs() -> Module:
        torch.manual_seed(0)
        return pyg.GCN(SIZES[0], 8, 2, SIZES[2])

    bare = train(pygs(), graph(), SHORT)
    assert bare.history == train(eamp.wrap(pygs(), weight=0.0), graph(), SHORT).history
    in_part = train(eamp.wrap(pygs(), weight=0.5, skip="convs.1"), graph(), SHORT)
    assert in_part.history != bare.history
    assert len(bare.energy) == 2
    heavy = train(pygs(), weighted(), SHORT)
    assert heavy.history != bare.history
    wrapped = train(eamp.wrap(pygs(), weight=0.0), weighted(), SHORT)
    assert heavy.history[0].train_loss == pytest.approx(wrapped.history[0].train_loss)


def test_patience_stops_a_run_that_no_longer_improves() -> None:
    patient = SHORT.with_changes(epochs=3000, learning_rate=0.1, schedule="none", patience=5)
    assert len(train(network(), graph(), patient).history) < 3000


def test_nan_ends_a_run_without_losing_what_was_there() -> None:
    model = GCN(*SIZES, num_layers=2)

    def poison(epoch: int, figures: Epoch) -> None:
        if epoch == 3:
            next(model.parameters()).data.fill_(math.nan)

    with pytest.warns(TrainingWarning, match="epoch [45].* those of an earlier epoch. Try a lower"):
        result = train(model, graph(), SHORT, on_epoch=poison)
    assert result.diverged
    assert len(result.history) < SHORT.epochs
    assert result.epoch <= 4
    assert math.isfinite(result.val_loss)
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())


@pytest.mark.parametrize("fault", ["learning rate", "features"])
def test_a_run_that_diverges_at_once_says_so_and_what_to_try(fault: str) -> None:
    data, rules = graph().clone(), SHORT
    if fault == "features":
        data.x = torch.full_like(data.x, math.nan)
    else:
        rules = SHORT.with_changes(learning_rate=1e30)
    with pytest.warns(TrainingWarning, match="in epoch [01], .* mean nothing. Try a lower learni"):
        assert train(network(), data, rules).diverged
    assert not train(network(), graph(), SHORT.with_changes(epochs=1)).diverged


def test_a_protocol_is_known_by_its_name() -> None:
    one_epoch = PROTOCOLS["paper"].with_changes(epochs=1)
    with mock.patch.dict(PROTOCOLS, {"paper": one_epoch}):
        assert train(network(), graph(), "paper") == train(network(), graph(), one_epoch)
    with pytest.raises(ValueError, match="no protocol named 'papers'; there are paper, standard"):
        train(network(), graph(), "papers")
    with pytest.raises(ValueError, match="must be a Protocol or one of paper, standard, but is"):
        train(network(), graph(), {})  # type: ignore[arg-type]  # a mistake


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"val_mask": None}, "no val_mask; training needs .*RandomNodeSplit"),
        ({"y": None}, "data has no y; training needs x"),
        ({"y": torch.ones(79)}, r"y must hold one label per node, shape \[80\]"),
        ({"y": torch.ones(80, 2, 2)}, r"or several, shape \[80, targets\], but has shape"),
        ({"train_mask": torch.zeros(80, dtype=torch.bool)}, "train_mask has no node"),
        ({"val_mask": torch.ones(80, 3, dtype=torch.bool)}, r"Choose .* data.val_mask\[:, 0\]"),
        ({"test_mask": torch.arange(80)}, r"must hold true or false .* type torch.int64"),
        ({"y": torch.full((80,), -1)}, "without a label"),
    ],
)
def test_data_that_lack_something_are_refused(change: dict[str, object], said: str) -> None:
    data = graph().clone()
    data.update(change)
    with pytest.raises(ValueError, match=said):
        train(network(), data, SHORT)


# --- Metrics


def two_classes() -> Data:
    return eamp.data.load("csbm:nodes=80,features=8,classes=2,seed=1")


def binary() -> Module:
    torch.manual_seed(0)
    return GCN(8, 8, 2, num_layers=2)


@pytest.mark.parametrize("name", [name for name in METRICS if not METRICS[name].regression])
def test_the_metric_is_that_of_the_selected_weights(name: str) -> None:
    data, model, metric = two_classes(), binary(), METRICS[name]
    rules = SHORT.with_changes(metric=name, select="val_metric")
    result = train(model, data, rules)
    values = [row.val_metric for row in result.history]
    assert result.metric == name
    assert result.epoch == values.index(max(values))
    assert result.best_val_metric == result.val_metric == max(values)
    numbers = metric.reads(model.eval()(data.x, data.edge_index).detach())
    for mask, value in ((data.val_mask, result.val_metric), (data.test_mask, result.test_metric)):
        assert metric.of(numbers[mask], data.y[mask]) == value
    # Neither the metric nor the selection changes what is trained.
    plain = train(binary(), data, SHORT)
    assert [row[:4] for row in result.history] == plain.history
    assert (plain.metric, plain.test_metric) == ("accuracy", plain.test_accuracy)
    assert (plain.val_metric, plain.best_val_metric) == (
        plain.val_accuracy,
        plain.best_val_accuracy,
    )


def test_a_run_by_a_metric_continues_bit_for_bit(tmp_path: Path) -> None:
    rules, file = (
        SHORT.with_changes(metric="roc_auc", select="val_metric"),
        tmp_path / "run.safetensors",
    )
    expected = train(binary(), two_classes(), rules)

    def interrupt(epoch: int, figures: object) -> None:
        if epoch == 6:
            raise KeyboardInterrupt

    given = {"checkpoint": file, "checkpoint_every": 3}
    with pytest.raises(KeyboardInterrupt):
        train(binary(), two_classes(), rules, **given, on_epoch=interrupt)
    assert train(binary(), two_classes(), rules, **given) == expected
    with pytest.raises(CheckpointError, match="other settings"):
        train(binary(), two_classes(), rules.with_changes(metric="accuracy"), **given)


def test_a_metric_that_does_not_fit_is_refused_before_training() -> None:
    def never(epoch: int, figures: object) -> None:
        raise AssertionError

    def tried(model: Module, data: Data) -> None:
        train(model, data, SHORT.with_changes(metric="roc_auc"), on_epoch=never)

    with pytest.raises(
        ValueError, match=r"roc_auc is for two classes, but y holds 3; use .* accuracy or macro_f1"
    ):
        tried(network(), graph())
    with pytest.raises(ValueError, match=r"but the model has 5 outputs; make it .*out_channels=2"):
        tried(GCN(8, 8, 5, num_layers=2), two_classes())
    for mask in ("val_mask", "test_mask"):
        data = two_classes().clone()
        data[mask] = data[mask] & (data.y == 1)
        with pytest.raises(ValueError, match=f"all nodes of {mask} are of class 1; choose a split"):
            tried(binary(), data)


def test_without_test_nodes_there_is_no_test_metric() -> None:
    data = two_classes().clone()
    data.test_mask = torch.zeros_like(data.test_mask)
    result = train(binary(), data, SHORT.with_changes(metric="roc_auc"))
    assert math.isnan(result.test_metric)
    assert 0 <= result.val_metric <= 1


def test_a_dataset_is_not_its_graph() -> None:
    with pytest.raises(ValueError, match=r"but is list\. .* dataset\[0\]"):
        train(network(), [graph()], SHORT)  # type: ignore[arg-type]  # a mistake


def test_auxiliary_losses_are_part_of_the_loss() -> None:
    def noisy(weight: float) -> NoisyNodes:
        torch.manual_seed(0)
        inner = GCN(SIZES[0], 8, SIZES[0] + SIZES[2], num_layers=2)
        return NoisyNodes(inner, SIZES[2], weight=weight)

    one = SHORT.with_changes(epochs=1)
    heavy, none = (train(noisy(weight), graph(), one).history[0] for weight in (100.0, 0.0))
    assert heavy.train_loss > none.train_loss + 1
    assert math.isfinite(train(EGNN(*SIZES, num_layers=3), graph(), SHORT).val_loss)


def test_sizes_that_the_first_input_tells_are_needed_before_training() -> None:
    data, model = graph(), pyg.GCN(-1, 8, num_layers=2, out_channels=SIZES[2])
    with pytest.raises(ValueError, match=r"GCN has parameters whose sizes .*call it once"):
        train(model, data, SHORT)
    model(data.x, data.edge_index)
    assert len(train(model, data, SHORT.with_changes(epochs=2)).history) == 2


@pytest.mark.parametrize("entropy", [None, {"weight": 1.0, "temperature": 1.0}])
@pytest.mark.parametrize("name", MODELS)
def test_a_network_without_hidden_layers_is_trained(
    name: str, entropy: dict[str, float] | None
) -> None:
    model = MODELS[name](*SIZES, num_layers=0, entropy=entropy)
    result = train(model, graph(), SHORT.with_changes(epochs=2))
    assert len(result.history) == 2
    assert len(result.energy) == len(result.final_energy) <= 1


def test_a_shared_layer_has_an_energy_per_application_and_a_gate_has_none() -> None:
    result = train(G2(*SIZES, num_layers=5), graph(), SHORT.with_changes(epochs=2))
    assert len(result.energy) == len(result.final_energy) == 5
