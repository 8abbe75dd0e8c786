"""Energy, Boltzmann weight, entropy and its gradient: pure functions, a thin face over :mod:`eamp.ops`."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from eamp import ops
from eamp.graph import CSR, Adjacency, GraphError
from eamp.graph.edge_index_cache import csr_and_batch
from eamp.ops.part import PartCSR, not_for_parts

Variant: TypeAlias = Literal["exact", "paper"]


def dirichlet_energy(x: Tensor, graph: Adjacency, *, check_finite: bool = False) -> Tensor:
    r"""Dirichlet energy of every node, :math:`E_i = \frac{C_i}{2} \sum_j a_{ij} \lVert x_j - x_i \rVert^2` with
    :math:`C_i = 1/\sqrt{k_i F}`.

    Args:
        x: features, ``[n, F]``.
        graph: an :class:`eamp.Graph`, or anything one can be made of.
        check_finite: raise an error naming the first row of ``x`` that holds NaN or infinity.

    Returns:
        Energies, ``[n]``; exactly 0 for isolated nodes. Half-precision features give float32 energies.

    Example:
        >>> import torch, eamp
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> eamp.dirichlet_energy(torch.tensor([[0.0], [1.0], [3.0]]), edge_index)
        tensor([0.5000, 1.7678, 2.0000])
    """
    csr, _, _ = prepare(x, graph, check_finite)
    return energy_of(x, csr)


def boltzmann(
    x: Tensor,
    graph: Adjacency,
    temperature: float | Tensor = 10.0,
    *,
    normalize: bool = False,
    check_finite: bool = False,
) -> Tensor:
    r"""Boltzmann weight of every node, :math:`p_i = e^{-E_i/T}`.

    Args:
        x: features, ``[n, F]``.
        graph: an :class:`eamp.Graph`, or anything one can be made of.
        temperature: T > 0, a number or a one-element tensor.
        normalize: divide by the sum over the nodes (of each graph, where the graph is a batch).
        check_finite: see :func:`dirichlet_energy`.

    Example:
        >>> import torch, eamp
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> eamp.boltzmann(torch.tensor([[0.0], [1.0], [3.0]]), edge_index, temperature=1.0, normalize=True)
        tensor([0.6646, 0.1871, 0.1483])
    """
    csr, batch, num_graphs = prepare(x, graph, check_finite)
    check_normalize(normalize, csr)
    return log_boltzmann(
        energy_of(x, csr), check_temperature(temperature), normalize, batch, num_graphs
    ).exp()


def entropy(
    x: Tensor,
    graph: Adjacency,
    temperature: float | Tensor = 10.0,
    *,
    normalize: bool = False,
    check_finite: bool = False,
) -> Tensor:
    r"""Shannon entropy of the Boltzmann weights, :math:`S = -\sum_i p_i \ln p_i`; arguments as in :func:`boltzmann`.

    Unnormalised, every node adds :math:`\frac{E_i}{T} e^{-E_i/T}`, which is largest, 1/e, where :math:`E_i = T`. Normalised, the
    entropies of the graphs in a batch are added up.

    Example:
        >>> import torch, eamp
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> eamp.entropy(torch.tensor([[0.0], [1.0], [3.0]]), edge_index, temperature=2.0)
        tensor(0.9278)
    """
    csr, batch, num_graphs = prepare(x, graph, check_finite)
    check_normalize(normalize, csr)
    log_p = log_boltzmann(
        energy_of(x, csr), check_temperature(temperature), normalize, batch, num_graphs
    )
    return -ops.node_sum(log_p.exp() * log_p, csr)


def entropy_gradient(
    x: Tensor,
    graph: Adjacency,
    temperature: float | Tensor = 10.0,
    *,
    variant: Variant = "exact",
    normalize: bool = False,
    check_finite: bool = False,
) -> Tensor:
    r"""Gradient of the entropy in every node's features,
    :math:`\nabla_{x_i} S = \frac{1}{T} \sum_j a_{ij} (q_i + q_j)(x_i - x_j)` with :math:`q_i = C_i\, p_i (1 - E_i/T)`.

    It costs two passes over the edges and can itself be differentiated, in ``x`` and in the temperature, at any order.

    Args:
        x: features, ``[n, F]``.
        graph: an :class:`eamp.Graph`, or anything one can be made of.
        temperature: T > 0, a number or a one-element tensor.
        variant: ``"exact"``, or ``"paper"`` for the published formula, which has :math:`C_i` in place of :math:`C_j` and is
            exact on regular graphs only.
        normalize: of the entropy of the normalised distribution.
        check_finite: see :func:`dirichlet_energy`.

    Returns:
        ``[n, F]``; exactly 0 for isolated nodes.

    Example:
        >>> import torch, eamp
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> x = torch.tensor([[0.0], [1.0]])              # E = 1/2 at both nodes, below T: they are pushed apart
        >>> eamp.entropy_gradient(x, edge_index, temperature=1.0)
        tensor([[-0.6065],
                [ 0.6065]])
    """
    csr, batch, num_graphs = prepare(x, graph, check_finite)
    temperature = check_temperature(temperature)
    if isinstance(temperature, Tensor):
        return (
            entropy_step(x, csr, temperature, variant, normalize, batch, num_graphs)[0]
            / temperature
        )
    return entropy_step(
        x, csr, temperature, variant, normalize, batch, num_graphs, factor=1 / temperature
    )[0]


# --- The pieces, for layers that need them one by one -----------------------------------------------------------------


def energy_of(x: Tensor, csr: CSR) -> Tensor:
    """E_i = C_i/2 · D(x)_i."""
    return ops.normaliser(x, csr.rsqrt_degree) * (ops.squared_differences(x, csr) * 0.5)


def log_boltzmann(
    energy: Tensor,
    temperature: float | Tensor,
    normalize: bool,
    batch: Tensor | None,
    num_graphs: int,
) -> Tensor:
    """Ln p_i = −E_i/T, less ln Z of the node's graph if ``normalize``."""
    log_p = -energy / temperature
    if not normalize or log_p.numel() == 0:
        return log_p
    if batch is None:
        return log_p.log_softmax(0)
    top = (
        log_p.detach()
        .new_full((num_graphs,), -math.inf)
        .scatter_reduce(0, batch, log_p.detach(), "amax")
    )
    z = log_p.new_zeros(num_graphs).index_add(0, batch, (log_p - top[batch]).exp())
    return log_p - (top + z.log())[batch]


