"""Consistency between passes and pseudo-labels: equations, randomness, models of any origin."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module
from torch_geometric import nn as pyg

import eamp
from eamp.nn import GCN, NoisyNodes
from eamp.nn.models import MODELS
from eamp.training import PROTOCOLS, train
from eamp.training.objectives import (
    Consistency,
    PseudoLabels,
    consistency_loss,
    pseudo_label_loss,
)
from eamp.training.tasks import node_level
from training.problem import SHORT, graph, network

SIZES = (graph().num_features, 8, graph().num_classes)
CONSISTENT = SHORT.with_changes(consistency={"passes": 2, "weight": 2.0})
LOGITS = torch.tensor([[[2.0, 0.0], [0.0, 0.1]], [[1.0, 0.5], [0.3, 0.0]]], dtype=torch.float64)


def loss_of(options: dict[str, Any], logits: Tensor = LOGITS, epoch: int = 0) -> Tensor:
    """The loss of given logits, pass by pass, whose cross-entropy is replaced by their sum."""
    passes = iter(logits)
    two_nodes = eamp.Graph(torch.tensor([[0, 1], [1, 0]]))
    return consistency_loss(
        Consistency(passes=len(logits), **options),
        lambda x: next(passes),
        torch.ones(2, 3),
        two_nodes,
        lambda given: given.sum(),
        epoch,
    )


def test_the_equation_by_hand() -> None:
    p = [[1 / (1 + math.exp(-2.0)), 1 / (1 + math.exp(0.1))]]
    p += [[1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(-0.3))]]  # of the first class
    spread = 0.0
    for node in (0, 1):
        mean = (p[0][node] + p[1][node]) / 2
        sharp = mean**4 / (mean**4 + (1 - mean) ** 4)  # T = 1/4
        spread += sum(2 * (p[s][node] - sharp) ** 2 for s in (0, 1)) / 4  # 2 passes, 2 nodes
    expected = (2.1 + 1.8) / 2 + 0.7 * spread
    found = loss_of({"weight": 0.7, "temperature": 0.25})
    assert float(found) == pytest.approx(expected)


def test_only_confident_nodes_count() -> None:
    # The mean of the first node is about .75, that of the second below .53.
    both, first = (loss_of({"confidence": tau}) for tau in (0.0, 0.6))
    alone = loss_of({}, LOGITS[:, :1].repeat(1, 2, 1))  # the first node twice
    plain = LOGITS.sum((1, 2)).mean()
    assert float(first) < float(both)
    assert float(first - plain) == pytest.approx(float(alone - 2 * LOGITS[:, 0].sum(1).mean()) / 2)
    assert float(loss_of({"confidence": 1.0})) == pytest.approx(float(plain))


def test_the_weight_grows_over_the_first_epochs() -> None:
    plain = float(LOGITS.sum((1, 2)).mean())
    spread = float(loss_of({"weight": 1.0})) - plain
    found = [float(loss_of({"weight": 2.0, "warmup": 4}, epoch=epoch)) for epoch in (0, 1, 4, 9)]
    assert found == pytest.approx(
        [plain, plain + spread / 2, plain + 2 * spread, plain + 2 * spread]
    )


def test_training_hands_over_the_number_of_its_epoch() -> None:
    late = SHORT.with_changes(consistency={"passes": 2, "weight": 2.0, "warmup": SHORT.epochs - 1})
    none = SHORT.with_changes(consistency={"passes": 2, "weight": 0.0})
    histories = [train(network(), graph(), rules).history for rules in (late, none)]
    # The weight of the first epoch is 0, that of the second is not.
    assert histories[0][0] == histories[1][0]
    assert histories[0][1].train_loss != histories[1][1].train_loss


def test_the_target_has_no_derivative() -> None:
    logits = LOGITS.clone().requires_grad_()
    loss_of({"temperature": 0.5}, logits).backward()
    p = LOGITS.softmax(2)
    mean = p.mean(0)
    target = mean**2 / (mean**2).sum(1, keepdim=True)
    again = LOGITS.clone().requires_grad_()
    (again.sum((1, 2)).mean() + (again.softmax(2) - target).square().sum() / 4).backward()
    torch.testing.assert_close(logits.grad, again.grad)


def test_a_target_may_be_certain() -> None:
    certain = torch.tensor([[[200.0, 0.0, -300.0]] * 2] * 2, requires_grad=True)
    loss = loss_of({"temperature": 0.01}, certain)
    loss.backward()
    assert loss.isfinite()
    assert certain.grad is not None
    assert certain.grad.isfinite().all()


def test_every_pass_drops_other_rows() -> None:
    torch.manual_seed(0)
    seen: list[Tensor] = []

    def run(x: Tensor) -> Tensor:
        seen.append(x)
        return x[:, :2]

    data = graph()
    given = (run, torch.ones(80, 3), eamp.Graph(data.edge_index, 80), lambda x: x.sum(), 0)
    consistency_loss(Consistency(passes=3, drop_rows=0.4), *given)
    assert len(seen) == 3
    masks = [x[:, 0] != 0 for x in seen]
    for x, mask in zip(seen, masks, strict=True):
        assert torch.equal(x, mask.float().unsqueeze(1).expand(80, 3) / (1 - 0.4))
        assert 0.4 < float(mask.float().mean()) < 0.8
    assert not torch.equal(masks[0], masks[1])


def test_one_pass_of_weight_0_without_dropped_rows_is_the_plain_training() -> None:
    plain = SHORT.with_changes(consistency={"passes": 1, "weight": 0, "drop_rows": 0})
    assert train(network(), graph(), plain).history == train(network(), graph(), SHORT).history
    # Without dropout, too, where the plain training saves a pass.
    found = [train(network(dropout=0.0), graph(), rules).history for rules in (plain, SHORT)]
    assert found[0] == found[1]


def test_training_uses_it_and_the_metric_pass_stays() -> None:
    data, model = graph(), network()
    result = train(model, data, CONSISTENT)
    assert result.history != train(network(), data, SHORT).history
    logits = model.eval()(data.x, data.edge_index).detach()
    mask = data.val_mask
    chosen = result.history[result.epoch]
    assert chosen.val_loss == pytest.approx(float(F.cross_entropy(logits[mask], data.y[mask])))


def test_training_learns() -> None:
    rules = CONSISTENT.with_changes(epochs=60, learning_rate=0.05)
    history = train(network(dropout=0.0), graph(), rules).history
    assert history[-1].train_loss < 0.9 * history[0].train_loss


def noisy() -> Module:
    inner = GCN(SIZES[0], 8, SIZES[2] + SIZES[0], num_layers=2)
    return NoisyNodes(inner, SIZES[2], weight=5.0)


@pytest.mark.parametrize(
    "made",
    [
        lambda: pyg.GCN(SIZES[0], 8, 2, SIZES[2]),
        lambda: eamp.wrap(pyg.GAT(SIZES[0], 8, 2, SIZES[2]), weight=0.5),
        lambda: MODELS["random-propagation"](*SIZES, 3, drop_rows=0.0),
        lambda: MODELS["ggcm"](*SIZES, 3),
        noisy,
    ],
    ids=["pyg", "wrapped", "random propagation", "ggcm", "auxiliary loss"],
)
def test_any_model_can_be_trained_so(made: Any) -> None:
    def trained(rules: Any) -> list[Any]:
        torch.manual_seed(0)
        return train(made(), graph(), rules).history

    history = trained(CONSISTENT)
    assert history == trained(CONSISTENT)
    assert all(math.isfinite(row.train_loss) for row in history)
    assert history != trained(SHORT)


def test_sparse_features_lose_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    data = graph().clone()
    data.x = (torch.rand(80, 60, generator=torch.Generator().manual_seed(0)) < 0.04).float()

    def trained() -> list[float]:
        torch.manual_seed(0)
        model = GCN(60, 8, SIZES[2], num_layers=2)
        return [row.train_loss for row in train(model, data, CONSISTENT).history]

    sparse = trained()
    assert node_level.sparse_features(data.x).layout == torch.sparse_csr
    monkeypatch.setattr(node_level, "sparse_features", lambda x: x)
    assert trained() == pytest.approx(sparse, rel=1e-4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"passes": 0}, "passes of consistency must be a whole number >= 1, but is 0"),
        ({"weight": -1}, "weight of consistency must be a number of at least 0, but is -1"),
        ({"weight": "big"}, "weight of consistency must be a number of at least 0, but is 'big'"),
        ({"temperature": 0}, "temperature above 0 .* temperature=0"),
        ({"drop_rows": 1.0}, "drop_rows below 1, .* drop_rows=1.0"),
        ({"drop_rows": 2}, "drop_rows of consistency must be a number between 0 and 1, but is 2"),
        ({"confidence": -0.5}, "confidence of consistency must be a number between 0 and 1"),
        ({"lam": 1}, "consistency has no lam; it has passes, weight, temperature, drop_rows"),
        (4, r"consistency must be a mapping, as in \{.*\}, but is 4"),
    ],
)
def test_wrong_options_are_told(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PROTOCOLS["standard"].with_changes(consistency=given)


PSEUDO = torch.tensor([[3.0, 0.0], [0.2, 0.0], [0.0, 2.0], [4.0, 0.0]], dtype=torch.float64)
LABELLED = torch.tensor([False, False, False, True])
FOUR = eamp.Graph(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]))


def test_confident_nodes_without_a_label_learn_their_likeliest_class() -> None:
    logits = PSEUDO.clone().requires_grad_()
    options = PseudoLabels(weight=2.0, confidence=0.8, warmup=4)
    loss = pseudo_label_loss(options, logits, LABELLED, FOUR, epoch=1)
    # Node 1 is not confident, and node 3 is a training node; the weight is a quarter of 2.
    expected = 0.5 * (math.log(1 + math.exp(-3)) + math.log(1 + math.exp(-2))) / 4
    assert float(loss.detach()) == pytest.approx(expected)
    loss.backward()
    assert logits.grad is not None
    assert (logits.grad != 0).any(1).tolist() == [True, False, True, False]
    assert (logits.grad[0] * torch.tensor([1, -1]) < 0).all()  # a step down raises the likeliest


def test_without_a_confident_node_pseudo_labels_add_nothing() -> None:
    options = PseudoLabels(confidence=0.999, warmup=0)
    assert float(pseudo_label_loss(options, PSEUDO, LABELLED, FOUR, epoch=0)) == 0


def test_training_uses_pseudo_labels_once_their_weight_has_grown() -> None:
    options = {"weight": 2.0, "confidence": 0.3, "warmup": SHORT.epochs - 1}
    changes = {"pseudo_labels": options}
    for rules in (SHORT, CONSISTENT):  # in every pass of consistency, too
        plain = train(network(), graph(), rules).history
        found = train(network(), graph(), rules.with_changes(**changes)).history
        assert found[0] == plain[0]  # the weight is 0 in the first epoch
        assert found[1].train_loss != plain[1].train_loss


def test_no_label_outside_the_training_set_is_read() -> None:
    rules = SHORT.with_changes(pseudo_labels={"confidence": 0.3, "warmup": 0})
    data = graph()
    data.y = torch.where(data.test_mask, (data.y + 1) % SIZES[2], data.y)
    losses = [
        [row.train_loss for row in train(network(), d, rules).history] for d in (data, graph())
    ]
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weight": -1}, "weight of pseudo_labels must be a number of at least 0, but is -1"),
        ({"confidence": 2}, "confidence of pseudo_labels must be a number between 0 and 1"),
        ({"warmup": -1}, "warmup of pseudo_labels must be a whole number >= 0, but is -1"),
        ({"passes": 1}, "pseudo_labels has no passes; it has weight, confidence, warmup"),
        (4, r'pseudo_labels must be a mapping, as in \{"weight": 1.0, .*\}, but is 4'),
    ],
)
def test_wrong_options_of_pseudo_labels_are_told(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PROTOCOLS["standard"].with_changes(pseudo_labels=given)
