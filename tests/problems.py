"""Small graphs with energies worked out by hand, and generators of random ones."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

import eamp


class Problem(NamedTuple):
    edge_index: Tensor
    x: Tensor
    energy: list[float]


def undirected(*pairs: tuple[int, int]) -> Tensor:
    edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()
    return torch.cat([edges, edges.flip(0)], dim=1)


PROBLEMS = {
    # C = 1, 1/√2, 1; squared differences 1 and 4.
    "path": Problem(
        undirected((0, 1), (1, 2)),
        torch.tensor([[0.0], [1.0], [3.0]]),
        [0.5, 5 / (2 * math.sqrt(2)), 2.0],
    ),
    # Centre: C = 1/√3 and three differences of 1; leaves: C = 1.
    "star": Problem(
        undirected((0, 1), (0, 2), (0, 3)),
        torch.tensor([[0.0], [1.0], [1.0], [-1.0]]),
        [math.sqrt(3) / 2, 0.5, 0.5, 0.5],
    ),
    # F = 2 and k = 2: C = 1/2. Squared sides 1, 1, 2.
    "complete": Problem(
        undirected((0, 1), (0, 2), (1, 2)),
        torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        [0.5, 0.75, 0.75],
    ),
    "two components": Problem(
        undirected((0, 1), (2, 3)), torch.tensor([[0.0], [2.0], [5.0], [5.0]]), [2.0, 2.0, 0.0, 0.0]
    ),
    "isolated node": Problem(
        undirected((0, 1)), torch.tensor([[0.0], [2.0], [7.0]]), [2.0, 2.0, 0.0]
    ),
    "no edges": Problem(
        torch.empty(2, 0, dtype=torch.int64), torch.tensor([[1.0], [2.0]]), [0.0, 0.0]
    ),
}


@st.composite
def graphs(
    draw: Any, weighted: bool | None = None, min_nodes: int = 1, max_nodes: int = 8
) -> eamp.Graph:
    """A random undirected graph, perhaps weighted, perhaps with isolated nodes."""
    n = draw(st.integers(min_nodes, max_nodes))
    pairs = [(i, j) for i in range(n) for j in range(i)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    edge_index = undirected(*chosen)
    weight = None
    if draw(st.booleans()) if weighted is None else weighted:
        half = torch.tensor(
            draw(st.lists(st.floats(0.1, 3.0), min_size=len(chosen), max_size=len(chosen))),
            dtype=torch.float64,
        )
        weight = torch.cat([half, half])
    return eamp.Graph(edge_index, n, edge_weight=weight)


@st.composite
def problems(
    draw: Any, weighted: bool | None = None, min_nodes: int = 1
) -> tuple[Tensor, eamp.Graph]:
    """Random float64 features on a random graph."""
    graph = draw(graphs(weighted=weighted, min_nodes=min_nodes))
    features = draw(st.integers(1, 4))
    seed = draw(st.integers(0, 2**31))
    x = torch.randn(
        graph.num_nodes,
        features,
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(seed),
    )
    return x, graph


def random_graph(
    num_nodes: int, num_edges: int, seed: int = 0, weighted: bool = False
) -> eamp.Graph:
    """About ``num_edges`` undirected edges, drawn uniformly."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, num_nodes, (2, num_edges), generator=generator)
    weight = torch.rand(num_edges, generator=generator) + 0.1 if weighted else None
    return eamp.Graph(edges, num_nodes, edge_weight=weight, symmetrize=True)


def irregular_graph() -> eamp.Graph:
    """A star with a tail and a triangle: degrees from 1 to 5, and an isolated node."""
    return eamp.Graph(
        undirected((0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (5, 6), (6, 7), (7, 8), (6, 8)), 10
    )


def two_graphs() -> Batch:
    """A batch of a ring of four nodes and a path of three, with five features."""
    draw = torch.Generator().manual_seed(0)
    ring, path = undirected((0, 1), (1, 2), (2, 3), (3, 0)), undirected((0, 1), (1, 2))
    graphs = ((4, ring), (3, path))
    return Batch.from_data_list([Data(torch.randn(n, 5, generator=draw), e) for n, e in graphs])


def normalised_adjacency(graph: eamp.Graph) -> Tensor:
    """Â = D̃^(−1/2) (A + I) D̃^(−1/2), as a dense matrix."""
    a = torch.eye(graph.num_nodes, dtype=torch.float64)
    a[tuple(graph.edge_index)] = 1.0
    scale = a.sum(1).rsqrt()
    return scale.unsqueeze(1) * a * scale
