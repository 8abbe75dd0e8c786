"""All tasks through the same checks: continuation bit for bit, selection, prediction, digests."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import Module

import eamp
from eamp.nn import GCN
from eamp.training import METRICS, CheckpointError, TrainingWarning, predict, train
from eamp.training.tasks import task_of
from training.tasks.problems import SHORT, graph_model, link_model, link_parts, small_graphs


def nodes(kind: str) -> Any:
    data = eamp.data.load("csbm:nodes=80,features=8,classes=3,seed=1").clone()
    if kind == "numbers":
        data.y = torch.stack([data.x[:, 0], data.x[:, 1] * 2], 1)
        data.y[::4, 1] = math.nan
    elif kind == "labels":
        data.y = torch.stack([data.y % 2, (data.y > 1).long()], 1)
        data.y[::5, 0] = -1
    return data


def node_model(outputs: int, **options: object) -> Module:
    torch.manual_seed(0)
    return GCN(8, 8, outputs, num_layers=2, **options)  # type: ignore[arg-type]  # of many types


CASES: dict[str, tuple[Callable[[], Any], Callable[..., Module], str]] = {
    "nodes, numbers": (lambda: nodes("numbers"), lambda **o: node_model(2, **o), "mae"),
    "nodes, labels": (lambda: nodes("labels"), lambda **o: node_model(2, **o), "roc_auc"),
    "graphs, classes": (lambda: eamp.data.k_fold(small_graphs()), graph_model, "accuracy"),
    "graphs, numbers": (
        lambda: eamp.data.k_fold(small_graphs("numbers")),
        lambda **o: graph_model(1, "sum", **o),
        "mae",
    ),
    "graphs, labels": (
        lambda: eamp.data.k_fold(small_graphs("labels")),
        lambda **o: graph_model(2, "max", **o),
        "roc_auc",
    ),
    "links": (link_parts, link_model, "roc_auc"),
}
every_task = pytest.mark.parametrize(("data", "model", "metric"), CASES.values(), ids=list(CASES))


@every_task
def test_a_run_continues_bit_for_bit(
    data: Callable[[], Any], model: Callable[..., Module], metric: str, tmp_path: Path
) -> None:
    file, rules = tmp_path / "run.safetensors", SHORT.with_changes(select="val_metric")
    expected = train(model(dropout=0.3), data(), rules, seed=3)
    assert expected.metric == metric

    def interrupt(epoch: int, figures: object) -> None:
        if epoch == 3:
            raise KeyboardInterrupt

    given = {"checkpoint": file, "checkpoint_every": 2, "seed": 3}
    with pytest.raises(KeyboardInterrupt):
        train(model(dropout=0.3), data(), rules, **given, on_epoch=interrupt)
    torch.manual_seed(99)  # the state outside does not matter
    # Compared as text: from Python 3.13 on, no two results with a NaN are equal.
    assert repr(train(model(dropout=0.3), data(), rules, **given)) == repr(expected)
    assert train(model(dropout=0.3), data(), rules, seed=4).history != expected.history
    with pytest.raises(CheckpointError, match="other settings"):
        train(model(dropout=0.3), data(), rules.with_changes(learning_rate=0.5), **given)


@every_task
def test_the_figures_are_those_of_the_selected_weights(
    data: Callable[[], Any], model: Callable[..., Module], metric: str
) -> None:
    trained, given = model(entropy={"weight": 1.0, "temperature": 1.0}), data()
    result = train(trained, given, SHORT.with_changes(select="val_metric"))
    merits = [METRICS[metric].merit(row.val_metric) for row in result.history]
    assert result.epoch == merits.index(max(merits))
    assert result.best_val_metric == result.val_metric
    assert len(result.energy) == len(result.final_energy) == 3
    target = task_of(given, SHORT).target
    for part, value in (("val", result.val_metric), ("test", result.test_metric)):
        out, y = predict(trained, given, part)  # type: ignore[arg-type]  # one of two
        assert target.value(metric, target.reads(metric, out), y) == pytest.approx(value, abs=1e-6)
    if target.kind != "classes":
        assert result.also == {target.second: result.history[result.epoch].test_second}  # type: ignore[union-attr]
        assert math.isnan(result.test_accuracy)


@every_task
def test_training_learns(
    data: Callable[[], Any], model: Callable[..., Module], metric: str
) -> None:
    history = train(model(), data(), SHORT.with_changes(epochs=60)).history
    assert min(row.train_loss for row in history[-5:]) < 0.9 * history[0].train_loss


@every_task
def test_a_network_that_diverges_says_so(
    data: Callable[[], Any], model: Callable[..., Module], metric: str
) -> None:
    with pytest.warns(TrainingWarning, match="diverged"):
        result = train(model(), data(), SHORT.with_changes(learning_rate=1e30))
    assert result.diverged


@every_task
def test_the_digest_follows_the_data(
    data: Callable[[], Any], model: Callable[..., Module], metric: str
) -> None:
    assert task_of(data(), SHORT).digest == task_of(data(), SHORT).digest
    changed = data()
    first = changed if isinstance(changed, eamp.data.loading.Data) else changed[0]
    first = first[0] if isinstance(first, list) else first
    first.x = first.x + 1
    assert task_of(changed, SHORT).digest != task_of(data(), SHORT).digest


def test_data_of_no_task_are_refused() -> None:
    with pytest.raises(ValueError, match=r"but is list\. Of many graphs .*eamp.data.k_fold"):
        task_of(small_graphs(), SHORT)
    with pytest.raises(ValueError, match="but is dict"):
        task_of({}, SHORT)  # type: ignore[arg-type]  # a mistake
