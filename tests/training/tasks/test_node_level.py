"""Labels of nodes: ROC AUC on a real graph, from the weights of a checkpoint."""

from pathlib import Path

import pytest
from safetensors.torch import load_file
from sklearn import metrics

import eamp
from eamp.nn import GCN
from eamp.training import PROTOCOLS, predict, train


@pytest.mark.slow
def test_roc_auc_on_minesweeper_is_that_of_scikit_learn(tmp_path: Path) -> None:
    try:
        data = eamp.data.load("minesweeper")
    except eamp.data.DataError as error:
        pytest.skip(str(error))
    rules = PROTOCOLS["standard"].with_changes(epochs=3, metric="roc_auc", select="val_metric")
    model, file = GCN(data.num_features, 16, 2, num_layers=2), tmp_path / "run.safetensors"
    result = train(model, data, rules, checkpoint=file)
    stored = {name.removeprefix("best."): each for name, each in load_file(file).items()}
    again = GCN(data.num_features, 16, 2, num_layers=2)
    again.load_state_dict({name: stored[name] for name in again.state_dict()})
    for part, value in (("val", result.val_metric), ("test", result.test_metric)):
        logits, labels = predict(again, data, part)  # type: ignore[arg-type]  # one of two
        score = metrics.roc_auc_score(labels, logits.double().softmax(1)[:, 1])
        assert value == pytest.approx(score, abs=1e-6)
    precise = train(again, data, rules.with_changes(metric="average_precision", epochs=1))
    logits, labels = predict(again, data)
    score = metrics.average_precision_score(labels, logits.double().softmax(1)[:, 1])
    assert precise.test_metric == pytest.approx(score, abs=1e-6)
