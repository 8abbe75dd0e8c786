"""The backends: which implementation of the sums over edges runs.

A backend is one object with the six sums of :class:`Backend`. Adding one takes a file with a
subclass and a line in :data:`BACKENDS`.
"""

import functools
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from eamp.graph import CSR


class StepInput(NamedTuple):
    """The arguments of the entropy step γT∇S.

    Attributes:
        x: features ``[n, F]``.
        csr: the graph.
        c: C ``[n]``, the normaliser of the energy.
        temperature: T.
        factor: γ.
    """

    x: Tensor
    csr: CSR
    c: Tensor
    temperature: float
    factor: float


class FusedStep(Protocol):
    """The entropy step in fewer passes than the sums take; a backend may have it.

    It is that of the default variant, γT∇S = W(γq, x) with E_i = C_i/2 · D(x)_i and
    q_i = C_i e^{−E_i/T} (1 − E_i/T).
    """

    def forward(self, given: StepInput) -> tuple[Tensor, Tensor]:
        """Return γT∇S ``[n, F]`` and E ``[n]``."""

    def backward(
        self, given: StepInput, grad_step: Tensor, grad_energy: Tensor, energy: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the derivatives of :meth:`forward` in x and in T."""

    def added(
        self, given: StepInput, base: Tensor, inward: Tensor | None, scale_free: bool
    ) -> Tensor:
        """Return ``base`` + γ u ⊙ T∇S(u ⊙ x) with u = ``inward``.

        With ``scale_free``, T is in units of the mean square of x times sqrt(F).
        """


class Backend(ABC):
    """The sums over edges, on tensors of float32 or float64."""

    fused_step: FusedStep | None = None
    """The entropy step in one go; without it :mod:`eamp.ops.step` composes it from the sums."""

    def fused(self) -> FusedStep:
        """Return the fused step of a backend that is known to have one."""
        assert self.fused_step is not None, f"{type(self).__name__} has no fused step"
        return self.fused_step

    @abstractmethod
    def squared_differences(self, x: Tensor, csr: CSR) -> Tensor:
        """Return D(x)_i = Σ_j a_ij ‖x_i − x_j‖², ``[n]``."""

    @abstractmethod
    def inner_differences(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor:
        """Return I(x, y)_i = Σ_j a_ij (x_i − x_j)·(y_i − y_j), ``[n]``."""

    @abstractmethod
    def weighted_differences(
        self, q: Tensor, x: Tensor, csr: CSR, r: Tensor | None = None, y: Tensor | None = None
    ) -> Tensor:
        """Return W(q, x)_i = Σ_j a_ij (q_i + q_j)(x_i − x_j), plus W(r, y) where they are given."""

    @abstractmethod
    def neighbour_sums(
        self, left: Tensor, x: Tensor, right: Tensor, csr: CSR, self_loops: bool
    ) -> Tensor:
        """Return N(l, x, r)_i = l_i (r_i x_i + Σ_j a_ij r_j x_j).

        The first summand is there with ``self_loops`` only.
        """

    @abstractmethod
    def channel_products(self, x: Tensor, y: Tensor, csr: CSR) -> Tensor:
        """Return B(x, y)_i = Σ_j a_ij (x_i − x_j) ⊙ (y_i − y_j)."""

    @abstractmethod
    def channel_differences(self, g: Tensor, x: Tensor, csr: CSR) -> Tensor:
        """Return V(g, x)_i = Σ_j a_ij (g_i + g_j) ⊙ (x_i − x_j)."""

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
        """Return (1 − ``share``) N(l, x, r) + ``share`` · ``mixed_in`` + ``bias``.

        Both are optional. A backend that can add them in the same pass overrides this method.
        """
        out = self.neighbour_sums((1 - share) * left, x, right, csr, self_loops)
        out = out if mixed_in is None else torch.add(out, mixed_in, alpha=share)
        return out if bias is None else out + bias


def _from(module: str, name: str) -> Callable[[], Backend]:
    """Return a function that imports a backend when it is first used: Numba takes half a second."""
    return lambda: getattr(importlib.import_module(f"eamp.ops.backends.{module}"), name)()


BACKENDS: dict[str, Callable[[], Backend]] = {
    "numba": _from("numba_cpu.launch", "NumbaBackend"),
    "torch": _from("torch_csr", "TorchBackend"),
    "reference": _from("literal", "ReferenceBackend"),
    "triton": _from("triton_gpu.launch", "TritonBackend"),
    "edges": _from("edges", "EdgesBackend"),
}
"""Every backend by name."""

_forced: ContextVar[str | None] = ContextVar("eamp_backend", default=None)
# torch.compile can guard on a list, but not on a context variable: the blocks of all threads.
_blocks: list[str] = []
_lock = Lock()


@contextmanager
def backend(name: str) -> Iterator[None]:
    """Force one implementation of the sums over edges.

    It holds for the thread, or the asynchronous task, that is inside the block. Gradients of what
    is computed there are computed by the same implementation, wherever ``backward`` is called.
    Under ``torch.compile`` the block that was entered last counts, in whichever thread.

    Args:
        name: ``"numba"`` (CPU), ``"torch"`` (any device), ``"triton"`` (GPU; its kernels have
            never run on one, so they are never chosen by themselves), ``"edges"`` (any device,
            with tensors of edges × features; transforms of ``torch.func`` and forward-mode AD use
            it by themselves) or ``"reference"`` (slow, the equations as written).

    Example:
        >>> import torch, eamp
        >>> x, edge_index = torch.tensor([[0.0], [2.0]]), torch.tensor([[0, 1], [1, 0]])
        >>> with eamp.backend("reference"):
        ...     eamp.dirichlet_energy(x, edge_index)
        tensor([2., 2.])
    """
    if name not in BACKENDS:
        raise ValueError(f"no backend named {name!r}; there are {', '.join(map(repr, BACKENDS))}.")
    before = _forced.set(name)
    with _lock:
        _blocks.append(name)
    try:
        yield
    finally:
        with _lock:
            del _blocks[len(_blocks) - 1 - _blocks[::-1].index(name)]
        _forced.reset(before)


def forced() -> str | None:
    """Return the name of the forced backend, if there is one."""
    if torch.compiler.is_compiling():
        return _blocks[-1] if _blocks else None
    return _forced.get()


def choose(device: torch.device) -> str:
    """Return the name of the forced backend, or else of the default one for ``device``."""
    name = forced()
    if name is not None:
        return name
    return "numba" if device.type == "cpu" else "torch"


@functools.cache
def _loaded(make: Callable[[], Backend]) -> Backend:
    return make()


def load(name: str) -> Backend:
    """Return a backend, made on first use."""
    return _loaded(BACKENDS[name])
