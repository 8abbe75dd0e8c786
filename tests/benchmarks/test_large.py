import torch
from benchmarks.large import large, large_table, random_edges


def test_edges_are_there_in_both_directions() -> None:
    edges = random_edges(10, 25)
    assert torch.equal(edges[:, :25], edges[:, 25:].flip(0))
    assert edges[0, :25].tolist() == [*range(10), *range(10), *range(5)]
    assert 0 <= int(edges.min()) <= int(edges.max()) < 10


def test_a_graph_takes_few_bytes_per_edge() -> None:
    """The edge list takes 32 of them; sorting keys would take some 150."""
    measured = large(200_000, 1_000_000, 8)
    assert measured["bytes per edge beyond features and gradient"] < 100
    assert large_table(measured).row_count == len(measured["stages"])
