"""A layer's output with the entropy step added, as one operator: for a step that is a constant of the backward pass, as the paper's is.

    z = u ⊙ x,   E_i = C_i/2 · D(z)_i,   q_i = C_i e^{−E_i/T} (1 − E_i/T),   out = base + γ u ⊙ W(q, z)

``u`` are the coordinates in which neighbours are compared. In units of the embedding's own mean square, T is multiplied by that.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from eamp.graph import CSR
from eamp.ops.backends import choose, load
from eamp.ops.degrees import normaliser
from eamp.ops.operator import like_first, operator
from eamp.ops.sums import TINY, Gradients, pack, widen


class Step(NamedTuple):
    """A step of which everything but the embedding is known.

    Attributes:
        csr: the graph, with the normaliser of the energy.
        temperature: T.
        factor: γ.
        inward: u ``[n]``; ``None`` for ones.
        scale_free: whether T is in units of the embedding's mean square times sqrt(F).
    """

    csr: CSR
    temperature: float
    factor: float
    inward: Tensor | None = None
    scale_free: bool = False


def with_step(base: Tensor, x: Tensor, step: Step) -> Tensor:
    """``base`` + γ u ⊙ T∇S(u ⊙ x); no derivative but the one in ``base``."""
    csr, temperature, factor, inward, scale_free = step
    given = (
        inward,
        *csr[:4],
        csr.rsqrt_degree,
        float(temperature),
        float(factor),
        scale_free,
        choose(x.device),
    )
    out: Tensor = _with_step(base, x, *given)
    return out


@operator("eamp::with_step", like_first)
def _with_step(
    base: Tensor,
    x: Tensor,
    inward: Tensor | None,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    rsqrt_degree: Tensor,
    temperature: float,
    factor: float,
    scale_free: bool,
    backend: str,
) -> Tensor:
    wide, sums, csr = widen(x), load(backend), pack(rowptr, col, reverse, edge_weight)
    c, u = normaliser(x, rsqrt_degree), None if inward is None else inward.to(wide.dtype)
    if backend == "numba":
        from eamp.ops.backends.numba_cpu.launch import with_step as on_cpu

        return on_cpu(widen(base), wide, csr, c, temperature, factor, u, scale_free).to(base.dtype)
    unit = torch.ones((), dtype=torch.float64, device=x.device)
    if scale_free:
        mean = wide.square().mean(dtype=torch.float64)
        unit = torch.where(mean > TINY, mean, unit) * math.sqrt(x.size(1))
    z = wide if u is None else u.unsqueeze(1) * wide
    ratio = c * (sums.squared_differences(z, csr) / 2) / (temperature * unit).to(wide.dtype)
    step = sums.weighted_differences(factor * c * torch.exp(-ratio) * (1 - ratio), z, csr)
    return (widen(base) + (step if u is None else u.unsqueeze(1) * step)).to(base.dtype)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pass


def _backward(ctx: Any, grad: Tensor) -> Gradients:
    return grad, *(None,) * 11


_with_step.differentiated(_backward, _save)
