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
from eamp.graph.drawing import draw_by_graph
from eamp.graph.transforms import batched, transformed
from eamp.ops.backends import Backend, StepInput, choose, load
from eamp.ops.boltzmann import entropy_drive, over_temperature
from eamp.ops.normalisers import energy_normaliser, propagation_scale
from eamp.ops.operator import graph_operator, like_first
from eamp.ops.precision import accumulate_dtype, in_dtype, widen
from eamp.ops.sums import Gradients, _inner, _weighted, weighted_by_squares

Variant: TypeAlias = Literal["exact", "paper", "permuted"]


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
        variant: ``"exact"``; ``"paper"`` for the published formula C ⊙ W(P̄, x); or ``"permuted"``
            for the exact one with another node's P̄ (:func:`permuted`).
        normalize: take the entropy of the normalised distribution.
        by_degree: normalise energies by C_i = 1/sqrt(k_i F), or else by 1/sqrt(F).
    """
    c = energy_normaliser(x, graph, by_degree)
    published = variant == "paper"
    if variant == "exact" and not normalize and is_fused(x, graph):
        if not isinstance(temperature, Tensor):
            temperature = torch.tensor(temperature, dtype=torch.float64, device="cpu")
        where = (*graph.local_csr, choose(x.device))
        step, energy = _fused_step(x, c, temperature, float(factor), *where)
        return step, energy
    found: list[Tensor] = []

    def q(squares: Tensor) -> Tensor:
        found.append(c * (squares / 2))
        drive = factor * entropy_drive(found[0], temperature, normalize, graph)
        drive = permuted(drive, graph) if variant == "permuted" else drive
        return drive if published else c * drive

    # In half precision the parts of a derivative can overflow where their sum does not.
    step = weighted_by_squares(widen(x), graph, q)
    return in_dtype(c.unsqueeze(1) * step if published else step, x.dtype), found[0]


def permuted(drive: Tensor, graph: Graph) -> Tensor:
    """Return P̄ ``[n]`` with its values shuffled among nodes of equal degree in the same graph.

    It is a control for experiments: every degree keeps the distribution of its P̄, and so do q and
    the size of the step, but no node is pushed by its own energy. A graph has one permutation per
    seed of torch, the same in all layers, epochs and batches.
    """
    graph.require_all_rows("variant='permuted'")

    def places() -> Tensor:
        key = graph.degree.unsqueeze(1)
        if graph.batch is not None:
            key = torch.cat([key, graph.batch.unsqueeze(1).to(key.dtype)], 1)
        kind = key.unique(dim=0, return_inverse=True)[1]
        # The place of every node in a random order of its own graph.
        seed = torch.initial_seed()
        rank = draw_by_graph(
            graph,
            lambda size: torch.randperm(
                size, generator=torch.Generator().manual_seed(seed), device="cpu"
            ).argsort(),
        )
        shuffled = rank.argsort(stable=True)
        # Both orders list the nodes kind by kind, the second in random order within a kind.
        ordered, random = kind.argsort(stable=True), shuffled[kind[shuffled].argsort(stable=True)]
        return torch.empty_like(ordered).index_copy_(0, ordered, random)

    return drive[graph.remember(("permuted", torch.initial_seed()), places)]


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
    options = (float(temperature), float(factor), scale_free)
    out: Tensor = _add_step(base, x, u, c, *options, *graph.local_csr, choose(x.device))
    return out


def is_fused(x: Tensor, graph: Graph) -> bool:
    """Return whether the backend for ``x`` has a fused step that can run on ``graph``."""
    return graph.in_one_piece and not transformed() and _has_fused_step(choose(x.device))


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch's
def _has_fused_step(backend: str) -> bool:
    return load(backend).fused_step is not None


def step_and_energy(x: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    """Return empty tensors in the shapes of a step and of its energies."""
    return like_first(x), x.new_empty(x.size(0), dtype=accumulate_dtype(x))


STEP = "Tensor x, Tensor c, Tensor temperature, float factor"


@graph_operator("eamp::fused_step", STEP, step_and_energy, "(Tensor, Tensor)", constants=1)
def _fused_step(
    x: Tensor, c: Tensor, temperature: Tensor, factor: float, backend: Backend, csr: CSR
) -> tuple[Tensor, Tensor]:
    given = StepInput(widen(x), csr, c, temperature.item(), factor)
    step, energy = backend.fused().forward(given)
    return in_dtype(step, x.dtype), energy


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, c, temperature, ctx.factor, *csr, ctx.backend = inputs
    ctx.save_for_backward(x, c, temperature, *csr, output[1])


def _backward(ctx: Any, grad_step: Tensor, grad_energy: Tensor) -> Gradients:
    x, c, temperature, *csr, energy = ctx.saved_tensors
    upstream, where = (grad_step, grad_energy, energy), (*csr, ctx.backend)
    composed = torch.is_grad_enabled() or transformed() or batched(upstream)
    derivatives = step_derivatives if composed else _fused_step_backward
    wrt_x, wrt_temperature = derivatives(x, c, temperature, ctx.factor, *upstream, *where)
    wrt_temperature = wrt_temperature if ctx.needs_input_grad[2] else None
    return wrt_x, None, wrt_temperature, *(None,) * 6


def step_derivatives(
    x: Tensor,
    c: Tensor,
    temperature: Tensor,
    factor: float,
    grad_step: Tensor,
    grad_energy: Tensor,
    energy: Tensor,
    *where: Any,
) -> tuple[Tensor, Tensor]:
    """Return the derivatives of the step in x and T, from sums that can be differentiated again.

    ∂q_i/∂E_i = −(C_i p_i/T)(2 − E_i/T) and ∂q_i/∂T = C_i p_i (E_i/T²)(2 − E_i/T). ``where`` is the
    graph's CSR and the name of the backend.
    """
    temperature_here = temperature.to(energy.dtype)
    ratio = over_temperature(energy, temperature_here)
    cp = factor * c * torch.exp(-ratio)
    grad_q = torch.where(cp != 0, _inner(x, grad_step, *where), 0.0)  # it may be infinite
    slope = grad_q * cp * (2 - ratio) / temperature_here
    # Through x in W, and through E = C/2 · D(x), whose derivative is W(C, x).
    through_energy = c * (grad_energy - slope)
    wrt_x = _weighted(cp * (1 - ratio), grad_step, through_energy, x, *where)
    return wrt_x, (slope * ratio).sum().to(temperature)


def like_derivatives(x: Tensor, c: Tensor, temperature: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    """Return empty tensors in the shapes of the derivatives in x and T."""
    return like_first(x), temperature.new_empty(())


UPSTREAM = "Tensor grad_step, Tensor grad_energy, Tensor energy"


@graph_operator(
    "eamp::fused_step_backward", f"{STEP}, {UPSTREAM}", like_derivatives, "(Tensor, Tensor)"
)
def _fused_step_backward(
    x: Tensor,
    c: Tensor,
    temperature: Tensor,
    factor: float,
    grad_step: Tensor,
    grad_energy: Tensor,
    energy: Tensor,
    backend: Backend,
    csr: CSR,
) -> tuple[Tensor, Tensor]:
    given = StepInput(widen(x), csr, c, temperature.item(), factor)
    wrt_x, wrt_t = backend.fused().backward(given, widen(grad_step), grad_energy, energy)
    return wrt_x.to(x.dtype), wrt_t.to(temperature)


_fused_step.differentiated(_backward, _save)


@graph_operator(
    "eamp::add_step",
    "Tensor base, Tensor x, Tensor? inward, Tensor c, float temperature, float factor, "
    "bool scale_free",
    like_first,
    constants=6,
)
def _add_step(
    base: Tensor,
    x: Tensor,
    inward: Tensor | None,
    c: Tensor,
    temperature: float,
    factor: float,
    scale_free: bool,
    backend: Backend,
    csr: CSR,
) -> Tensor:
    given = StepInput(widen(x), csr, c, temperature, factor)
    out = backend.fused().added(given, widen(base), inward, scale_free)
    return in_dtype(out, base.dtype)


def _save_nothing(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pass


_add_step.differentiated(lambda ctx, grad: (grad, *(None,) * 11), _save_nothing)
