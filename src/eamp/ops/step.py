"""The entropy step, written down once.

    E_i = C_i/2 · D(x)_i,   P̄_i = T ∂S/∂E_i,   q = C ⊙ P̄,   T∇S = W(q, x)

:func:`entropy_step` composes it from the sums of :mod:`eamp.ops.sums`. A backend may have the
default variant in fewer passes (:class:`eamp.ops.backends.FusedStep`): composed, it costs a dozen
small operators more, which are a third of the time on a graph of Cora's size. The derivative of a
fused step is fused, too, unless it is to be differentiated again.
"""

from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from eamp.graph import CSR, Graph
from eamp.ops.backends import FusedStep, choose, load
from eamp.ops.boltzmann import entropy_drive
from eamp.ops.normalisers import energy_normaliser, propagation_scale
from eamp.ops.operator import like_first, operator
from eamp.ops.precision import accumulate_dtype, widen
from eamp.ops.sums import Gradients, _inner, _weighted, weighted_by_squares

Variant: TypeAlias = Literal["exact", "paper"]


def entropy_step(
    x: Tensor,
    graph: Graph,
    temperature: float | Tensor,
    factor: float = 1.0,
    *,
    variant: Variant = "exact",
    normalize: bool = False,
    by_degree: bool = True,
) -> tuple[Tensor, Tensor]:
    """Return ``factor`` · T∇S ``[n, F]`` and the energies E ``[n]``.

    Args:
        x: features ``[n, F]``.
        graph: the graph.
        temperature: T, a number or a one-element tensor.
        factor: a number that the step is multiplied by.
        variant: ``"exact"``, or ``"paper"`` for the published formula C ⊙ W(P̄, x).
        normalize: take the entropy of the normalised distribution.
        by_degree: normalise energies by C_i = 1/sqrt(k_i F), or else by 1/sqrt(F).
    """
    c = energy_normaliser(x, graph, by_degree)
    exact = variant == "exact"
    if exact and not normalize and is_fused(x, graph):
        if not isinstance(temperature, Tensor):
            temperature = torch.tensor(temperature, dtype=torch.float64)
        given = (*graph.local_csr, c, temperature, float(factor), choose(x.device))
        step, energy = _fused_step(x, *given)
        return step, energy
    found: list[Tensor] = []

    def q(squares: Tensor) -> Tensor:
        found.append(c * (squares / 2))
        drive = factor * entropy_drive(found[0], temperature, normalize, graph)
        return c * drive if exact else drive

    step = weighted_by_squares(x, graph, q)
    return step if exact else c.to(x.dtype).unsqueeze(1) * step, found[0]


def add_fused_step(
    base: Tensor,
    x: Tensor,
    graph: Graph,
    temperature: float,
    factor: float,
    of_propagation: bool = False,
    scale_free: bool = False,
) -> Tensor:
    """Return ``base`` + ``factor`` · u ⊙ T∇S(u ⊙ x) as one operator.

    The step is a constant of the backward pass. :func:`is_fused` tells whether it can be called.

    Args:
        base: the tensor that the step is added to.
        x: features ``[n, F]`` at which the step is taken.
        graph: the graph.
        temperature: T.
        factor: λ.
        of_propagation: use the energy that graph convolutions lower: u_i = 1/sqrt(k_i + 1) and
            C_i = 1/sqrt(F). Otherwise u = 1 and C_i = 1/sqrt(k_i F).
        scale_free: T is in units of the mean square of x times sqrt(F).
    """
    u = propagation_scale(graph, accumulate_dtype(x)) if of_propagation else None
    c = energy_normaliser(x, graph, by_degree=not of_propagation)
    options = (float(temperature), float(factor), scale_free, choose(x.device))
    out: Tensor = _add_step(base, x, u, *graph.local_csr, c, *options)
    return out


def is_fused(x: Tensor, graph: Graph) -> bool:
    """Return whether the backend for ``x`` has a fused step that can run on ``graph``."""
    return graph.in_one_piece and _has_fused_step(choose(x.device))


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch's
def _has_fused_step(backend: str) -> bool:
    return load(backend).fused_step is not None


def _fused(backend: str) -> FusedStep:
    step = load(backend).fused_step
    assert step is not None, f"is_fused() says that {backend} has a fused step"
    return step


