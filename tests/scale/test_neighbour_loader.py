"""Samples are uniform, deterministic, complete where all neighbours are asked for, and usable."""

import gc
import itertools
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GraphSAGE
from torch_geometric.utils import k_hop_subgraph

import eamp
from eamp.graph import GraphError
from eamp.scale import NeighbourLoader
from eamp.scale.sampling_kernels import draw_below, insert, sample
from problems import irregular_graph, random_graph, undirected


def data_of(graph: eamp.Graph, width: int = 3, **more: Any) -> Data:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(graph.num_nodes, width, generator=generator, dtype=torch.float64)
    number = torch.arange(graph.num_nodes)
    return Data(x=x, edge_index=graph.edge_index, y=number, **more)


@pytest.mark.parametrize(("degree", "size"), [(2, 1), (4, 2), (5, 3), (6, 5)])
def test_every_subset_comes_from_equally_many_draws(degree: int, size: int) -> None:
    """All sequences of numbers that can be drawn give every subset equally often."""
    found: Counter[frozenset[int]] = Counter()
    lasts = range(degree - size, degree)
    for draws in itertools.product(*(range(last + 1) for last in lasts)):
        chosen = np.full(size, -1)
        for count, (drawn, last) in enumerate(zip(draws, lasts, strict=True)):
            insert(chosen, count, drawn, last)
        assert len(set(chosen)) == size
        found[frozenset(chosen.tolist())] += 1
    subsets = [frozenset(each) for each in itertools.combinations(range(degree), size)]
    assert set(found) == set(subsets)
    assert len(set(found.values())) == 1


def test_the_generator_is_splitmix64() -> None:
    """The first outputs for the state 1234567, as published with the generator."""
    state = np.array([1234567], np.uint64)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    bound = 2**40
    for output in published:
        assert draw_below(state, bound) == int((output >> 11) / 2**53 * bound)


def test_all_numbers_are_drawn_equally_often() -> None:
    state = np.array([5], np.uint64)
    counts = Counter(int(draw_below(state, 7)) for _ in range(70_000))
    assert set(counts) == set(range(7))
    assert max(abs(count - 10_000) for count in counts.values()) < 500  # five deviations


@given(
    nodes=st.integers(1, 30), edges=st.integers(0, 60), hops=st.integers(1, 4), seed=st.integers(0)
)
def test_all_neighbours_are_the_whole_neighbourhood(
    nodes: int, edges: int, hops: int, seed: int
) -> None:
    """Also of directed graphs, with self-loops and repeated edges."""
    generator = torch.Generator().manual_seed(seed % 2**31)
    edge_index = torch.randint(nodes, (2, edges), generator=generator)
    data = Data(x=torch.arange(nodes).double().unsqueeze(1), edge_index=edge_index, num_nodes=nodes)
    loader = NeighbourLoader(data, [-1] * hops, batch_size=3, shuffle=True, seed=seed)
    seen = []
    for batch in loader:
        seeds = batch.n_id[: batch.batch_size]
        seen += seeds.tolist()
        expected, _, _, _ = k_hop_subgraph(seeds, hops, edge_index, num_nodes=nodes)
        assert set(batch.n_id.tolist()) == set(expected.tolist())
        inner, _, _, _ = k_hop_subgraph(seeds, hops - 1, edge_index, num_nodes=nodes)
        wanted = torch.isin(edge_index[1], inner).nonzero().squeeze(1)
        assert sorted(batch.e_id.tolist()) == wanted.tolist()
        assert torch.equal(batch.n_id[batch.edge_index], edge_index[:, batch.e_id])
        assert torch.equal(batch.x, data.x[batch.n_id])
        assert sum(batch.num_sampled_nodes) == batch.num_nodes
        assert sum(batch.num_sampled_edges) == batch.num_edges
        assert len(batch.num_sampled_edges) == hops
    assert sorted(seen) == list(range(nodes))


