"""The benchmark of memory, and the promise that checkpoints make."""

from __future__ import annotations

import pytest
import torch
from benchmarks.memory import (
    HOW,
    NETWORKS,
    memory_table,
    peak_of_step,
    peak_of_tensors,
    training_step,
)

MEGABYTE = 2**20


def test_the_peak_counts_what_lives_at_the_same_time() -> None:
    def step() -> None:
        for _ in range(3):
            first = torch.empty(MEGABYTE, dtype=torch.uint8)
            second = torch.empty(MEGABYTE, dtype=torch.uint8)
            del first, second

    assert 2 * MEGABYTE <= peak_of_tensors(step) < 2.5 * MEGABYTE


def test_a_step_needs_little_more_than_its_result() -> None:
    assert 0.9 < peak_of_step(20_000, 40_000, 64)["extra / size of x"] < 2.5


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
