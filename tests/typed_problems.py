"""Random typed graphs, and the definition of their entropy, node by node."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

WRITES, WRITTEN = ("author", "writes", "paper"), ("paper", "rev_writes", "author")
CITES, CITED = ("paper", "cites", "paper"), ("paper", "rev_cites", "paper")
READS, READ = ("author", "reads", "paper"), ("paper", "rev_reads", "author")
RELATIONS = (WRITES, CITES, READS)
REVERSE = {WRITES: WRITTEN, CITES: CITED, READS: READ}


class Typed(NamedTuple):
    x: dict[str, Tensor]
    edges: dict[tuple[str, str, str], Tensor]
    pairs: dict[tuple[str, str, str], list[tuple[int, int]]]


@st.composite
def typed_graphs(draw: Any, width: int = 3) -> Typed:
    """Authors and papers with up to three relations, isolated nodes and empty relations."""
    sizes = {"author": draw(st.integers(1, 4)), "paper": draw(st.integers(1, 5))}
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    x = {
        kind: torch.randn(n, width, generator=generator, dtype=torch.float64)
        for kind, n in sizes.items()
    }
    edges, pairs = {}, {}
    for relation in RELATIONS:
        source, _, target = relation
        possible = [
            (i, j)
            for i in range(sizes[source])
            for j in range(sizes[target])
            if source != target or i < j
        ]
        chosen = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
        pairs[relation] = chosen
        forth = torch.tensor(chosen, dtype=torch.int64).reshape(-1, 2).t().contiguous()
        edges[relation], edges[REVERSE[relation]] = forth, forth.flip(0)
    return Typed(x, edges, pairs)


def literal_energies(
    x: dict[str, Tensor], relation: tuple[str, str, str], pairs: list[tuple[int, int]]
) -> dict[tuple[str, int], Tensor]:
    """E_i of a relation for every node that has neighbours: the definition, term by term.

    Nodes of two types are compared without the offset between their types.
    """
    source, _, target = relation
    if source != target:
        x = {kind: x[kind] - x[kind].mean(0) for kind in (source, target)}
    neighbours: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for i, j in pairs:
        neighbours.setdefault((source, i), []).append((target, j))
        neighbours.setdefault((target, j), []).append((source, i))
    energies = {}
    for (kind, i), others in neighbours.items():
        here = x[kind][i]
        total = sum((x[other][j] - here).square().sum() for other, j in others)
        energies[kind, i] = total / (2 * math.sqrt(len(others) * here.numel()))
    return energies


def literal_entropy(
    typed: Typed, temperature: float, weights: dict[tuple[str, str, str], float] | None = None
) -> Tensor:
    """Σ_r w_r Σ_i (E_i/T) exp(−E_i/T)."""
    total = torch.zeros((), dtype=torch.float64)
    for relation, pairs in typed.pairs.items():
        weight = 1.0 if weights is None else weights.get(relation, 0.0)
        for energy in literal_energies(typed.x, relation, pairs).values():
            total = total + weight * energy / temperature * torch.exp(-energy / temperature)
    return total


def literal_gradient(
    typed: Typed, temperature: float, weights: dict[tuple[str, str, str], float] | None = None
) -> dict[str, Tensor]:
    """∇S by autograd through the definition."""
    x = {kind: each.detach().clone().requires_grad_() for kind, each in typed.x.items()}
    value = literal_entropy(typed._replace(x=x), temperature, weights)
    if not value.requires_grad:
        return {kind: torch.zeros_like(each) for kind, each in x.items()}
    found = torch.autograd.grad(value, list(x.values()), allow_unused=True)
    return {
        kind: torch.zeros_like(each) if gradient is None else gradient
        for (kind, each), gradient in zip(x.items(), found, strict=True)
    }
