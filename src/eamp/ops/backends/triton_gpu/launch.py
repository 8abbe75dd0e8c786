"""The GPU backend: the Triton kernels on torch's tensors."""

from typing import Any

import torch
from torch import Tensor
from triton import JITFunction, cdiv, next_power_of_2

from eamp.graph import CSR
from eamp.ops.backends import Backend
from eamp.ops.backends.triton_gpu import kernels
from eamp.ops.precision import accumulate_dtype

# The sizes of tiles are guesses: the kernels have never run on a GPU.
LARGEST_TILE = 256  # edges × features that a program holds at a time
MOST_FEATURES, MOST_EDGES = 128, 32


def tile(features: int) -> tuple[int, int]:
    """Return edges and features of a tile, powers of two: fewer features, more edges."""
    wide = min(next_power_of_2(max(features, 1)), MOST_FEATURES)
    return min(LARGEST_TILE // wide, MOST_EDGES), wide


def launch(
    kernel: Any, csr: CSR, out: Tensor, x: Tensor, *operands: Tensor | None, **flags: bool
) -> Tensor:
    """Fill ``out``, one row per node, from operands in the order of the kernel."""
    # Triton's interpreter runs on the CPU; its kernels have another type.
    if isinstance(kernel, JITFunction) and x.device.type == "cpu":
        raise ValueError(
            "the backend 'triton' needs tensors on a GPU, but these are on the CPU; use the "
            "backend 'numba' there."
        )
    if out.numel() == 0:
        return out
    n, features = x.shape
    edges, wide = tile(features)
    grid = (n, cdiv(features, wide) if out.dim() == 2 else 1)
    given = (
        None if operand is None else operand.contiguous()
        for operand in (csr.rowptr, csr.col, csr.edge_weight, *operands)
    )
    with torch.cuda.device_of(x):  # Triton launches on the current device, which may be another
        kernel[grid](*given, out, features, **flags, EDGES=edges, FEATURES=wide, num_warps=1)
    return out


def empty(*shape: int, like: Tensor) -> Tensor:
    """Return an uninitialised tensor in the dtype of sums."""
    return like.new_empty(shape, dtype=accumulate_dtype(like))


class TritonBackend(Backend):
    """The difference form on a GPU."""

    def squared_differences(self, x: Tensor, csr: CSR) -> Tensor:
        """D(x)_i = Σ_j a_ij ‖x_i − x_j‖²."""
        return launch(kernels.inner, csr, empty(x.size(0), like=x), x, x, None)

    def inner_differences(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor:
        """I(x, y)_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j)."""
        return launch(kernels.inner, csr, empty(x.size(0), like=x), x, x, y)

    def weighted_differences(
        self, q: Tensor, x: Tensor, csr: CSR, r: Tensor | None = None, y: Tensor | None = None
    ) -> Tensor:
        """W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j), plus W(r, y)."""
        return launch(kernels.weighted, csr, empty(*x.shape, like=x), x, q, x, r, y)

    def neighbour_sums(
        self, left: Tensor, x: Tensor, right: Tensor, csr: CSR, self_loops: bool
    ) -> Tensor:
        """N(l, x, r)_i = l_i (r_i x_i + Σ_j a_ij r_j x_j)."""
        return launch(
            kernels.neighbours,
            csr,
            empty(*x.shape, like=x),
            x,
            left,
            x,
            right,
            SELF_LOOPS=self_loops,
        )

    def channel_products(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor:
        """B(x, y)_i = Σ_j a_ij (x_i − x_j) ⊙ (y_i − y_j)."""
        return launch(
            kernels.channels,
            csr,
            empty(*x.shape, like=x),
            x,
            x,
            None if y is x else y,
            ADD=False,
        )

    def channel_differences(self, g: Tensor, x: Tensor, csr: CSR) -> Tensor:
        """V(g, x)_i = Σ_j a_ij (g_i + g_j) ⊙ (x_i − x_j)."""
        return launch(kernels.channels, csr, empty(*x.shape, like=x), x, x, g, ADD=True)
