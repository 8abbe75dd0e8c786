"""Energies and propagation from sampled neighbours are exact on average, with exact derivatives."""

import copy
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GraphSAGE

import eamp
from eamp.nn.conv.gcn_conv import gcn_propagate
from eamp.scale import sampled_graph
from problems import irregular_graph, problems, random_graph
from python_sampler import give_sampler

# A sample is two neighbours of each node. One, two, three and five neighbours have 1, 1, 3 and 10
# pairs, so 30 batches hold every pair equally often.
FANOUT, ROUNDS = 2, 30


def all_samples(graph: eamp.Graph, x: Tensor) -> Iterator[Data]:
    """Yield batches of all nodes that together hold every possible sample equally often."""
    neighbour, centre = graph.edge_index.flip(0)
    choices = []
    for node in range(graph.num_nodes):
        entries = (centre == node).nonzero().squeeze(1).tolist()
        choices.append(list(itertools.combinations(entries, min(FANOUT, len(entries)))))
        assert ROUNDS % len(choices[-1]) == 0
    for number in range(ROUNDS):
        chosen = torch.tensor(
            [entry for choice in choices for entry in choice[number % len(choice)]]
        )
        batch = Data(
            x=x,
            n_id=torch.arange(graph.num_nodes),
            edge_index=torch.stack([neighbour[chosen], centre[chosen]]),
        )
        if graph.edge_weight is not None:
            batch.edge_weight = graph.edge_weight[chosen]
        yield batch


def sample(graph: eamp.Graph, x: Tensor, fanout: int, hops: int, seeds: Tensor) -> Data:
    """Return a batch as ``NeighborLoader`` draws it: neighbours of the seeds, then of those."""
    edge_index, reached, new = graph.edge_index, seeds.tolist(), seeds.tolist()
    chosen: list[int] = []
    for _ in range(hops):
        found: list[int] = []
        for node in new:
            entries = (edge_index[0] == node).nonzero().squeeze(1)
            kept = entries[torch.randperm(entries.numel())[:fanout]]
            chosen += kept.tolist()
            found += [
                int(j) for j in edge_index[1][kept] if int(j) not in reached and int(j) not in found
            ]
        reached, new = reached + found, found
    place = torch.full((graph.num_nodes,), -1)
    place[reached] = torch.arange(len(reached))
    batch = Data(
        x=x[reached],
        n_id=torch.tensor(reached),
        edge_index=place[edge_index[:, chosen].flip(0)],
        batch_size=seeds.numel(),
    )
    if graph.edge_weight is not None:
        batch.edge_weight = graph.edge_weight[chosen]
    return batch


def weighted() -> eamp.Graph:
    graph = irregular_graph()
    row, col = graph.edge_index
    return eamp.Graph(graph.edge_index, 10, edge_weight=1.0 + (row + col) % 3 + (row * col) % 2)


@pytest.mark.parametrize("graph", [irregular_graph(), weighted()], ids=["plain", "weighted"])
def test_the_mean_over_all_samples_is_exact(graph: eamp.Graph) -> None:
    x = torch.randn(10, 3, dtype=torch.float64)
    samples = [(batch.x, sampled_graph(batch, graph)) for batch in all_samples(graph, x)]
    for function in (eamp.dirichlet_energy, gcn_propagate):
        mean = torch.stack([function(x, sampled) for x, sampled in samples]).mean(0)
        torch.testing.assert_close(mean, function(x, graph), rtol=1e-12, atol=1e-12)
    assert any(
        (eamp.dirichlet_energy(x, sampled) - eamp.dirichlet_energy(x, graph)).abs().max() > 0.1
        for x, sampled in samples
    )


@given(problem=problems(min_nodes=2), seed=st.integers(0, 2**31))
def test_with_all_neighbours_it_is_the_graph_itself(
    problem: tuple[Tensor, eamp.Graph], seed: int
) -> None:
    torch.manual_seed(seed)
    x, graph = problem
    batch = sample(graph, x, fanout=99, hops=99, seeds=torch.randperm(graph.num_nodes)[:3])
    sampled = sampled_graph(batch, graph)
    assert torch.equal(sampled.degree, graph.degree[batch.n_id])
    for function in (eamp.dirichlet_energy, eamp.entropy_gradient, gcn_propagate):
        torch.testing.assert_close(
            function(batch.x, sampled), function(x, graph)[batch.n_id], rtol=1e-12, atol=1e-12
        )


