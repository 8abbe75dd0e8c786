"""Models that go wrong in one known way, and a grid to run them on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import Module, ModuleList

from eamp import Graph
from eamp.graph import Adjacency, graph_for
from eamp.nn.conv.gcn_conv import MessagePassingLayer
from eamp.ops import neighbour_sums
from problems import undirected

SIDE = 10


def grid() -> Tensor:
    """Edges of a 10 × 10 grid with four neighbours."""
    node = torch.arange(SIDE * SIDE).view(SIDE, SIDE)
    right = zip(node[:, :-1].flatten().tolist(), node[:, 1:].flatten().tolist(), strict=True)
    down = zip(node[:-1].flatten().tolist(), node[1:].flatten().tolist(), strict=True)
    return undirected(*right, *down)


def features(width: int = 32, seed: int = 0) -> Tensor:
    return torch.randn(SIDE * SIDE, width, generator=torch.Generator().manual_seed(seed))


class Apply(MessagePassingLayer):
    """A layer that applies one function of features and edges."""

    def __init__(self, step: Callable[[Tensor, Adjacency], Tensor]) -> None:
        super().__init__()
        self.step = step

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        return self.step(x, edge_index)


class Stack(Module):
    """Layers in sequence, with an optional activation between them."""

    def __init__(
        self, *layers: Module, activation: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        super().__init__()
        self.layers = ModuleList(layers)
        self.activation = activation

    def forward(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        for k, layer in enumerate(self.layers):
            x = layer(x if k == 0 or self.activation is None else self.activation(x), edge_index)
        return x


def mean_of_neighbourhood(x: Tensor, edge_index: Adjacency) -> Tensor:
    """Average over a node and its neighbours."""
    graph = graph_for(x, edge_index)
    return neighbour_sums(
        1 / (graph.degree + 1), x, torch.ones_like(graph.degree), graph, self_loops=True
    )


def average(x: Tensor, edge_index: Adjacency) -> Tensor:
    """Average over the neighbourhood and restore the norm."""
    out = mean_of_neighbourhood(x, edge_index)
    return out * x.norm() / out.norm()


def rotate(x: Tensor, edge_index: Adjacency) -> Tensor:
    """An orthogonal map of the features, which changes neither energy nor norm nor rank."""
    square = torch.randn(x.size(1), x.size(1), generator=torch.Generator().manual_seed(1))
    return x @ torch.linalg.qr(square).Q


def flatten(x: Tensor, edge_index: Adjacency) -> Tensor:
    """Halve every feature but the first; the norm and differences between neighbours stay."""
    out = x * torch.tensor([1.0] + [0.5] * (x.size(1) - 1))
    return out * x.norm() / out.norm()


def scale(factor: float) -> Callable[[Tensor, Adjacency], Tensor]:
    return lambda x, edge_index: factor * x


def star_of_stars() -> Graph:
    """A tree with degrees 1 to 6, on which equal rows and rows ∝ sqrt(1 + k) differ."""
    return Graph(undirected((0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (1, 7), (1, 8), (2, 9)))
