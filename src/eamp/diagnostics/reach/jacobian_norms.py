"""Absolute sums of a model's Jacobian, by vector-Jacobian products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module

from eamp.diagnostics.reach.receptive_field import Array

Run = Callable[[Module, Any], Any]
"""A function that calls a model with its data."""


class Outputs(NamedTuple):
    """The outputs ``[s, C]`` at some nodes, and the features that they can be differentiated in."""

    out: Tensor
    x: Tensor


class Derivative:
    """The model as a function of its features, and the absolute values of its derivatives."""

    def __init__(self, model: Module, run: Run, projections: int | None, seed: int) -> None:
        self.model, self.run, self.projections = model, run, projections
        self.generator = torch.Generator().manual_seed(seed)
        self.exact = True  # until a wide output is seen

    def forward(self, given: Any, x: Tensor, nodes: Tensor) -> Outputs:
        """Return the outputs at ``nodes``."""
        out = self.run(self.model, given)
        out = out[0] if isinstance(out, tuple | list) else out
        if not isinstance(out, Tensor) or out.size(0) != x.size(0):
            shape = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise ValueError(
                f"influence needs one output row per node, but {x.size(0)} nodes gave {shape}. "
                "Pass run=lambda model, data: ... that returns the embedding of the nodes."
            )
        return Outputs(out.reshape(len(out), -1)[nodes.to(out.device)], x)

    def absolute(self, outputs: Outputs, places: Sequence[int]) -> Array:
        """Return Σ_cc' |∂out_c/∂x_uc'| for every row u of x, where out is that of ``places``.

        No row of x may have an effect on several of the places.
        """
        out, x = outputs
        if self.projections is None or out.size(1) <= self.projections:
            total = torch.zeros(x.size(0), dtype=torch.float64)
            for channel in range(out.size(1)):
                weights = torch.zeros_like(out)
                weights[list(places), channel] = 1
                total += self.gradient(outputs, weights).abs().sum(1).double().cpu()
            return total.numpy()
        self.exact = False
        logarithms = torch.zeros(x.shape, dtype=torch.float64)
        for _ in range(self.projections):
            weights = torch.zeros_like(out)
            draws = torch.empty(len(places), out.size(1), dtype=torch.float64)
            weights[list(places)] = draws.cauchy_(generator=self.generator).to(out)
            logarithms += self.gradient(outputs, weights).double().abs().log().cpu()
        # A sum of Cauchy variables with weights a is a Cauchy variable with scale ‖a‖₁, and
        # |Cauchy|^(1/m) has the expectation scale^(1/m) / cos(π/2m).
        unbiased = math.cos(math.pi / (2 * self.projections)) ** self.projections
        return unbiased * (logarithms / self.projections).exp().sum(1).numpy()

    def gradient(self, outputs: Outputs, weights: Tensor) -> Tensor:
        """Return the vector-Jacobian product."""
        (found,) = torch.autograd.grad(
            outputs.out, outputs.x, weights, retain_graph=True, allow_unused=True
        )
        return torch.zeros_like(outputs.x) if found is None else found
