import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import torch

import eamp
from eamp.graph import graph as graph_module
from eamp.graph.batches import set_batch
from eamp.graph.edge_index_cache import _cache, as_graph
from problems import random_graph, undirected


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with every conversion."""
    counted: list[int] = []
    build = graph_module.build_csr

    def counting(*arguments: object) -> object:
        counted.append(1)
        return build(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(graph_module, "build_csr", counting)
    return counted


def test_the_same_tensor_is_converted_once(conversions: list[int]) -> None:
    edge_index = undirected((0, 1), (1, 2))
    x = torch.randn(3, 2)
    for _ in range(100):
        eamp.dirichlet_energy(x, edge_index)
        eamp.entropy_gradient(x, edge_index)
    assert len(conversions) == 1
    eamp.dirichlet_energy(torch.randn(4, 2), edge_index)  # another number of nodes is another graph
    eamp.dirichlet_energy(x, edge_index)
    assert len(conversions) == 2


def test_a_model_of_many_layers_converts_once(conversions: list[int]) -> None:
    from torch_geometric.nn import GCN

    model = eamp.wrap(GCN(2, 4, num_layers=8))
    edge_index = undirected((0, 1), (1, 2))
    for _ in range(5):
        model(torch.randn(3, 2), edge_index).sum().backward()
    assert len(conversions) == 1


@pytest.mark.parametrize("change", ["in place", "behind the version counter", "numpy"])
def test_a_changed_tensor_is_converted_anew(change: str) -> None:
    edge_index = undirected((0, 1), (1, 2))
    x = torch.tensor([[0.0], [1.0], [5.0]])
    before = eamp.dirichlet_energy(x, edge_index)
    target = {
        "in place": edge_index,
        "behind the version counter": edge_index.data,
        "numpy": edge_index.numpy(),
    }[change]
    target[...] = (
        torch.tensor([[0, 2, 0, 2], [2, 0, 2, 0]])
        if change != "numpy"
        else np.array([[0, 2, 0, 2], [2, 0, 2, 0]])
    )
    after = eamp.dirichlet_energy(x, edge_index)
    assert before[1] > 0
    assert after[1] == 0
    assert torch.equal(after, eamp.dirichlet_energy(x, edge_index.clone()))


def test_inference_tensors_have_no_version_and_still_work(conversions: list[int]) -> None:
    with torch.inference_mode():
        edge_index = undirected((0, 1))
        x = torch.tensor([[0.0], [1.0]])
        assert (
            eamp.dirichlet_energy(x, edge_index)[0]
            == eamp.dirichlet_energy(x, edge_index)[0]
            == 0.5
        )
        assert len(conversions) == 1


def test_reused_memory_never_yields_a_stale_graph() -> None:
    x = torch.arange(4.0).unsqueeze(1) ** 2
    for i in range(50):  # the allocator hands the same block out again and again
        a, b = i % 4, (i + 1 + i // 4 % 3) % 4
        edge_index = undirected((a, b))
        energy = eamp.dirichlet_energy(x, edge_index)
        expected = 0.5 * float((x[a] - x[b]) ** 2)
        assert energy.tolist() == [expected if k in (a, b) else 0.0 for k in range(4)]
        del edge_index


def test_the_graph_is_freed_with_its_tensor() -> None:
    edge_index = undirected((0, 1))
    graph = weakref.ref(as_graph(edge_index, 2))
    assert graph() is not None
    size = len(_cache)
    del edge_index
    gc.collect()
    assert graph() is None
    assert len(_cache) < size


def test_sparse_adjacencies_are_cache_too(conversions: list[int]) -> None:
    adjacency = torch.sparse_coo_tensor(undirected((0, 1)), torch.ones(2), (2, 2))
    for _ in range(3):
        eamp.dirichlet_energy(torch.eye(2), adjacency)
    assert len(conversions) == 1


def test_threads_may_ask_at_once() -> None:
    g = random_graph(50, 200)
    edge_index, x = g.edge_index, torch.randn(50, 4)
    expected = eamp.dirichlet_energy(x, g)
    results: list[torch.Tensor] = []
    threads = [
        threading.Thread(target=lambda: results.append(eamp.dirichlet_energy(x, edge_index)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(torch.equal(result, expected) for result in results)


def test_the_graph_without_a_batch_outlives_all_batches(conversions: list[int]) -> None:
    edge_index, batch = undirected((0, 1), (2, 3)), torch.tensor([0, 0, 1, 1])
    plain = as_graph(edge_index, 4)
    assert as_graph(edge_index, 4, with_batch=False) is plain
    set_batch(edge_index, batch)
    assert as_graph(edge_index, 4).num_graphs == 2
    assert as_graph(edge_index, 4, with_batch=False) is plain
    set_batch(edge_index, torch.tensor([0, 0, 2, 2]))
    assert as_graph(edge_index, 4).num_graphs == 3
    set_batch(edge_index, None)
    assert as_graph(edge_index, 4) is plain
    assert len(conversions) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x, edges: eamp.dirichlet_energy(x, edges),
        lambda x, edges: eamp.boltzmann(x, edges, 1.0, normalize=True),
        lambda x, edges: eamp.entropy(x, edges, 1.0, normalize=True),
        lambda x, edges: eamp.entropy(x, edges, 1.0, by_graph=True),
        lambda x, edges: eamp.entropy_gradient(x, edges, 1.0, normalize=True),
        lambda x, edges: eamp.nn.collapse_threshold(edges, 4),
    ],
    ids=["energy", "weights", "entropy", "by graph", "gradient", "threshold"],
)
def test_pure_functions_do_not_depend_on_what_layers_were_told(function: Any) -> None:
    edge_index, x = undirected((0, 1), (2, 3), (3, 4), (4, 5), (5, 2)), torch.randn(6, 2)
    before = function(x, edge_index)
    set_batch(edge_index, torch.tensor([0, 0, 1, 1, 1, 1]))
    assert torch.equal(function(x, edge_index), before)
    assert torch.equal(function(x, edge_index.clone()), before)
