"""Diffusion along learned weights, against a dense softmax."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from torch import Tensor

import eamp
from eamp.nn.conv.attention_diffusion import AttentionDiffusion
from eamp.nn.models.grand import RandomWalkDiffusion
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
def test_is_the_dense_softmax(problem: tuple[Tensor, eamp.Graph]) -> None:
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
    literal = torch.autograd.grad(((dense_attention(field, x, graph) @ x) * g).sum(), parameters)
    torch.testing.assert_close(ours, literal)


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
