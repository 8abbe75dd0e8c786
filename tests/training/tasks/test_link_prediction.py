"""Links: the loss by hand, pairs drawn from seed and epoch, scikit-learn's figures, mistakes."""

import math
import random

import pytest
import torch
from sklearn import metrics
from torch_geometric import nn as pyg
from torch_geometric.utils import to_dense_adj

from eamp.training import predict, train
from eamp.training.process import SingleProcess
from eamp.training.tasks import LinkTask
from eamp.training.tasks.link_prediction import pair_scores
from training.tasks.problems import SHORT, link_model, link_parts


def started(seed: int = 0) -> LinkTask:
    task = LinkTask(link_parts(), SHORT)
    task.start(link_model(), SingleProcess(), seed)
    return task


def test_the_loss_is_the_binary_cross_entropy_of_dot_products() -> None:
    task, train_part = started(), link_parts()[0]
    (batch,) = task.batches(0)
    z = task.model(train_part.x, train_part.edge_index).detach().double()
    pairs, y = batch
    literal = []
    for u, v, linked in zip(*pairs.tolist(), y.flatten().tolist(), strict=True):
        probability = 1 / (1 + math.exp(-float(z[u] @ z[v])))
        literal.append(-math.log(probability if linked else 1 - probability))
    assert task.loss(batch).item() == pytest.approx(sum(literal) / len(literal), rel=1e-5)


def test_other_pairs_are_no_training_links_and_new_in_every_epoch() -> None:
    task, state = started(), random.getstate()
    adjacency = to_dense_adj(task.parts["train"].edge_index, max_num_nodes=80)[0]
    drawn = []
    for epoch in (0, 1, 0):
        ((pairs, y),) = task.batches(epoch)
        linked = y.flatten() == 1
        assert linked.sum() == (~linked).sum() == task.links.size(1)
        assert adjacency[pairs[0, linked], pairs[1, linked]].all()
        assert not adjacency[pairs[0, ~linked], pairs[1, ~linked]].any()
        assert not (pairs[0] == pairs[1]).any()
        drawn.append(pairs)
        random.random()  # other draws do not matter
        torch.rand(1)
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])
    ((other, _),) = started(seed=1).batches(0)
    assert not torch.equal(drawn[0], other)
    assert random.getstate() != state  # by this test alone


def test_the_figures_are_those_of_scikit_learn() -> None:
    model, parts = link_model(), link_parts()
    result = train(model, parts, SHORT)
    scores, y = predict(model, parts)
    z = model.eval()(parts[2].x, parts[2].edge_index).detach()
    assert torch.allclose(scores, pair_scores(z, parts[2].edge_label_index), atol=1e-6)
    expected = metrics.roc_auc_score(y, scores), metrics.average_precision_score(y, scores)
    found = (result.test_metric, result.also["average_precision"])
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_model_of_pyg_predicts_links() -> None:
    torch.manual_seed(0)
    result = train(pyg.GCN(8, 8, num_layers=2, out_channels=8), link_parts(), SHORT)
    assert result.metric == "roc_auc"
    assert len(result.energy) == 2


def test_mistakes_say_what_to_do() -> None:
    parts = link_parts()
    with pytest.raises(ValueError, match="mae is for regression, but links are there or not"):
        train(link_model(), parts, SHORT.with_changes(metric="mae"))
    with pytest.raises(ValueError, match="'val_accuracy' is for classes"):
        train(link_model(), parts, SHORT.with_changes(select="val_accuracy"))
    lacking = parts[0].clone()
    del lacking.edge_label
    with pytest.raises(ValueError, match=r"has no edge_label; .*eamp.data.link_split\(data\)"):
        train(link_model(), (lacking, *parts[1:]), SHORT)
    single = parts[1].clone()
    single.edge_label = torch.ones_like(single.edge_label)
    with pytest.raises(ValueError, match=r"edge_label of the val part must .* but holds \[1.0\]"):
        train(link_model(), (parts[0], single, parts[2]), SHORT)