@given(seed=st.integers(0, 2**40), fanout=st.integers(0, 4))
def test_a_node_has_as_many_neighbours_as_asked_for(seed: int, fanout: int) -> None:
    graph = random_graph(40, 160)
    loader = NeighbourLoader(data_of(graph), [fanout, fanout], batch_size=9, seed=seed)
    degree = graph.degree.long()
    for batch in loader:
        assert batch.e_id.unique().numel() == batch.e_id.numel()
        inner = sum(batch.num_sampled_nodes[:2])
        sampled = batch.edge_index[1].bincount(minlength=batch.num_nodes)
        assert torch.equal(sampled[:inner], degree[batch.n_id[:inner]].clamp(max=fanout))
        assert not sampled[inner:].any()


def test_energies_are_exact_on_average() -> None:
    """A mean over 3000 samples, each of two neighbours of every node."""
    graph = irregular_graph()
    data = data_of(graph)
    total, rounds = torch.zeros(10, dtype=torch.float64), 3000
    loader = NeighbourLoader(data, [2], batch_size=10)
    for _ in range(rounds):
        (batch,) = loader
        assert torch.equal(batch.n_id, torch.arange(10))
        total += eamp.dirichlet_energy(batch.x, batch.graph)
    exact = eamp.dirichlet_energy(data.x, graph)
    torch.testing.assert_close(total / rounds, exact, rtol=0.05, atol=1e-12)


def test_epochs_differ_and_repeat_with_their_seed() -> None:
    data = data_of(random_graph(50, 300))
    options: dict[str, Any] = {"batch_size": 20, "shuffle": True}
    loader = NeighbourLoader(data, [2, 2], seed=7, **options)
    epochs = [[batch.e_id.tolist() for batch in loader] for _ in range(2)]
    assert epochs[0] != epochs[1]
    torch.manual_seed(1)  # is not used
    again = NeighbourLoader(data, [2, 2], seed=7, **options)
    assert epochs == [[batch.e_id.tolist() for batch in again] for _ in range(2)]
    other = NeighbourLoader(data, [2, 2], seed=8, **options)
    assert epochs[0] != [batch.e_id.tolist() for batch in other]
    again.epoch = 1
    assert epochs[1] == [batch.e_id.tolist() for batch in again]


def test_attributes_of_nodes_and_edges_come_along() -> None:
    graph = irregular_graph()
    row, col = graph.edge_index
    data = data_of(graph, train_mask=torch.arange(10) < 4, edge_attr=row * 10 + col)
    data.edge_weight = 1.0 + row + col
    loader = NeighbourLoader(data, [2, 1], batch_size=3, input_nodes=data.train_mask)
    assert len(loader) == 2
    for batch in loader:
        source, target = batch.n_id[batch.edge_index]
        assert torch.equal(batch.edge_attr, source * 10 + target)
        assert torch.equal(batch.edge_weight, 1.0 + source + target)
        assert torch.equal(batch.y, batch.n_id)
        assert torch.equal(batch.train_mask, batch.n_id < 4)
        assert batch.train_mask[: batch.batch_size].all()
    assert "num_neighbors=[2, 1]" in repr(loader)
    assert len(NeighbourLoader(data, [2], batch_size=3, drop_last=True)) == 3
    assert len(list(NeighbourLoader(data, [2], batch_size=3, drop_last=True))) == 3


@pytest.mark.parametrize("name", ["directed", "self-loops", "repeated edges"])
def test_an_edge_list_without_energies_has_no_graph(name: str) -> None:
    extra = {"directed": (0, 2), "self-loops": (1, 1), "repeated edges": (0, 1)}[name]
    pairs = undirected((0, 1), (1, 2))
    ends = torch.tensor([extra, extra[::-1]] if name == "repeated edges" else [extra]).t()
    data = Data(x=torch.randn(3, 2), edge_index=torch.cat([pairs, ends], 1))
    (batch,) = NeighbourLoader(data, [-1], batch_size=3)
    assert "graph" not in batch
    assert batch.num_edges == data.num_edges
    (batch,) = NeighbourLoader(Data(x=data.x, edge_index=pairs), [-1], batch_size=3)
    assert batch.graph.num_edges == 4
    (batch,) = NeighbourLoader(data, [-1], batch_size=3, with_graph=False)
    assert "graph" not in batch


