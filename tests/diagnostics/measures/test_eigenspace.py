"""The share of leading eigenvectors, beside a dense decomposition."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import eamp
from diagnostics.faulty_models import features, grid, star_of_stars
from eamp.diagnostics import eigenspace_share
from eamp.graph import Graph
from eamp.nn.conv.gcn_conv import gcn_propagate
from problems import undirected


def literal(x: Tensor, graph: Graph, k: int) -> float:
    matrix = gcn_propagate(torch.eye(graph.num_nodes, dtype=torch.float64), graph).numpy()
    values, vectors = np.linalg.eigh(matrix)
    components = int((values > 1 - 1e-9).sum())
    leading = vectors[:, np.argsort(-values)[: components + k]]
    return float(np.square(leading.T @ x.double().numpy()).sum() / x.double().square().sum())


def two_parts() -> Graph:
    return Graph(undirected((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6)), num_nodes=8)


@pytest.mark.parametrize("k", [0, 1, 2])  # a third would be one of several equal ones
@pytest.mark.parametrize("graph", [star_of_stars(), two_parts()], ids=["tree", "two parts"])
def test_share_is_that_of_a_dense_decomposition(graph: Graph, k: int) -> None:
    x = torch.randn(graph.num_nodes, 5, generator=torch.Generator().manual_seed(0))
    share = eigenspace_share(x, graph, k).item()
    assert share == pytest.approx(literal(x, graph, k))
    assert eigenspace_share(1e-30 * x, graph, k).item() == pytest.approx(share)


def test_share_of_a_graph_that_needs_lanczos() -> None:
    # The first two eigenvalues below 1 of a grid are equal, so both must be taken.
    graph = Graph(grid())
    assert eigenspace_share(features(), graph, 2).item() == pytest.approx(
        literal(features(), graph, 2)
    )


def test_the_limit_of_convolution_lies_in_the_space_and_its_opposite_does_not() -> None:
    graph = star_of_stars()
    limit = (graph.degree + 1).sqrt().outer(torch.ones(3))
    assert eigenspace_share(limit, graph, 0).item() == pytest.approx(1)
    other = torch.randn(graph.num_nodes, 1, dtype=torch.float64)
    other -= limit[:, :1] * (limit[:, :1] * other).sum() / limit[:, :1].square().sum()
    assert eigenspace_share(other, graph, 0).item() == pytest.approx(0, abs=1e-12)
    assert eigenspace_share(other, graph, 100).item() == pytest.approx(1)


def test_zeros_and_values_that_are_not_finite_are_nan() -> None:
    assert eigenspace_share(torch.zeros(100, 2), grid()).isnan()
    assert eigenspace_share(torch.full((100, 2), math.nan), grid()).isnan()


def test_a_probe_takes_it_on_request_only() -> None:
    conv = eamp.nn.conv.gcn_conv.GCNConv(32, 32)
    with eamp.probe(conv) as default, eamp.probe(conv, ["eigenspace_share"]) as named:
        conv(features(), grid())
    assert "eigenspace_share" not in default.rows[0]
    assert 0 < named.eigenspace_share[0] < 1


def test_a_graph_without_edges_has_no_further_eigenvectors() -> None:
    share = eigenspace_share(torch.randn(30, 2), torch.zeros(2, 0, dtype=torch.long))
    assert share == pytest.approx(1.0)
