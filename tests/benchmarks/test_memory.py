"""What is said of memory is measured, and what is promised of it holds."""

from __future__ import annotations

import pytest
import torch
from benchmarks.large import large, large_table, random_edges
from benchmarks.memory import HOW, NETWORKS, memory_table, peak_of_tensors, training_step

MEGABYTE = 2**20


def test_the_peak_counts_what_lives_at_the_same_time() -> None:
    def step() -> None:
        for _ in range(3):
            first = torch.empty(MEGABYTE, dtype=torch.uint8)
            second = torch.empty(MEGABYTE, dtype=torch.uint8)
            del first, second

    assert 2 * MEGABYTE <= peak_of_tensors(step) < 2.5 * MEGABYTE


@pytest.mark.parametrize("name", NETWORKS)
def test_checkpointing_halves_the_peak(name: str) -> None:
    kept, checkpointed = (peak_of_tensors(training_step(name, 16, 16, flag)) for flag in HOW)
    assert checkpointed < kept / 2


def test_a_row_per_network() -> None:
    sizes = {"all kept": 3_000_000, "checkpoint": 1_000_000}
    time = {"median": 1.3, "fastest": 1.2}
    row = {
        "network": "GCN",
        "layers": 64,
        "width": 8,
        "tensor bytes": sizes,
        "resident bytes": sizes,
        "time": time,
    }
    assert memory_table([row, row]).row_count == 2


def test_edges_are_there_in_both_directions() -> None:
    edges = random_edges(10, 25)
    assert torch.equal(edges[:, :25], edges[:, 25:].flip(0))
    assert edges[0, :25].tolist() == [*range(10), *range(10), *range(5)]
    assert 0 <= int(edges.min()) <= int(edges.max()) < 10


def test_a_graph_takes_few_bytes_per_edge() -> None:
    """32 of them are the edge list's; sorting keys would take some 150."""
    measured = large(200_000, 1_000_000, 8)
    assert measured["bytes per edge beyond features and gradient"] < 100
    assert large_table(measured).row_count == len(measured["stages"])
