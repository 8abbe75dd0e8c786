"""Which implementation of the sums over edges runs."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, cast

import torch
from torch import Tensor

from eamp.graph import CSR


class Backend(Protocol):
    """The sums over edges, on tensors of float32 or float64."""

    def squared_differences(self, x: Tensor, csr: CSR) -> Tensor: ...
    def inner_differences(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor: ...
    def weighted_differences(
        self, q: Tensor, x: Tensor, csr: CSR, r: Tensor | None = None, y: Tensor | None = None
    ) -> Tensor: ...
    def neighbour_sums(
        self, left: Tensor, x: Tensor, right: Tensor, csr: CSR, self_loops: bool
    ) -> Tensor: ...
    def channel_products(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor: ...
    def channel_differences(self, g: Tensor, x: Tensor, csr: CSR) -> Tensor: ...


MODULES = {
    "numba": "eamp.ops.backends.numba_cpu.launch",
    "torch": "eamp.ops.backends.torch_csr",
    "reference": "eamp.ops.reference",
    "triton": "eamp.ops.backends.triton_gpu.launch",
}

# Plain globals, which torch.compile can guard on.
_forced: str | None = None
_has_triton = (
    importlib.util.find_spec("triton") is not None
)  # torch brings it where it is built for GPUs; looked for, not imported


@contextmanager
def backend(name: str) -> Iterator[None]:
    """Force one implementation: ``"numba"`` (CPU), ``"triton"`` (GPU), ``"torch"`` (any device) or ``"reference"`` (slow, literal).

    What is computed inside is also differentiated by the same implementation, wherever ``backward`` is called.

    Example:
        >>> import torch, eamp
        >>> x, edge_index = torch.tensor([[0.0], [2.0]]), torch.tensor([[0, 1], [1, 0]])
        >>> with eamp.backend("reference"):
        ...     eamp.dirichlet_energy(x, edge_index)
        tensor([2., 2.])
    """
    global _forced
    if name not in MODULES:
        raise ValueError(f"no backend named {name!r}; there are {', '.join(map(repr, MODULES))}.")
    previous, _forced = _forced, name
    try:
        yield
    finally:
        _forced = previous


def choose(device: torch.device) -> str:
    """The forced backend, or the kernels for ``device``, or the matrix form where there are none."""
    if _forced is not None:
        return _forced
    if device.type == "cpu":
        return "numba"
    return "triton" if device.type == "cuda" and _has_triton else "torch"


@functools.cache
def load(name: str) -> Backend:
    """Import a backend, on first use: Numba alone takes half a second."""
    return cast(Backend, importlib.import_module(MODULES[name]))
