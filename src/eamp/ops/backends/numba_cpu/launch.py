"""The CPU backend: the compiled kernels on torch's tensors and threads."""

import functools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eamp.graph import CSR
from eamp.ops.backends import Backend, StepInput
from eamp.ops.backends.numba_cpu.block import FACTOR, TEMPERATURE, TICKET
from eamp.ops.backends.numba_cpu.compiling import compiled
from eamp.ops.backends.numba_cpu.kernels import edge_kernels
from eamp.ops.backends.numba_cpu.row_kernels import row_kernels
from eamp.ops.backends.numba_cpu.rows import OPTIONS
from eamp.ops.backends.numba_cpu.threads import run
from eamp.ops.memory import large_empty, large_empty_like
from eamp.ops.precision import TINY, in_dtype

PARTS_PER_THREAD = 8  # so many that a thread which is held up leaves its share to the others


def launch(
    names: tuple[str, ...],
    csr: CSR,
    x: Tensor,
    flag: bool = False,
    factor: float = 1.0,
    temperature: float = 1.0,
    *,
    y: Tensor | None = None,
    q: Tensor | None = None,
    r: Tensor | None = None,
    per_edge: Tensor | None = None,
    per_node: Tensor | None = None,
    scale: Tensor | None = None,
    energy: Tensor | None = None,
    out: Tensor | None = None,
    base: Tensor | None = None,
    unit: Tensor | None = None,
    bias: Tensor | None = None,
) -> None:
    """Run tasks one after the other on the same operands.

    Operands that a task writes to must be contiguous and of the dtype of ``x``.
    """
    if not (x.is_cpu and csr.rowptr.is_cpu):
        raise ValueError(
            f"the backend 'numba' needs features and graph on the CPU, but they are on {x.device} "
            f"and {csr.rowptr.device}; use the backend 'torch' there."
        )
    operands: list[Tensor] = []  # converted ones live here until the tasks are done
    addresses: list[int] = []
    given = (*csr, q, r, x, y, per_edge, per_node, scale, energy, out, base, unit, bias)
    for slot, operand in enumerate(given):
        if operand is None:
            addresses.append(0)
            continue
        # Operands of another dtype are only read; results have the dtype of x.
        operand = operand if slot < 3 else in_dtype(operand, x.dtype)
        operands.append(operand.contiguous())
        addresses.append(operands[-1].data_ptr())
    parts = PARTS_PER_THREAD * torch.get_num_threads()
    real = np.float64 if x.dtype == torch.float64 else np.float32
    index = np.int64 if csr.col.dtype == torch.int64 else np.int32
    block = np.array([0, parts, *x.shape, csr.col.numel(), *addresses, flag, 0, 0], np.int64)
    block.view(np.float64)[TEMPERATURE : FACTOR + 1] = temperature, factor
    for name in names:
        block[TICKET] = 0
        run(task(name, real, index), block)


@functools.cache
def task(name: str, real: Any, index: Any) -> Any:
    """Return one task, compiled for one type of features and one of indices."""
    kernels = {**edge_kernels(real, index), **row_kernels(real, index)}
    return compiled(kernels[name], **OPTIONS)


