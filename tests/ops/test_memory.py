"""Memory that was freed goes back to the system."""

from __future__ import annotations

import pytest

from eamp.ops.memory import Heap, malloc_trim, resident_bytes

MEGABYTE = 2**20


@pytest.mark.skipif(malloc_trim() is None, reason="only glibc gives memory back when asked")
def test_freed_memory_is_given_back() -> None:
    malloc_trim()(0)  # nothing freed before is counted below
    heap = Heap(slack=16 * MEGABYTE)
    before = resident_bytes()
    blocks: list[bytearray] = []  # too small to be mapped one by one
    while resident_bytes() < before + 64 * MEGABYTE:  # the first may find room that is resident
        blocks.append(bytearray(MEGABYTE // 16))
    kept = blocks[-1]  # at the top of the heap, which therefore cannot shrink by itself
    del blocks
    heap.give_back()
    assert resident_bytes() < before + 32 * MEGABYTE
    assert len(kept) == MEGABYTE // 16


def test_little_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr("eamp.ops.memory.malloc_trim", lambda: calls.append)
    sizes = iter([100, 150, 250, 120, 220])
    monkeypatch.setattr("eamp.ops.memory.resident_bytes", lambda: next(sizes))
    heap = Heap(slack=100)  # at 100
    heap.give_back()  # 150: not enough
    heap.give_back()  # 250: given back, down to 120
    heap.give_back()  # 220: not enough
    assert calls == [0]


def test_without_the_function_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eamp.ops.memory.malloc_trim", lambda: None)
    Heap().give_back()
