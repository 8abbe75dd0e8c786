import pytest
import torch

import eamp
from eamp.nn import EGNN, G2, GCN, MODELS
from eamp.nn.models.drop_edge import DropEdge
from eamp.nn.models.traits import traits
from eamp.nn.step import threshold
from eamp.nn.step.threshold import collapse_threshold
from problems import random_graph

GRAPH = random_graph(40, 200)
X = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))


def test_evaluation_and_probability_0_see_every_edge() -> None:
    model = DropEdge(GCN(5, 8, 3, 2), drop_edge=0.5)
    expected = model.model(X, GRAPH)
    torch.testing.assert_close(model.eval()(X, GRAPH.edge_index), expected)
    torch.testing.assert_close(DropEdge(model.model, 0.0).train()(X, GRAPH), expected)


def test_training_sees_a_random_part_of_the_edges_in_both_directions() -> None:
    model = DropEdge(GCN(5, 8, 3, 2), drop_edge=0.4)
    edges = {tuple(pair) for pair in GRAPH.edge_index.t().tolist()}
    torch.manual_seed(0)
    parts = [model.dropped(GRAPH) for _ in range(20)]
    for part in parts:
        left = {tuple(pair) for pair in part.edge_index.t().tolist()}
        assert left <= edges
        assert left == {(j, i) for i, j in left}
    shares = torch.tensor([part.num_edges / GRAPH.num_edges for part in parts])
    assert abs(shares.mean() - 0.6) < 0.05
    assert shares.unique().numel() > 1
    torch.manual_seed(0)
    torch.testing.assert_close(model.train()(X, GRAPH), model.model(X, parts[0]))


@pytest.mark.parametrize("schedule", ["gain", "hops"])
def test_the_threshold_is_that_of_all_edges_and_estimated_once(
    monkeypatch: pytest.MonkeyPatch, schedule: str
) -> None:
    estimated: list[eamp.Graph] = []
    estimate = threshold.estimate
    monkeypatch.setattr(threshold, "estimate", lambda g: estimated.append(g) or estimate(g))
    whole, entropy = random_graph(40, 200), {"weight": {"schedule": schedule, "of": 1.2}}
    model = DropEdge(GCN(5, 8, 3, 2, entropy=entropy), drop_edge=0.4)
    for _ in range(3):
        model(X, whole).sum().backward()
    assert estimated == [whole]
    part = model.dropped(whole)
    assert torch.equal(threshold.layer_threshold(8, part, False), collapse_threshold(whole, 8))


def test_graphs_of_a_batch_lose_edges_and_keep_their_thresholds() -> None:
    whole = eamp.Graph(GRAPH, batch=torch.zeros(40, dtype=torch.long))
    edges = torch.cat([GRAPH.edge_index, GRAPH.edge_index + 40], 1)
    both = eamp.Graph(edges, 80, batch=torch.arange(2).repeat_interleave(40))
    part = DropEdge(GCN(5, 8, 3, 2), drop_edge=0.4).dropped(both)
    assert part.num_graphs == 2
    assert torch.equal(part.batch, both.batch)
    assert part.num_edges < both.num_edges
    found = threshold.layer_threshold(8, part, False)
    torch.testing.assert_close(found, collapse_threshold(whole, 8).expand(2))


def test_the_loss_and_the_layers_of_the_model_inside_count() -> None:
    torch.manual_seed(0)
    penalised = EGNN(5, 8, 3, num_layers=2, shift=0.0)
    for conv in penalised.convs:
        torch.nn.init.zeros_(conv.weight)
    dropping = traits(DropEdge(penalised)).auxiliary_loss
    assert dropping is not None
    assert dropping() == penalised.auxiliary_loss() > 0
    assert traits(DropEdge(GCN(5, 8, 3, num_layers=2))).auxiliary_loss is None
    inside = traits(G2(5, 8, 3, num_layers=2)).probed_layers
    names = [inside] if isinstance(inside, str) else inside
    assert traits(DropEdge(G2(5, 8, 3, num_layers=2))).probed_layers == [
        f"model.{name}" for name in names or ()
    ]


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match=r"in \[0, 1\), but is 1"):
        MODELS["dropedge-gcn"](5, 8, 3, 2, drop_edge=1.0)
    weighted = random_graph(40, 200, weighted=True)
    with pytest.raises(ValueError, match="without edge weights"):
        DropEdge(GCN(5, 8, 3, 2))(X, eamp.Graph(weighted))