def step_and_energy(x: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    """Return empty tensors in the shapes of a step and of its energies."""
    return like_first(x), x.new_empty(x.size(0), dtype=accumulate_dtype(x))


@operator("eamp::fused_step", step_and_energy)
def _fused_step(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    c: Tensor,
    temperature: Tensor,
    factor: float,
    backend: str,
) -> tuple[Tensor, Tensor]:
    csr = CSR(rowptr, col, reverse, edge_weight)
    step, energy = _fused(backend).forward(widen(x), csr, c, temperature.item(), factor)
    return step.to(x.dtype), energy


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.factor, ctx.backend = inputs
    ctx.save_for_backward(*tensors, output[1])


def _backward(ctx: Any, grad_step: Tensor, grad_energy: Tensor) -> Gradients:
    x, *csr, c, temperature, energy = ctx.saved_tensors
    given = (x, grad_step, grad_energy, energy, *csr, c, temperature, ctx.factor, ctx.backend)
    derivatives = step_derivatives if torch.is_grad_enabled() else _fused_step_backward
    wrt_x, wrt_temperature = derivatives(*given)
    wrt_temperature = wrt_temperature if ctx.needs_input_grad[6] else None
    return wrt_x, *(None,) * 5, wrt_temperature, None, None


def step_derivatives(
    x: Tensor,
    grad_step: Tensor,
    grad_energy: Tensor,
    energy: Tensor,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    c: Tensor,
    temperature: Tensor,
    factor: float,
    backend: str,
) -> tuple[Tensor, Tensor]:
    """Return the derivatives of the step in x and T, from sums that can be differentiated again.

    ∂q_i/∂E_i = −(C_i p_i/T)(2 − E_i/T) and ∂q_i/∂T = C_i p_i (E_i/T²)(2 − E_i/T).
    """
    csr, inverse = (rowptr, col, reverse, edge_weight), 1 / temperature.to(energy.dtype)
    ratio = energy * inverse
    cp = factor * c * torch.exp(-ratio)
    slope = _inner(x, grad_step, *csr, backend) * cp * (2 - ratio) * inverse
    # Through x in W, and through E = C/2 · D(x), whose derivative is W(C, x).
    through_energy = c * (grad_energy - slope)
    wrt_x = _weighted(cp * (1 - ratio), grad_step, through_energy, x, *csr, backend)
    return wrt_x, (slope * ratio).sum().to(temperature)


def like_derivatives(
    x: Tensor, grad_step: Tensor, grad_energy: Tensor, energy: Tensor, *others: Any
) -> tuple[Tensor, Tensor]:
    """Return empty tensors in the shapes of the derivatives in x and T."""
    return like_first(x), others[5].new_empty(())


@operator("eamp::fused_step_backward", like_derivatives)
def _fused_step_backward(
    x: Tensor,
    grad_step: Tensor,
    grad_energy: Tensor,
    energy: Tensor,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    c: Tensor,
    temperature: Tensor,
    factor: float,
    backend: str,
) -> tuple[Tensor, Tensor]:
    csr = CSR(rowptr, col, reverse, edge_weight)
    given = (widen(x), widen(grad_step), grad_energy, energy, csr, c, temperature.item(), factor)
    wrt_x, wrt_temperature = _fused(backend).backward(*given)
    return wrt_x.to(x.dtype), wrt_temperature.to(temperature)


_fused_step.differentiated(_backward, _save)


@operator("eamp::add_step", like_first)
def _add_step(
    base: Tensor,
    x: Tensor,
    inward: Tensor | None,
    rowptr: Tensor,
    col: Tensor,
    reverse: Tensor,
    edge_weight: Tensor | None,
    c: Tensor,
    temperature: float,
    factor: float,
    scale_free: bool,
    backend: str,
) -> Tensor:
    csr = CSR(rowptr, col, reverse, edge_weight)
    given = (widen(base), widen(x), csr, c, temperature, factor, inward, scale_free)
    return _fused(backend).added(*given).to(base.dtype)


def _save_nothing(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pass


def _add_step_backward(ctx: Any, grad: Tensor) -> Gradients:
    return grad, *(None,) * 11


_add_step.differentiated(_add_step_backward, _save_nothing)
