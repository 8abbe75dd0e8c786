"""Parts of a graph."""

import pytest
import torch
from benchmarks.communication import cut

import eamp
from eamp.scale.partition import metis


@pytest.fixture(scope="module")
def graph() -> eamp.Graph:
    data = eamp.data.load("grid:rows=12,columns=15")
    return eamp.Graph(data.edge_index, data.num_nodes)


@pytest.mark.parametrize("parts", [2, 3, 12])
def test_parts_are_of_about_equal_size_and_have_few_edges_between_them(
    graph: eamp.Graph, parts: int
) -> None:
    part = metis(graph, parts)
    assert part.shape == (180,)
    assert part.dtype == torch.int64
    sizes = part.bincount(minlength=parts)
    assert int(sizes.max()) <= 1.1 * 180 / parts + 1
    by_lot = torch.randint(parts, (180,), generator=torch.Generator().manual_seed(0))
    assert cut(graph, part).cut_edges < 0.5 * cut(graph, by_lot).cut_edges


def test_the_same_seed_gives_the_same_parts(graph: eamp.Graph) -> None:
    assert torch.equal(metis(graph, 4, seed=3), metis(graph, 4, seed=3))
    assert not torch.equal(metis(graph, 4, seed=3), metis(graph, 4, seed=4))


def test_small_cases() -> None:
    pair = eamp.Graph(torch.tensor([[0], [1]]), 3, symmetrize=True)
    assert metis(pair, 1).tolist() == [0, 0, 0]
    assert metis(pair, 3).tolist() == [0, 1, 2]
    assert metis(pair, 7).unique().numel() == 3
    assert metis(eamp.Graph(torch.empty(2, 0, dtype=torch.long), 4), 2).tolist() == [0, 0, 1, 1]
    assert metis(eamp.Graph(torch.empty(2, 0, dtype=torch.long), 0), 2).numel() == 0


def test_no_parts_are_an_error() -> None:
    with pytest.raises(eamp.GraphError, match="parts is 0"):
        metis(eamp.Graph(torch.empty(2, 0, dtype=torch.long), 4), 0)