def entropy_drive(
    energy: Tensor,
    temperature: float | Tensor,
    normalize: bool,
    batch: Tensor | None,
    num_graphs: int,
) -> Tensor:
    """P̄_i = T ∂S/∂E_i: p_i (1 − E_i/T), or p_i (ln p_i + S) with the S of the node's graph if ``normalize``."""
    log_p = log_boltzmann(energy, temperature, normalize, batch, num_graphs)
    p = log_p.exp()
    if not normalize:
        return p * (1 + log_p)
    summands = -p * log_p
    if batch is None:
        return p * (log_p + summands.sum())
    return p * (log_p + summands.new_zeros(num_graphs).index_add(0, batch, summands)[batch])


def entropy_step(
    x: Tensor,
    csr: CSR,
    temperature: float | Tensor,
    variant: Variant = "exact",
    normalize: bool = False,
    batch: Tensor | None = None,
    num_graphs: int = 1,
    factor: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """``factor`` · T∇S, and E. T∇S = W(q, x) with q = C ⊙ P̄; the paper's formula is C ⊙ W(P̄, x)."""
    if variant == "exact" and not normalize:
        return ops.entropy_step(x, csr, temperature, factor)
    check_normalize(normalize, csr)
    energy = energy_of(x, csr)
    drive = entropy_drive(energy, temperature, normalize, batch, num_graphs) * factor
    c = ops.normaliser(x, csr.rsqrt_degree)
    if variant == "exact":
        return ops.weighted_differences(c * drive, x, csr), energy
    return c.to(x.dtype).unsqueeze(1) * ops.weighted_differences(drive, x, csr), energy


# --- Checks -----------------------------------------------------------------------------------------------------------


def prepare(
    x: Tensor, graph: Adjacency, check_finite: bool = False, symmetrize: bool = False
) -> tuple[CSR, Tensor | None, int]:
    """CSR, batch vector and number of graphs, once ``x`` is known to fit the graph."""
    if x.dim() != 2 or not x.is_floating_point():
        hint = " Pass x.unsqueeze(1) for one feature per node." if x.dim() == 1 else ""
        raise GraphError(
            f"x must hold real features of shape [num_nodes, num_features]; got {list(x.shape)} of {x.dtype}.{hint}"
        )
    csr, batch, num_graphs = csr_and_batch(graph, x.size(0), symmetrize)
    if csr.degree.device != x.device:
        raise GraphError(
            f"x is on {x.device} but the graph on {csr.degree.device}; move one with .to({str(x.device)!r})."
        )
    if check_finite and not bool(torch.isfinite(x).all()):
        bad = (~torch.isfinite(x)).any(1).nonzero()
        raise GraphError(
            f"x holds NaN or infinity in {bad.numel()} of {x.size(0)} rows; the first is row {int(bad[0])}."
        )
    return csr, batch, num_graphs


def check_normalize(normalize: bool, csr: CSR) -> None:
    """No distribution over the nodes of several processes."""
    if normalize and isinstance(csr, PartCSR):
        raise not_for_parts("normalize=True")


def check_temperature(temperature: float | Tensor) -> float | Tensor:
    """T > 0, as a number or a 0-dimensional tensor."""
    if isinstance(temperature, Tensor):
        if temperature.numel() != 1:
            raise ValueError(
                f"temperature must be one number; got a tensor of shape {list(temperature.shape)}."
            )
        temperature = temperature.reshape(())
        if torch.compiler.is_compiling() or temperature.device.type != "cpu":
            return temperature  # reading the value would break the graph or stall the queue
    if not isinstance(temperature, Tensor | int | float):
        raise ValueError(f"temperature must be a number > 0, but is {temperature!r}.")
    if not temperature > 0:
        raise ValueError(
            f"temperature must be > 0, but is {float(temperature)}; it is the energy per node that the entropy aims at."
        )
    return temperature
