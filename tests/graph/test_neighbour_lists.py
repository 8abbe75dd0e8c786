"""Neighbour lists by counting are those by sorting."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import eamp
from eamp.graph.csr import build_csr, count_entries, sort_entries
from problems import undirected

NODES = 7
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=40)


def edge_list(edges: list[tuple[int, int]], dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(edges, dtype=dtype).reshape(-1, 2).t()


@given(EDGES, st.booleans(), st.sampled_from([torch.int64, torch.int32, torch.int16]))
def test_counting_finds_what_sorting_finds(
    edges: list[tuple[int, int]], symmetrize: bool, dtype: torch.dtype
) -> None:
    """Whatever is there: self-loops, duplicates, isolated nodes, one direction or both."""
    given_edges = edge_list(edges, dtype)
    counted = count_entries(given_edges, NODES, symmetrize)
    try:
        expected = sort_entries(given_edges.long(), None, NODES, symmetrize)
    except eamp.GraphError:
        assert counted is None
        return
    assert counted is not None
    for got, wanted in zip(counted, expected, strict=True):
        assert (got is None) == (wanted is None)
        if got is not None and wanted is not None:
            assert got.dtype == wanted.dtype
            assert torch.equal(got, wanted)


def test_every_layout_of_the_edge_list() -> None:
    edges = undirected((0, 1), (1, 2), (4, 0))
    transposed = edges.t().contiguous().t()
    assert not transposed.is_contiguous()
    assert torch.equal(eamp.Graph(transposed).csr.col, eamp.Graph(edges).csr.col)


def test_beyond_32_bits_indices_are_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = undirected((0, 1), (1, 2))
    narrow = build_csr(edges, None, 3, False)
    monkeypatch.setattr("eamp.graph.csr.INT32_MAX", 3)
    wide = build_csr(edges, None, 3, False)
    assert (narrow.col.dtype, wide.col.dtype) == (torch.int32, torch.int64)
    assert all(
        torch.equal(a.long(), b)
        for a, b in zip(narrow[:3], wide[:3], strict=True)
        if a is not None and b is not None
    )