def test_isolated_nodes_and_graphs_without_edges() -> None:
    data = Data(x=torch.randn(4, 2), edge_index=torch.empty(2, 0, dtype=torch.long))
    for batch in NeighbourLoader(data, [3, -1], batch_size=2):
        assert (batch.num_nodes, batch.num_edges) == (2, 0)
        assert not eamp.dirichlet_energy(batch.x, batch.graph).any()
    assert list(NeighbourLoader(data, [1], input_nodes=torch.zeros(4, dtype=torch.bool))) == []


@pytest.mark.parametrize("wrapped", [False, True])
def test_models_of_pyg_train_on_the_batches(wrapped: bool) -> None:
    data = data_of(random_graph(60, 200), width=8)
    data.x, data.y = data.x.float(), data.y % 3
    model = GraphSAGE(8, 16, num_layers=2, out_channels=3)
    if wrapped:
        eamp.wrap(model, weight=1.0, temperature=1.0, skip="last")
    for batch in NeighbourLoader(data, [5, 5, 5], batch_size=20):
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size]).backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


def test_with_all_neighbours_a_wrapped_model_is_exact() -> None:
    graph = random_graph(30, 80)
    data = data_of(graph, width=4)
    torch.manual_seed(0)
    model = eamp.wrap(GCN(4, 8, num_layers=1), weight=2.0, temperature=1.0).double()
    whole = model(data.x, data.edge_index)
    # The convolution, the energies of its output, and those of neighbours: three hops. PyG's layer
    # reads the degree of the outermost nodes, so one more.
    for batch in NeighbourLoader(data, [-1] * 4, batch_size=7, shuffle=True):
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        torch.testing.assert_close(out, whole[batch.n_id[: batch.batch_size]])


def test_a_batch_is_freed_with_its_graph() -> None:
    loader = NeighbourLoader(data_of(random_graph(30, 80)), [2], batch_size=30)
    (batch,) = loader
    alive = weakref.ref(batch.graph)
    del batch
    gc.collect()
    assert alive() is None


def test_the_kernel_stops_at_the_nodes_that_it_knows() -> None:
    source = np.array([1, 0])
    incoming = (np.array([0, 1, 2]), np.array([0, 1]))
    nodes, picked, place, hops = sample(*incoming, source, np.array([0]), [1, 1, 1], 0)
    assert (nodes.tolist(), picked.tolist(), place.tolist()) == ([0, 1], [0, 1], [0, 1])
    assert hops.tolist() == [[1, 2, 2, 2], [0, 1, 2, 2]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_neighbors": []}, "one whole number per hop"),
        ({"num_neighbors": [2, -2]}, "at least -1"),
        ({"num_neighbors": 5}, r"as in \[10, 10\]"),
        ({"num_neighbors": [2.0]}, "whole number"),
        ({"batch_size": 0}, "batch_size must be a whole number >= 1"),
        ({"seed": -1}, "seed must be"),
        ({"input_nodes": torch.tensor([0, 10])}, "between 0 and 9"),
        ({"input_nodes": torch.tensor([-1])}, "between 0 and 9"),
        ({"input_nodes": torch.tensor([1, 1])}, "twice"),
        ({"input_nodes": torch.ones(9, dtype=torch.bool)}, "mask of 9 nodes"),
        ({"input_nodes": torch.ones(10)}, "train_mask"),
        ({"input_nodes": [1, 2]}, "train_mask"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        NeighbourLoader(data_of(irregular_graph()), **{"num_neighbors": [2], **options})


def test_wrong_data_is_refused() -> None:
    with pytest.raises(GraphError, match="needs a torch_geometric Data"):
        NeighbourLoader(Data(x=torch.ones(2, 1)), [1])
    with pytest.raises(GraphError, match="num_nodes"):
        NeighbourLoader(Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [5]])), [1])


def test_numbers_of_neighbours_may_be_those_of_numpy() -> None:
    data = eamp.data.load("csbm:nodes=60,features=4")
    batches = [
        [batch.n_id.tolist() for batch in NeighbourLoader(data, fanouts, batch_size=20)]
        for fanouts in ([2, 3], [np.int64(2), np.int32(3)])
    ]
    assert batches[0] == batches[1]
