"""Layers that are a stretch of time: a vector field on node features, integrated by torchdiffeq."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, get_args

import torch
from torch import Tensor
from torch.nn import Module

from eamp.functional import Variant, check_temperature, entropy_gradient
from eamp.graph import Adjacency
from eamp.nn.conv.gcn_conv import MessagePassingLayer
from eamp.nn.entropic import Entropy
from eamp.nn.step.options import EntropyStep

FIXED_STEP = ("euler", "midpoint", "rk4")
ADAPTIVE = ("dopri5", "dopri8", "bosh3", "adaptive_heun")


@dataclass(frozen=True)
class EntropyForce:
    r"""The term :math:`\lambda \nabla S(\mathbf{X})` on the right-hand side of a differential equation.

    It is the gradient itself, as the paper's appendix has it. :class:`EntropyAware` steps along :math:`T \nabla S`: its weight times
    ``temperature`` is the weight to use here for the same push per unit of time.

    Args:
        weight: :math:`\lambda`. Zero leaves the equation as it is.
        temperature: :math:`T > 0`, the energy per node that the entropy aims at.
        detach: treat the force as a constant in the backward pass.
        normalize: use the entropy of the normalised distribution.
        variant: ``"exact"``, or ``"paper"`` for the published gradient.

    BibTeX key for ``eamp cite``: ``nazari2024entropy``.

    Example:
        >>> import torch
        >>> EntropyForce(weight=2.0, temperature=1.0)(torch.tensor([[0.0], [1.0]]), torch.tensor([[0, 1], [1, 0]]))
        tensor([[-1.2131],
                [ 1.2131]])
    """

    weight: float = 1.0
    temperature: float = 10.0
    detach: bool = True
    normalize: bool = False
    variant: Variant = "exact"

    def __post_init__(self) -> None:
        for name in ("weight", "temperature"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(
                    f"inside a differential equation the entropy's {name} must be a number, but is {value!r}."
                )
        check_temperature(self.temperature)
        if self.variant not in get_args(Variant):
            raise ValueError(f"variant must be 'exact' or 'paper', but is {self.variant!r}.")

    @classmethod
    def of(cls, entropy: Entropy) -> EntropyForce | None:
        """The force described by a model's ``entropy`` argument; ``None`` where there is nothing to add."""
        if entropy is None:
            return None
        step = EntropyStep.of(entropy)
        known = [field.name for field in fields(cls)]
        extra = [name for name in step.changed() if name not in known]
        if extra:
            raise ValueError(
                f"in a differential equation entropy takes {', '.join(known)}, not {', '.join(extra)}: "
                "time is continuous there, and no layer has an input or output of its own."
            )
        force = cls(**{name: getattr(step, name) for name in known})
        return None if force.weight == 0 else force

    def __call__(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        at = x.detach() if self.detach else x
        return self.weight * entropy_gradient(
            at, edge_index, self.temperature, variant=self.variant, normalize=self.normalize
        )


class VectorField(Module):
    """The right-hand side of dX/dt = f(X): ``forward(x, edge_index, *frozen)`` returns f, of the shape of ``x``."""

    def at_start(self, x: Tensor, edge_index: Adjacency) -> tuple[Tensor, ...]:
        """What is computed once, at time 0, and handed to every evaluation as ``frozen``."""
        return ()

    def reset_parameters(self) -> None:
        """Nothing to reset, unless the field has parameters."""


class Flow(MessagePassingLayer):
    r"""One unit of time along a vector field, :math:`\mathbf{X}(t) \mapsto \mathbf{X}(t + 1)`, with
    :math:`\dot{\mathbf{X}} = f(\mathbf{X}) + \lambda \nabla S(\mathbf{X})`.

    A model of depth :math:`L` applies it :math:`L` times, so that depth is time, and a probe sees the state after every unit.

    Args:
        method: ``"euler"``, ``"midpoint"`` or ``"rk4"`` with a fixed step; ``"dopri5"``, ``"dopri8"``, ``"bosh3"`` or ``"adaptive_heun"``
            with a step chosen from the error.
        steps: fixed steps per unit of time.
        rtol: relative tolerance of the adaptive methods.
        atol: their absolute tolerance.
        adjoint: back-propagate by solving the adjoint equation within each unit of time instead of storing every evaluation. Only the
            state after each unit is kept, and the backward solve starts anew from it.
        force: the entropy term, or ``None``.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)` or an :class:`eamp.Graph`, the field, and
          what its ``at_start`` returned.
        - **output:** features :math:`(|\mathcal{V}|, F)`.

    ``torch.compile(fullgraph=True)`` works with ``"euler"``, whose steps are then written out; the other methods go through torchdiffeq,
    which decides on its time grid by looking at tensors and so breaks the graph.

    Example:
        >>> import torch
        >>> class Decay(VectorField):
        ...     def forward(self, x, edge_index):
        ...         return -x
        >>> Flow("euler", steps=2)(torch.ones(1, 1), torch.empty(2, 0, dtype=torch.long), Decay())
        tensor([[0.2500]])
    """

    def __init__(
        self,
        method: str = "euler",
        *,
        steps: int = 1,
        rtol: float = 1e-4,
        atol: float = 1e-5,
        adjoint: bool = False,
        force: EntropyForce | None = None,
    ) -> None:
        super().__init__()
        if method not in FIXED_STEP + ADAPTIVE:
            raise ValueError(
                f"method must be one of {', '.join(FIXED_STEP)} (fixed step) or {', '.join(ADAPTIVE)}, but is {method!r}."
            )
        if steps < 1:
            raise ValueError(
                f"there must be at least one step per unit of time, but steps = {steps}."
            )
        self.method, self.steps, self.rtol, self.atol, self.adjoint, self.force = (
            method,
            steps,
            rtol,
            atol,
            adjoint,
            force,
        )

    def reset_parameters(self) -> None:
        """A solver learns nothing."""

    def forward(
        self, x: Tensor, edge_index: Adjacency, field: VectorField, *frozen: Tensor
    ) -> Tensor:
        """The state one unit of time later."""

        def slope(x: Tensor, *frozen: Tensor) -> Tensor:
            dx: Tensor = field(x, edge_index, *frozen)
            return dx if self.force is None else dx + self.force(x, edge_index)

        if torch.compiler.is_compiling() and self.method == "euler":
            for _ in range(self.steps):
                x = x + slope(x, *frozen) / self.steps
            return x
        # Loaded on first use: it takes half a second, most of it for SciPy.
        from torchdiffeq import odeint, odeint_adjoint  # type: ignore[import-untyped] # comes without types

        time = torch.tensor([0.0, 1.0], dtype=x.dtype, device=x.device)
        # Both ends are grid points: a grid made from a step size may gain a step by rounding, an adaptive one runs past the end and
        # interpolates.
        options = (
            {"grid_constructor": self._grid} if self.method in FIXED_STEP else {"step_t": time}
        )
        solver = {"method": self.method, "options": options, "rtol": self.rtol, "atol": self.atol}
        if not self.adjoint:
            return odeint(lambda _, x: slope(x, *frozen), x, time, **solver)[-1]

        # What is frozen travels with the state, at rest, so that its gradient is taken once and the field's own parameters are not
        # reached through it a second time.
        def at_rest(_: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return slope(*state), *map(torch.zeros_like, state[1:])

        return odeint_adjoint(
            at_rest, (x, *frozen), time, adjoint_params=tuple(field.parameters()), **solver
        )[0][-1]

    def _grid(self, _: Any, x: Tensor, time: Tensor) -> Tensor:
        return torch.linspace(
            float(time[0]), float(time[-1]), self.steps + 1, dtype=time.dtype, device=time.device
        )

    def extra_repr(self) -> str:
        """The solver, and the entropy term where there is one."""
        how = (
            f"steps={self.steps}"
            if self.method in FIXED_STEP
            else f"rtol={self.rtol}, atol={self.atol}"
        )
        extras = (", adjoint=True" if self.adjoint else "") + (
            f", force={self.force}" if self.force else ""
        )
        return f"{self.method!r}, {how}{extras}"
