"""The sums over edges in torch's own operators, which gather both ends of every edge.

All transforms of ``torch.func`` and forward-mode AD work on them. Other backends are opaque to
those, so inside a transform this one takes their place. It holds tensors of edges × features.
"""

import torch
from torch import Tensor

from eamp.graph import CSR
from eamp.graph.csr import rows_of_entries, unpadded
from eamp.ops.backends import Backend


def ends(x: Tensor, csr: CSR) -> tuple[Tensor, Tensor]:
    """Return the values at both ends of every edge."""
    csr = unpadded(csr)
    return x[rows_of_entries(csr)], x[csr.col.long()]


def differences(x: Tensor, csr: CSR) -> Tensor:
    """Return x_i − x_j of every edge."""
    x_i, x_j = ends(x, csr)
    return x_i - x_j


def summed(values: Tensor, csr: CSR) -> Tensor:
    """Return Σ_j a_ij v_ij at every node."""
    csr = unpadded(csr)
    if csr.edge_weight is not None:
        weight = csr.edge_weight.to(values.dtype)
        weight = weight.reshape(-1, *(1,) * (values.dim() - 1))
        values = torch.where(weight == 0, weight, weight * values)  # 0 however large the value is
    zeros = values.new_zeros(csr.rowptr.numel() - 1, *values.shape[1:])
    return zeros.index_add(0, rows_of_entries(csr), values)


class EdgesBackend(Backend):
    """The difference form in torch's own operators, on any device."""

    def squared_differences(self, x: Tensor, csr: CSR) -> Tensor:
        """D(x)_i = Σ_j a_ij ‖x_i − x_j‖²."""
        return summed(differences(x, csr).square().sum(1), csr)

    def inner_differences(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor:
        """I(x, y)_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j)."""
        return summed((differences(x, csr) * differences(y, csr)).sum(1), csr)

    def weighted_differences(
        self, q: Tensor, x: Tensor, csr: CSR, r: Tensor | None = None, y: Tensor | None = None
    ) -> Tensor:
        """W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j), plus W(r, y)."""
        out = self.channel_differences(q.unsqueeze(1), x, csr)
        return out if r is None or y is None else out + self.weighted_differences(r, y, csr)

    def neighbour_sums(
        self, left: Tensor, x: Tensor, right: Tensor, csr: CSR, self_loops: bool
    ) -> Tensor:
        """N(l, x, r)_i = l_i (r_i x_i + Σ_j a_ij r_j x_j)."""
        scaled = right.unsqueeze(1) * x
        total = summed(scaled[unpadded(csr).col.long()], csr)
        return left.unsqueeze(1) * (total + scaled if self_loops else total)

    def channel_products(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor:
        """B(x, y)_i = Σ_j a_ij (x_i − x_j) ⊙ (y_i − y_j)."""
        return summed(differences(x, csr) * differences(y, csr), csr)

    def channel_differences(self, g: Tensor, x: Tensor, csr: CSR) -> Tensor:
        """V(g, x)_i = Σ_j a_ij (g_i + g_j) ⊙ (x_i − x_j)."""
        g_i, g_j = ends(g, csr)
        return summed((g_i + g_j) * differences(x, csr), csr)
