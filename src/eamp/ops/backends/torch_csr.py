"""The matrix form: products of a constant sparse matrix with dense ones, wherever torch has them.

Expanding ‖x_i − x_j‖² into squares and products cancels once the embedding collapses: in float32,
with an offset of 1 and a spread of 1e-4, energies come out negative. So features are centred and
everything is accumulated in float64, in which the differences of float32 numbers survive.
"""

import warnings

import torch
from torch import Tensor

from eamp.graph import CSR
from eamp.graph.csr import unpadded
from eamp.ops.backends import Backend

SAMPLE = 9  # rows whose median features are centred about


def adjacency(csr: CSR, device: torch.device) -> Tensor:
    """Return A as a torch CSR matrix in float64."""
    csr = unpadded(csr)
    value = (
        torch.ones(csr.col.numel(), dtype=torch.float64, device=device)
        if csr.edge_weight is None
        else csr.edge_weight.double()
    )
    n = csr.rowptr.numel() - 1
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Sparse (CSR tensor support|invariant checks)", category=UserWarning
        )
        return torch.sparse_csr_tensor(csr.rowptr, csr.col, value, (n, n), check_invariants=False)


def centred(x: Tensor) -> Tensor:
    """X about the median of a few rows, in float64; no difference between rows changes.

    Unlike the mean, the median is exact for a constant embedding, and a single row of NaN, infinite
    or huge numbers does not spoil those of all others.
    """
    x = x.double()
    some = x[:: max(x.size(0) // SAMPLE, 1)].sort(0).values
    return x - some[some.size(0) // 2].nan_to_num(0.0, 0.0, 0.0) if x.size(0) else x


class TorchBackend(Backend):
    """Products with a constant sparse matrix, on any device."""

    def squared_differences(self, x: Tensor, csr: CSR) -> Tensor:
        """D = k⊙‖x‖² + A‖x‖² − 2 x·(AX), from one product A[X, ‖X‖², 1]."""
        z = centred(x)
        square = (z * z).sum(1, keepdim=True)
        ax, a_square, degree = (
            adjacency(csr, x.device) @ torch.cat([z, square, torch.ones_like(square)], 1)
        ).split([z.size(1), 1, 1], 1)
        return (
            (degree * square + a_square - 2 * (z * ax).sum(1, keepdim=True))
            .squeeze(1)
            .clamp_(min=0)
            .to(x.dtype)
        )

    def inner_differences(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor:
        """I = k⊙(x·y) + A(x·y) − x·(AY) − y·(AX), from one product A[X, Y, x·y, 1]."""
        u, v = centred(x), centred(y)
        dot = (u * v).sum(1, keepdim=True)
        f = x.size(1)
        au, av, a_dot, degree = (
            adjacency(csr, x.device) @ torch.cat([u, v, dot, torch.ones_like(dot)], 1)
        ).split([f, f, 1, 1], 1)
        return (
            (degree * dot + a_dot - (u * av + v * au).sum(1, keepdim=True)).squeeze(1).to(x.dtype)
        )

    def weighted_differences(
        self, q: Tensor, x: Tensor, csr: CSR, r: Tensor | None = None, y: Tensor | None = None
    ) -> Tensor:
        """W = (q⊙k + Aq)⊙X − q⊙(AX) − A(q⊙X), from one product A[X, q⊙X, q, 1]; plus W(r, y)."""
        z, w = centred(x), q.double().unsqueeze(1)
        f = x.size(1)
        az, awz, aw, degree = (
            adjacency(csr, x.device) @ torch.cat([z, w * z, w, torch.ones_like(w)], 1)
        ).split([f, f, 1, 1], 1)
        out = ((w * degree + aw) * z - w * az - awz).to(x.dtype)
        return out if r is None or y is None else out + self.weighted_differences(r, y, csr)

    def neighbour_sums(
        self, left: Tensor, x: Tensor, right: Tensor, csr: CSR, self_loops: bool
    ) -> Tensor:
        """N = l⊙(r⊙X + A(r⊙X)), the first summand only with ``self_loops``."""
        scaled = right.double().unsqueeze(1) * x.double()
        total = adjacency(csr, x.device) @ scaled
        return (left.double().unsqueeze(1) * (total + scaled if self_loops else total)).to(x.dtype)

    def channel_products(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor:
        """B = k⊙X⊙Y + A(X⊙Y) − X⊙(AY) − Y⊙(AX), from one product A[X, Y, X⊙Y, 1]."""
        u, v = centred(x), centred(y)
        f = x.size(1)
        ones = torch.ones_like(u[:, :1])
        au, av, auv, degree = (adjacency(csr, x.device) @ torch.cat([u, v, u * v, ones], 1)).split(
            [f, f, f, 1], 1
        )
        out = degree * u * v + auv - u * av - v * au  # squares are never negative
        return (out.clamp(min=0) if x is y else out).to(x.dtype)

    def channel_differences(self, g: Tensor, x: Tensor, csr: CSR) -> Tensor:
        """V = (k⊙G + AG)⊙X − G⊙(AX) − A(G⊙X), from one product A[X, G⊙X, G, 1]."""
        z, w = centred(x), g.double()
        f = x.size(1)
        ones = torch.ones_like(z[:, :1])
        az, awz, aw, degree = (adjacency(csr, x.device) @ torch.cat([z, w * z, w, ones], 1)).split(
            [f, f, f, 1], 1
        )
        return ((degree * w + aw) * z - w * az - awz).to(x.dtype)
