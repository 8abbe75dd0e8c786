"""Vector fields, each against its equation on dense matrices or node by node."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from torch import Tensor

import eamp
from eamp.nn.conv.ode import ODEBlock
from eamp.nn.conv.vector_fields import (
    AllenCahn,
    AttentionDiffusion,
    GCNDiffusion,
    RandomWalkDiffusion,
)
from problems import irregular_graph, problems


def dense_attention(field: AttentionDiffusion, x: Tensor, graph: eamp.Graph) -> Tensor:
    """The equation as written, on ``[n, n]`` matrices."""
    n = x.size(0)
    weight = torch.eye(n, dtype=x.dtype)
    weight[tuple(graph.edge_index)] = (
        1.0 if graph.edge_weight is None else graph.edge_weight.to(x.dtype)
    )
    query = field.query(x).view(n, field.heads, -1).transpose(0, 1)
    key = field.key(x).view(n, field.heads, -1).transpose(0, 1)
    scores = query @ key.transpose(1, 2) / math.sqrt(field.head_channels)
    return (scores + weight.log()).softmax(-1).mean(0)


@given(problems())
def test_attention_is_the_dense_softmax(problem: tuple[Tensor, eamp.Graph]) -> None:
    x, graph = problem
    field = AttentionDiffusion(x.size(1), heads=2, head_channels=3).double()
    expected = dense_attention(field, x, graph) @ x - x
    torch.testing.assert_close(field(x, graph, *field.at_start(x, graph)), expected)


def test_gradient_of_every_parameter_is_that_of_the_dense_softmax() -> None:
    graph = irregular_graph()
    field = AttentionDiffusion(4, heads=2, head_channels=3).double()
    x, g = torch.randn(10, 4, dtype=torch.float64), torch.randn(10, 4, dtype=torch.float64)
    parameters = tuple(field.parameters())
    ours = torch.autograd.grad((field(x, graph, *field.at_start(x, graph)) * g).sum(), parameters)
    dense = torch.autograd.grad(((dense_attention(field, x, graph) @ x) * g).sum(), parameters)
    torch.testing.assert_close(ours, dense)


def test_equal_scores_are_the_random_walk() -> None:
    graph = irregular_graph()
    field = AttentionDiffusion(4)
    torch.nn.init.zeros_(field.query.weight)
    x = torch.randn(10, 4)
    torch.testing.assert_close(
        field(x, graph, *field.at_start(x, graph)), RandomWalkDiffusion()(x, graph)
    )


def test_frozen_attention_makes_it_linear_and_fresh_attention_does_not() -> None:
    graph = irregular_graph()
    field = AttentionDiffusion(4).double()
    x, y = torch.randn(2, 10, 4, dtype=torch.float64)
    frozen = field.at_start(x, graph)
    assert len(frozen) == 2
    torch.testing.assert_close(
        field(x + y, graph, *frozen), field(x, graph, *frozen) + field(y, graph, *frozen)
    )
    field.every_evaluation = True
    assert field.at_start(x, graph) == ()
    assert not torch.allclose(field(x + y, graph), field(x, graph) + field(y, graph))


@given(problems())
def test_random_walk_conserves_the_mean_weighted_by_degree(
    problem: tuple[Tensor, eamp.Graph],
) -> None:
    x, graph = problem
    later = ODEBlock("rk4", steps=4)(x, graph, RandomWalkDiffusion())
    weight = graph.degree + 1
    torch.testing.assert_close(weight @ later, weight @ x)


@given(problems())
def test_random_walk_is_the_dense_equation(problem: tuple[Tensor, eamp.Graph]) -> None:
    x, graph = problem
    n = x.size(0)
    matrix = torch.eye(n, dtype=torch.float64)
    matrix[tuple(graph.edge_index)] = (
        1.0 if graph.edge_weight is None else graph.edge_weight.double()
    )
    matrix = matrix / matrix.sum(1, keepdim=True) - torch.eye(n, dtype=torch.float64)
    torch.testing.assert_close(RandomWalkDiffusion()(x, graph), matrix @ x)
    exact = torch.linalg.matrix_exp(matrix) @ x
    torch.testing.assert_close(
        ODEBlock("dopri5", rtol=1e-9, atol=1e-9)(x, graph, RandomWalkDiffusion()),
        exact,
        rtol=1e-6,
        atol=1e-6,
    )


def allen_cahn(
    x: Tensor, graph: eamp.Graph, weight: Tensor, repulsion: float, coupling: Tensor, well: Tensor
) -> Tensor:
    """The equation, node by node and neighbour by neighbour; ``weight`` is ``[n, n]``."""
    adjacency = torch.zeros_like(weight)
    adjacency[tuple(graph.edge_index)] = (
        1.0 if graph.edge_weight is None else graph.edge_weight.to(x.dtype)
    )
    rows = []
    for i in range(x.size(0)):
        total = torch.zeros_like(x[i])
        for j in range(x.size(0)):
            if adjacency[i, j]:
                total = total + (weight[i, j] - repulsion * adjacency[i, j]) * (x[j] - x[i])
        rows.append(coupling * total + well * x[i] * (1 - x[i] ** 2))
    return torch.stack(rows)


@given(problems())
def test_allen_cahn_is_the_published_sum_with_gcn_weights(
    problem: tuple[Tensor, eamp.Graph],
) -> None:
    x, graph = problem
    field = AllenCahn(x.size(1), GCNDiffusion(), repulsion=0.3, coupling=0.6, well=0.2).double()
    torch.nn.init.normal_(field.logit_coupling)
    torch.nn.init.normal_(field.logit_well)
    weight = x.new_zeros(x.size(0), x.size(0))
    row, col = graph.edge_index
    a = 1.0 if graph.edge_weight is None else graph.edge_weight.double()
    weight[row, col] = a * ((graph.degree[row] + 1) * (graph.degree[col] + 1)).rsqrt()
    expected = allen_cahn(
        x, graph, weight, 0.3, field.logit_coupling.sigmoid(), field.logit_well.sigmoid()
    )
    torch.testing.assert_close(field(x, graph), expected)


def test_allen_cahn_is_the_published_sum_with_attention() -> None:
    graph, x = irregular_graph(), torch.randn(10, 3, dtype=torch.float64)
    field = AllenCahn(3, AttentionDiffusion(3), repulsion=0.3).double()
    edge, own = field.at_start(x, graph)
    weight = x.new_zeros(10, 10)
    weight[tuple(graph.edge_index)] = edge
    half = torch.full((3,), 0.5, dtype=torch.float64)
    torch.testing.assert_close(
        field(x, graph, edge, own), allen_cahn(x, graph, weight, 0.3, half, half)
    )
