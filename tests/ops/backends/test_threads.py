"""Kernels give the same bits on any number of threads, on Python threads, and after a fork."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import eamp
from eamp.ops.backends.numba_cpu import threads
from problems import random_graph

GRAPH = random_graph(400, 2000)
X = torch.randn(400, 33, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def _restore_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def gradient() -> torch.Tensor:
    return eamp.entropy_gradient(X, GRAPH, 1.0)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    results = []
    for count in (1, 2, 3, 4):
        torch.set_num_threads(count)
        results.append(gradient())
    assert all(torch.equal(result, results[0]) for result in results)


def test_the_number_of_threads_follows_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(
        threads,
        "_openmp",
        lambda: lambda task, block, count, flags: (seen.append(count), task(block)),
    )
    for count in (3, 2):
        torch.set_num_threads(count)
        gradient()
    assert sorted(set(seen)) == [2, 3]
    assert seen[0] == 3


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="elsewhere torch may use an OpenMP runtime without GNU's entry points",
)
def test_on_linux_tasks_run_on_the_openmp_runtime_of_torch() -> None:
    assert threads._openmp() is not None


def test_python_threads_stand_in_where_openmp_has_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(2)
    expected = gradient()
    monkeypatch.setattr(threads, "_openmp", lambda: None)
    assert torch.equal(gradient(), expected)


def test_many_python_threads_may_call_at_once() -> None:
    torch.set_num_threads(2)
    expected = gradient()
    results: list[torch.Tensor] = []
    workers = [
        threading.Thread(target=lambda: results.extend(gradient() for _ in range(10)))
        for _ in range(6)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 60
    assert all(torch.equal(result, expected) for result in results)


class Gradients(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        return gradient() + index


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_data_loader_workers_that_fork() -> None:
    torch.set_num_threads(2)
    expected = gradient()  # the parent's pool is up before the workers are forked
    loader = DataLoader(
        Gradients(), batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60
    )
    for index, result in enumerate(loader):
        assert torch.equal(result, expected + index)


def _in_child(queue: "multiprocessing.Queue[list[float]]") -> None:
    queue.put(gradient()[0].tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_plain_fork_with_several_threads_does_not_hang() -> None:
    torch.set_num_threads(2)
    expected = gradient()[0].tolist()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == expected
    child.join(60)
    assert child.exitcode == 0