def test_an_energy_from_its_definition() -> None:
    graph = irregular_graph()
    x = torch.randn(10, 3, dtype=torch.float64)
    nodes, sampled = torch.tensor([6, 0, 5, 8]), torch.tensor([[2, 3, 2], [0, 0, 1]])
    batch = Data(x=x[nodes], n_id=nodes, edge_index=sampled)
    found = eamp.dirichlet_energy(batch.x, sampled_graph(batch, graph))
    # Of 3 neighbours of node 6, nodes 5 and 8 were sampled; of 5 neighbours of node 0, node 5 was.
    six = (
        3 / 2 * ((x[6] - x[5]).square().sum() + (x[6] - x[8]).square().sum()) / math.sqrt(3 * 3) / 2
    )
    zero = 5 / 1 * (x[0] - x[5]).square().sum() / math.sqrt(5 * 3) / 2
    torch.testing.assert_close(
        found, torch.stack([six, zero, torch.zeros_like(six), torch.zeros_like(six)])
    )


def test_derivatives_are_those_of_the_estimate() -> None:
    torch.manual_seed(1)
    graph = weighted()
    batch = sample(
        graph, torch.randn(10, 2, dtype=torch.float64), fanout=2, hops=2, seeds=torch.tensor([0, 6])
    )
    sampled = sampled_graph(batch, graph)
    layer = eamp.EntropyAware(eamp.nn.GCNConv(2, 2), 1.0, 1.0, detach=False).double()
    x = batch.x.requires_grad_()
    for function in (
        eamp.dirichlet_energy,
        eamp.entropy_gradient,
        gcn_propagate,
        lambda x, graph: layer(x, graph),
    ):
        assert torch.autograd.gradcheck(lambda x, f=function: f(x, sampled), x)


def test_models_train_on_samples() -> None:
    graph, x = random_graph(60, 200), torch.randn(60, 8)
    batch = sample(graph, x, fanout=3, hops=3, seeds=torch.arange(5))
    sampled = sampled_graph(batch, graph)
    for model in (
        eamp.nn.GCN(8, 8, 3, num_layers=2, entropy={"weight": 1.0, "temperature": 1.0}),
        eamp.nn.DeepGCN(
            8,
            8,
            3,
            num_layers=2,
            entropy={"weight": {"schedule": "gain", "of": 0.3}, "energy": "propagation"},
        ),
        eamp.nn.PairNormGCN(
            8,
            8,
            3,
            num_layers=2,
            entropy={"weight": {"schedule": "feedback", "lowest": 0.0, "highest": 2.0}},
        ),
        eamp.nn.MODELS["graphsage"](8, 8, 3, 1, entropy={"weight": 1.0}),
    ):
        out = model(batch.x, sampled)[: batch.batch_size]
        assert out.shape == (5, 3)
        out.sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())


def test_layers_of_pyg_get_the_sampled_edges() -> None:
    graph, x = random_graph(60, 200), torch.randn(60, 8)
    batch = sample(graph, x, fanout=3, hops=2, seeds=torch.arange(5))
    sampled = sampled_graph(batch, graph)
    bare = GraphSAGE(8, 8, num_layers=2)
    wrapped = eamp.wrap(copy.deepcopy(bare), weight=0.0)
    assert torch.equal(wrapped(batch.x, sampled), bare(batch.x, batch.edge_index))
    assert (
        repr(sampled) == f"SampledGraph(num_nodes={batch.num_nodes}, num_edges={batch.num_edges})"
    )
    assert sampled.to("cpu") is sampled
    with pytest.raises(eamp.GraphError, match="stays on cpu"):
        sampled.to("meta")


