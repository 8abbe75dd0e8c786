"""What the linear maps inside a layer returned, so that a second run need not compute it again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch.utils.hooks import RemovableHandle
from torch_geometric.nn.dense.linear import Linear as LinearOfPyG

LINEAR = (Linear, LinearOfPyG)


class Result(NamedTuple):
    """What a linear map took and returned, with the version of the latter."""

    given: Tensor
    out: Tensor
    version: int


class LinearMaps:
    """The linear maps of some layers, and what they returned in the layer that ran last.

    A subclass of a linear map may compute something else, and so may one that has hooks or was
    given another ``forward``: these are not watched.
    """

    def __init__(self) -> None:
        self.results: dict[Module, Result] = {}

    def watch(self, layer: Module) -> list[RemovableHandle]:
        """Keep the results of the linear maps in ``layer``, until :meth:`clear`."""
        linear = [m for m in layer.modules() if type(m) in LINEAR]
        plain = [m for m in linear if not m._forward_hooks and "forward" not in m.__dict__]
        return [m.register_forward_hook(self._keep) for m in plain]

    def _keep(self, module: Module, args: tuple[Any, ...], out: Tensor) -> None:
        if args and isinstance(args[0], Tensor) and not out.is_inference():
            self.results[module] = Result(args[0], out.detach(), out._version)

    def clear(self) -> None:
        """Forget the results."""
        self.results = {}

    @contextmanager
    def reused(self, x: Tensor, again: Tensor) -> Iterator[None]:
        """Return the results for ``x`` to those who pass ``again``, a tensor of equal values."""
        known = {
            module: result
            for module, result in self.results.items()
            # The layer may have changed the result in place, as an activation does.
            if result.given is x and result.out._version == result.version
        }
        try:
            for module, result in known.items():
                module.forward = partial(recall, module, again, result.out)
            yield
        finally:
            for module in known:
                del module.forward


def recall(module: Module, known: Tensor, out: Tensor, x: Tensor) -> Tensor:
    """Return ``out`` for the input ``known``, and what ``module`` computes for any other."""
    remembered: Any = Remembered.apply
    found: Tensor = (
        remembered(x, module.weight, out) if x is known else type(module).forward(module, x)
    )
    return found


class Remembered(torch.autograd.Function):
    """A linear map whose result is known, and whose derivative in x is not."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, out: Tensor) -> Tensor:
        """Return the result, XWᵀ + b."""
        ctx.save_for_backward(weight)
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return G ↦ GW."""
        (weight,) = ctx.saved_tensors
        return grad @ weight, None, None
