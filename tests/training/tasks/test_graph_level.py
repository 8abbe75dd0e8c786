"""Labels of graphs: mini-batches against one graph at a time, orders of epochs, mistakes."""

import pytest
import torch
import torch.nn.functional as F
from torch.nn import Linear, Module
from torch_geometric import nn as pyg

import eamp
from eamp.nn import GCN, GraphLevel
from eamp.training import predict, train
from eamp.training.process import SingleProcess
from eamp.training.tasks import GraphTask
from training.tasks.problems import SHORT, graph_model, small_graphs


def started(batch_size: int = 8, seed: int = 0) -> GraphTask:
    rules = SHORT.with_changes(batch_size=batch_size)
    task = GraphTask(eamp.data.k_fold(small_graphs()), rules)
    task.start(graph_model(entropy={"weight": 1.0, "temperature": 1.0}), SingleProcess(), seed)
    return task


def test_a_batch_gives_the_loss_of_its_graphs_one_by_one() -> None:
    task = started(batch_size=100)
    (batch,) = task.batches(0)
    single = [
        F.cross_entropy(task.model(graph.x, graph.edge_index), graph.y)
        for graph in task.parts["train"]
    ]
    assert task.loss(batch).item() == pytest.approx(torch.stack(single).mean().item(), rel=1e-5)


def test_every_epoch_has_all_graphs_in_an_order_of_its_own() -> None:
    task, again, other = started(), started(), started(seed=1)
    first, same, second, third = (
        torch.cat([batch.y for batch in each.batches(epoch)])
        for each, epoch in ((task, 2), (again, 2), (task, 3), (other, 2))
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, second)
    assert not torch.equal(first, third)
    assert first.bincount().tolist() == second.bincount().tolist() == [16, 16]
    assert len(list(task.batches(0))) == 4


def test_the_order_of_batches_does_not_depend_on_other_random_numbers() -> None:
    task = started()
    torch.manual_seed(1)
    before, state = [b.y.tolist() for b in task.batches(0)], torch.get_rng_state()
    torch.manual_seed(2)
    assert [b.y.tolist() for b in task.batches(0)] == before
    torch.manual_seed(1)
    list(task.batches(0))
    assert torch.equal(torch.get_rng_state(), state)


class OwnModel(Module):
    """A model with bare layers of PyG."""

    def __init__(self) -> None:
        super().__init__()
        self.gnn, self.out = pyg.GCN(2, 8, num_layers=2), Linear(8, 2)

    def forward(
        self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor
    ) -> torch.Tensor:
        return self.out(pyg.global_mean_pool(self.gnn(x, edge_index), batch))


def test_a_model_of_pyg_is_trained_bare_and_wrapped() -> None:
    parts, histories = eamp.data.k_fold(small_graphs()), []
    for wrapped in (False, True):
        torch.manual_seed(0)
        model = OwnModel()
        result = train(eamp.wrap(model, weight=0.0) if wrapped else model, parts, SHORT)
        histories.append(result.history)
    assert [row.train_loss for row in histories[0]] == pytest.approx(
        [row.train_loss for row in histories[1]], rel=1e-4
    )