def test_self_loops_are_no_neighbours() -> None:
    graph, x = irregular_graph(), torch.randn(10, 3)
    batch = Data(x=x, n_id=torch.arange(10), edge_index=torch.tensor([[0, 1, 9], [0, 0, 9]]))
    without = Data(x=x, n_id=torch.arange(10), edge_index=torch.tensor([[1], [0]]))
    for function in (eamp.dirichlet_energy, gcn_propagate):
        assert torch.equal(
            function(x, sampled_graph(batch, graph)), function(x, sampled_graph(without, graph))
        )


def test_options_that_need_all_neighbours_are_refused() -> None:
    graph, x = random_graph(60, 200), torch.randn(60, 8)
    batch = sample(graph, x, fanout=3, hops=1, seeds=torch.arange(5))
    sampled = sampled_graph(batch, graph)
    with pytest.raises(eamp.GraphError, match="spread over several processes or sampled"):
        eamp.EntropyAware(eamp.nn.GCNConv(8, 8), normalize=True)(batch.x, sampled)


def test_a_gain_is_that_of_the_whole_graph() -> None:
    graph, x = random_graph(60, 200), torch.randn(60, 8)
    batch = sample(graph, x, fanout=3, hops=1, seeds=torch.arange(5))
    sampled, conv = sampled_graph(batch, graph), eamp.nn.GCNConv(8, 8)
    weight = float(1.3 * eamp.nn.collapse_threshold(graph, 8))
    expected = eamp.EntropyAware(conv, weight=weight)(batch.x, sampled)
    assert not torch.equal(expected, conv(batch.x, sampled))
    by_gain = eamp.EntropyAware(conv, weight=eamp.nn.Gain(1.3))(batch.x, sampled)
    torch.testing.assert_close(by_gain, expected)


@pytest.mark.parametrize(
    ("changes", "graph", "complaint"),
    [
        ({"n_id": None}, irregular_graph(), "needs edge_index and n_id"),
        ({}, weighted(), "the whole graph has edge weights and the batch has none"),
        (
            {"edge_weight": torch.ones(1)},
            irregular_graph(),
            "the batch has edge weights and the whole graph has none",
        ),
        ({"n_id": torch.tensor([9, 0])}, irregular_graph(), "neighbours of node 9"),
        (
            {},
            eamp.Graph(torch.empty(2, 0, dtype=torch.long), 2, batch=torch.tensor([0, 1])),
            "batch of graphs",
        ),
    ],
)
def test_batches_that_do_not_fit_the_graph(
    changes: dict[str, Any], graph: eamp.Graph, complaint: str
) -> None:
    given = {
        "x": torch.randn(2, 3),
        "n_id": torch.tensor([0, 1]),
        "edge_index": torch.tensor([[1], [0]]),
        **changes,
    }
    with pytest.raises(eamp.GraphError, match=complaint):
        sampled_graph(Data(**given), graph)


@pytest.fixture
def _sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    give_sampler(monkeypatch)


@pytest.mark.usefixtures("_sampler")
@pytest.mark.parametrize("with_weights", [False, True])
def test_neighbor_loader(with_weights: bool) -> None:
    graph = random_graph(60, 200, weighted=with_weights)
    edges = {"edge_index": graph.edge_index, "edge_weight": graph.edge_weight}
    data = Data(x=torch.randn(60, 8), num_nodes=60, **edges)
    exact = eamp.dirichlet_energy(data.x, graph)
    for batch in NeighborLoader(data, num_neighbors=[-1, 2], batch_size=20):
        seeds = slice(batch.batch_size)
        torch.testing.assert_close(
            eamp.dirichlet_energy(batch.x, sampled_graph(batch, graph))[seeds],
            exact[batch.n_id[seeds]],
        )
    loader = NeighborLoader(data, num_neighbors=[3], batch_size=60)
    batches = (batch for _ in range(150) for batch in loader)
    energies = torch.stack(
        [eamp.dirichlet_energy(batch.x, sampled_graph(batch, graph))[:60] for batch in batches]
    )
    deviation = energies.std(0) / math.sqrt(energies.size(0))
    assert ((energies.mean(0) - exact).abs() <= 5 * deviation + 1e-5).all()