class NumbaBackend(Backend):
    """The difference form on the CPU; sums and fused step are described in the base classes."""

    def __init__(self) -> None:
        self.fused_step = NumbaStep()

    def squared_differences(self, x: Tensor, csr: CSR) -> Tensor:
        """D(x)_i = Σ_j a_ij ‖x_i − x_j‖²."""
        out, per_edge = large_empty(x.size(0), x), large_empty(csr.col.numel(), x)
        launch(("squared", "row_sums"), csr, x, per_edge=per_edge, per_node=out)
        return out

    def inner_differences(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor:
        """I(x, y)_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j)."""
        out, per_edge = large_empty(x.size(0), x), large_empty(csr.col.numel(), x)
        launch(("inner", "row_sums"), csr, x, y=y, per_edge=per_edge, per_node=out)
        return out

    def weighted_differences(
        self, q: Tensor, x: Tensor, csr: CSR, r: Tensor | None = None, y: Tensor | None = None
    ) -> Tensor:
        """W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j), plus W(r, y) in the same pass."""
        out = large_empty_like(x)
        launch(("weighted" if y is None else "weighted_pair",), csr, x, y=y, q=q, r=r, out=out)
        return out

    def neighbour_sums(
        self, left: Tensor, x: Tensor, right: Tensor, csr: CSR, self_loops: bool
    ) -> Tensor:
        """N(l, x, r)_i = l_i (r_i x_i + Σ_j a_ij r_j x_j)."""
        return self.mixed_neighbour_sums(left, x, right, csr, self_loops, None, 0.0, None)

    def mixed_neighbour_sums(
        self,
        left: Tensor,
        x: Tensor,
        right: Tensor,
        csr: CSR,
        self_loops: bool,
        mixed_in: Tensor | None,
        share: float,
        bias: Tensor | None,
    ) -> Tensor:
        """(1 − share) N(l, x, r) + share · mixed_in + bias, in one pass."""
        out = large_empty_like(x)
        task, options = ("neighbours",), (self_loops, share)
        launch(task, csr, x, *options, y=mixed_in, q=left, r=right, out=out, bias=bias)
        return out

    def channel_products(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor:
        """B(x, y)_i = Σ_j a_ij (x_i − x_j) ⊙ (y_i − y_j)."""
        out = large_empty_like(x)
        launch(("channel_products",), csr, x, y=y, out=out)
        return out

    def channel_differences(self, g: Tensor, x: Tensor, csr: CSR) -> Tensor:
        """V(g, x)_i = Σ_j a_ij (g_i + g_j) ⊙ (x_i − x_j)."""
        out = large_empty_like(x)
        launch(("channel_products",), csr, x, y=g, out=out, flag=True)
        return out


class NumbaStep:
    """The entropy step: D, then E and q, then W, in one launch of compiled code each."""

    def forward(
        self, given: StepInput, base: Tensor | None = None, outward: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return γT∇S and E; with ``base``, that plus the step times ``outward`` instead."""
        x, csr, c, temperature, factor = given
        out, energy, q = large_empty_like(x), large_empty(x.size(0), x), large_empty(x.size(0), x)
        operands: dict[str, Tensor | None]
        operands = {"q": q, "per_node": energy, "scale": c, "out": out, "base": base}
        operands |= {"unit": outward, "per_edge": large_empty(csr.col.numel(), x)}
        tasks = ("squared", "drive", "weighted")
        launch(tasks, csr, x, False, factor, temperature, **operands)
        return out, energy

    def backward(
        self, given: StepInput, grad_step: Tensor, grad_energy: Tensor, energy: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the derivatives of :meth:`forward` in x and in T."""
        x, csr, c, temperature, factor = given
        out, q, r = large_empty_like(x), large_empty_like(energy), large_empty_like(energy)
        per_node = grad_energy.clone(memory_format=torch.contiguous_format)
        operands: dict[str, Tensor | None]
        operands = {"q": q, "r": r, "per_node": per_node, "scale": c, "energy": energy}
        operands |= {"y": grad_step, "per_edge": large_empty(csr.col.numel(), x)}
        launch(("inner", "drive_backward"), csr, x, False, factor, temperature, **operands)
        launch(("weighted_pair",), csr, grad_step, y=x, q=q, r=r, out=out)
        return out, per_node.sum()

    def added(
        self, given: StepInput, base: Tensor, inward: Tensor | None, scale_free: bool
    ) -> Tensor:
        """Return base + γ u ⊙ T∇S(u ⊙ x), with u = ``inward``."""
        x, csr, _, temperature, _ = given
        if inward is not None or scale_free:
            seen, square = large_empty_like(x), large_empty(x.size(0), x)
            unit = torch.ones_like(square) if inward is None else inward
            launch(("enter",), csr, x, per_node=square, unit=unit, out=seen)
            if scale_free:
                mean = square.sum(dtype=torch.float64).item() / max(x.numel(), 1)
                temperature *= (mean if TINY < mean < math.inf else 1.0) * math.sqrt(x.size(1))
            temperature = min(temperature, torch.finfo(x.dtype).max)
            given = given._replace(x=seen, temperature=temperature)
        return self.forward(given, base, inward)[0]
