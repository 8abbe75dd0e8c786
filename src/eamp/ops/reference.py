"""The equations as written, edge by edge: the oracle that every backend is tested against.

Nothing here is optimised. Loops over nodes and neighbours follow the paper's sums, in
differentiable torch scalars and vectors, so that autograd through these functions is an oracle,
too.

The first half holds the equations of the theory, the second half the sums over edges that every
backend provides. The README beside this file derives the first from the second.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from eamp.graph import CSR


def neighbours(csr: CSR, i: int) -> Iterator[tuple[int, float]]:
    """Yield ``(j, a_ij)`` for every neighbour ``j`` of node ``i``; weight 0 means no neighbour."""
    for e in range(int(csr.rowptr[i]), int(csr.rowptr[i + 1])):
        a = 1.0 if csr.edge_weight is None else float(csr.edge_weight[e])
        if a != 0:
            yield int(csr.col[e]), a


def normaliser(x: Tensor, csr: CSR) -> list[float]:
    """C_i = 1 / sqrt(k_i F) with k_i = Σ_j a_ij, and 0 for an isolated node."""
    degrees = [sum(a for _, a in neighbours(csr, i)) for i in range(x.size(0))]
    return [1.0 / math.sqrt(k * x.size(1)) if k > 0 else 0.0 for k in degrees]


def dirichlet_energy(x: Tensor, csr: CSR) -> Tensor:
    """E_i = C_i/2 · Σ_{j∈N_i} a_ij ‖x_j − x_i‖²."""
    c = normaliser(x, csr)
    energy = []
    for i in range(x.size(0)):
        total = x.new_zeros(())
        for j, a in neighbours(csr, i):
            total = total + a * ((x[j] - x[i]) ** 2).sum()
        energy.append(c[i] / 2 * total)
    return torch.stack(energy) if energy else x.new_zeros(0)


def log_boltzmann(energy: Tensor, temperature: float | Tensor, normalize: bool = False) -> Tensor:
    """Ln p_i = −E_i/T, less ln Z = ln Σ_i exp(−E_i/T) if ``normalize``."""
    log_p = -energy / temperature
    return log_p.log_softmax(0) if normalize else log_p


def boltzmann(energy: Tensor, temperature: float | Tensor, normalize: bool = False) -> Tensor:
    """p_i = exp(−E_i/T), divided by their sum if ``normalize``."""
    return torch.exp(log_boltzmann(energy, temperature, normalize))


def entropy(energy: Tensor, temperature: float | Tensor, normalize: bool = False) -> Tensor:
    """S = −Σ_i p_i ln p_i."""
    return -(
        boltzmann(energy, temperature, normalize) * log_boltzmann(energy, temperature, normalize)
    ).sum()


def entropy_gradient(
    x: Tensor,
    csr: CSR,
    temperature: float | Tensor,
    *,
    variant: str = "exact",
    normalize: bool = False,
) -> Tensor:
    """∇_{x_i} S = (1/T) Σ_{j∈N_i} a_ij (C_i P̄_i + C_j P̄_j)(x_i − x_j).

    P̄_i = p_i (1 + ln p_i), or p_i (ln p_i + S) when the distribution is normalised: there the
    derivative of Z puts S in place of the 1. ``variant="paper"`` has C_i in both places, as the
    authors' code does.
    """
    c = normaliser(x, csr)
    energy = dirichlet_energy(x, csr)
    p = boltzmann(energy, temperature, normalize)
    log_p = log_boltzmann(energy, temperature, normalize)
    p_bar = p * (log_p + (entropy(energy, temperature, True) if normalize else 1.0))
    rows = []
    for i in range(x.size(0)):
        row = torch.zeros_like(x[i])
        for j, a in neighbours(csr, i):
            c_j = c[j] if variant == "exact" else c[i]
            row = row + a * (c[i] * p_bar[i] + c_j * p_bar[j]) * (x[i] - x[j])
        rows.append(row / temperature)
    return torch.stack(rows) if rows else torch.zeros_like(x)


def hessian_vector(x: Tensor, v: Tensor, csr: CSR, temperature: float) -> Tensor:
    """T·(∇²S)v of the unnormalised entropy.

    (T·H v)_i = Σ_j a_ij (q_i+q_j)(v_i−v_j) + Σ_j a_ij (q̇_i+q̇_j)(x_i−x_j),
    q_i = C_i p_i (1 − E_i/T),  q̇_i = −(C_i p_i/T)(2 − E_i/T)·Ė_i,  Ė_i = C_i Σ_j a_ij
    (x_i−x_j)·(v_i−v_j).
    """
    c = x.new_tensor(normaliser(x, csr))
    energy = dirichlet_energy(x, csr)
    p = boltzmann(energy, temperature)
    energy_dot = c * inner_differences(x, v, csr)
    q = c * p * (1 - energy / temperature)
    q_dot = -(c * p / temperature) * (2 - energy / temperature) * energy_dot
    return weighted_differences(q, v, csr) + weighted_differences(q_dot, x, csr)


# --- The sums over edges, as every backend provides them
# --------------------------------------------------------


def squared_differences(x: Tensor, csr: CSR) -> Tensor:
    """D(x)_i = Σ_j a_ij ‖x_i − x_j‖²."""
    return inner_differences(x, x, csr)


def inner_differences(x: Tensor, y: Tensor, csr: CSR) -> Tensor:
    """I(x, y)_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j)."""
    out = x.new_zeros(x.size(0))
    for i in range(x.size(0)):
        for j, a in neighbours(csr, i):
            out[i] += a * ((x[i] - x[j]) * (y[i] - y[j])).sum()
    return out


def weighted_differences(
    q: Tensor, x: Tensor, csr: CSR, r: Tensor | None = None, y: Tensor | None = None
) -> Tensor:
    """W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j), plus W(r, y) where they are given."""
    out = torch.zeros_like(x)
    for i in range(x.size(0)):
        for j, a in neighbours(csr, i):
            out[i] += a * (q[i] + q[j]) * (x[i] - x[j])
    return out if r is None or y is None else out + weighted_differences(r, y, csr)


def neighbour_sums(left: Tensor, x: Tensor, right: Tensor, csr: CSR, self_loops: bool) -> Tensor:
    """N(l, x, r)_i = l_i (r_i x_i + Σ_j a_ij r_j x_j); r_i x_i only with ``self_loops``."""
    out = torch.zeros_like(x)
    for i in range(x.size(0)):
        if self_loops:
            out[i] += left[i] * right[i] * x[i]
        for j, a in neighbours(csr, i):
            out[i] += left[i] * a * right[j] * x[j]
    return out


def channel_products(x: Tensor, y: Tensor, csr: CSR) -> Tensor:
    """B(x, y)_i = Σ_j a_ij (x_i − x_j) ⊙ (y_i − y_j)."""
    out = torch.zeros_like(x)
    for i in range(x.size(0)):
        for j, a in neighbours(csr, i):
            out[i] += a * (x[i] - x[j]) * (y[i] - y[j])
    return out


def channel_differences(g: Tensor, x: Tensor, csr: CSR) -> Tensor:
    """V(g, x)_i = Σ_j a_ij (g_i + g_j) ⊙ (x_i − x_j)."""
    out = torch.zeros_like(x)
    for i in range(x.size(0)):
        for j, a in neighbours(csr, i):
            out[i] += a * (g[i] + g[j]) * (x[i] - x[j])
    return out