def test_graphs_without_a_class_count_nowhere() -> None:
    graphs = small_graphs()
    train_part, val, test = eamp.data.k_fold(graphs)
    lost = [graph.clone() for graph in train_part[:4]]
    for graph in lost:
        graph.y = torch.tensor([-1])
    rules = SHORT.with_changes(batch_size=100, epochs=1)
    losses = [
        train(graph_model(), parts, rules).history[0].train_loss
        for parts in ((train_part, val, test), ([*train_part, *lost], val, test))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_mistakes_say_what_to_do() -> None:
    parts = eamp.data.k_fold(small_graphs())
    with pytest.raises(ValueError, match=r"GCN has outputs for nodes, .*eamp.nn.GraphLevel\(model"):
        train(GCN(2, 8, 2, num_layers=2), parts, SHORT)
    with pytest.raises(ValueError, match=r"has 1 outputs, but y holds class 1; .*out_channels=2"):
        train(graph_model(1), parts, SHORT)
    with pytest.raises(ValueError, match="the train part has no graph"):
        train(graph_model(), ([], *parts[1:]), SHORT)
    for name in ("consistency", "pseudo_labels"):
        with pytest.raises(ValueError, match=f"{name} is for the nodes of one graph"):
            train(graph_model(), parts, SHORT.with_changes(**{name: {}}))
    bare = [graph.clone() for graph in parts[0]]
    bare[3].x = None
    with pytest.raises(ValueError, match=r"graph 3 of the train part has no x; .*Constant\(\)"):
        train(graph_model(), (bare, *parts[1:]), SHORT)
    bare[3].x, bare[3].edge_index = parts[0][3].x[:0], torch.zeros(2, 0).long()
    with pytest.raises(ValueError, match="graph 3 of the train part has no nodes; leave it out"):
        train(graph_model(), (bare, *parts[1:]), SHORT)
    bare[3] = parts[0][3].clone()
    bare[3].y = torch.tensor([0, 1])
    with pytest.raises(ValueError, match=r"must have shape \[1\], .*view\(1, -1\)"):
        train(graph_model(), (bare, *parts[1:]), SHORT)
    one_class = [graph for graph in parts[1] if int(graph.y) == 1]
    with pytest.raises(ValueError, match="all graphs of the val part are of class 1; choose anoth"):
        train(graph_model(), (parts[0], one_class, parts[2]), SHORT.with_changes(metric="roc_auc"))


class TwoProcesses(SingleProcess):
    size = 2


def test_several_processes_are_refused() -> None:
    with pytest.raises(ValueError, match="many graphs runs in one process, but there are 2"):
        train(graph_model(), eamp.data.k_fold(small_graphs()), SHORT, process=TwoProcesses())


@pytest.mark.parametrize(("kind", "outputs"), [("classes", 2), ("numbers", 1), ("labels", 2)])
def test_a_mini_batch_without_any_label_does_not_end_the_training(kind: str, outputs: int) -> None:
    parts = eamp.data.k_fold(small_graphs(kind))
    for graph in parts[0][4:]:
        graph.y = torch.full_like(graph.y, -1 if kind != "numbers" else torch.nan)
    result = train(graph_model(outputs), parts, SHORT.with_changes(batch_size=2))
    assert len(result.history) == SHORT.epochs
    assert not result.diverged
    expected = train(graph_model(outputs), (parts[0][:4], *parts[1:]), SHORT).history
    assert train(graph_model(outputs), parts, SHORT).history == expected
    for name, lost in (
        ("train", (parts[0][4:], *parts[1:])),
        ("val", (*parts[:1], parts[0][4:], [])),
    ):
        with pytest.raises(ValueError, match=f"the {name} part has no known label"):
            train(graph_model(outputs), lost, SHORT)


@pytest.mark.parametrize(("kind", "outputs"), [("classes", 2), ("numbers", 1), ("labels", 2)])
def test_there_may_be_no_test_graphs(kind: str, outputs: int) -> None:
    train_part, val, _ = eamp.data.k_fold(small_graphs(kind))
    model = graph_model(outputs)
    assert torch.tensor(train(model, (train_part, val, []), SHORT).test_metric).isnan()
    out, y = predict(model, (train_part, val, []))
    assert (len(out), len(y)) == (0, 0)


def test_graphs_may_have_other_attributes_that_differ() -> None:
    graphs = small_graphs()
    expected = train(graph_model(), eamp.data.k_fold(graphs), SHORT)
    for number, graph in enumerate(graphs[::3]):
        graph[f"name_{number}"] = torch.zeros(number)
    assert train(graph_model(), eamp.data.k_fold(graphs), SHORT) == expected
    graphs[0].edge_weight = torch.ones(graphs[0].num_edges)
    with pytest.raises(
        ValueError, match=r"part has 2 features, no edge_weight .* give all graphs the same"
    ):
        train(graph_model(), eamp.data.k_fold(graphs), SHORT)


def test_parts_may_be_slices_of_a_graph_set() -> None:
    graphs = eamp.data.load("wiener:graphs=30")
    parts = (graphs[:20], graphs[20:25], graphs[25:])
    torch.manual_seed(0)
    model = GraphLevel(GCN(4, 8, 1, num_layers=2))
    assert train(model, parts, SHORT.with_changes(epochs=1)).metric == "mae"
