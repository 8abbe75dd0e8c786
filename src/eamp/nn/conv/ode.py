"""A layer that solves an ordinary differential equation on node features, with torchdiffeq."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from eamp.functional import check_temperature, check_variant, entropy_gradient
from eamp.graph import Adjacency
from eamp.graph.transforms import transformed
from eamp.nn.checks import check_count
from eamp.nn.conv.gcn_conv import MessagePassingLayer
from eamp.nn.conv.vector_fields import VectorField
from eamp.nn.entropic import Entropy
from eamp.nn.step.options import PAPER, EntropyStep
from eamp.ops import Variant
from eamp.optional import extra

FIXED_STEP = ("euler", "midpoint", "rk4")
ADAPTIVE = ("dopri5", "dopri8", "bosh3", "adaptive_heun")


@dataclass(frozen=True)
class EntropyForce:
    r"""The term :math:`\lambda \nabla S(\mathbf{X})` of a differential equation.

    This is the gradient itself, as in the paper's appendix. :class:`eamp.EntropyAware` follows
    :math:`T \nabla S` instead: multiply its weight by its temperature to compare the two.

    Args:
        weight: :math:`\lambda`. Zero leaves the equation as it is.
        temperature: :math:`T > 0`, the energy per node at which the entropy is largest.
        detach: Treat the term as a constant in the backward pass.
        normalize: Use the entropy of the normalised distribution.
        variant: ``"exact"``, or ``"paper"`` for the published gradient.
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
                    f"in a differential equation the entropy's {name} must be a number, "
                    f"but is {value!r}."
                )
        check_temperature(self.temperature)
        check_variant(self.variant)

    @classmethod
    def of(cls, entropy: Entropy) -> "EntropyForce | None":
        """Return the term for a model's ``entropy`` argument, or ``None`` if its weight is 0."""
        if entropy is None:
            return None
        # A differential equation has no layers whose contraction a default could be measured by.
        step = EntropyStep.of(entropy, **PAPER)
        known = [field.name for field in fields(cls)]
        if extra := [name for name in step.changed() if name not in known]:
            raise ValueError(
                f"in a differential equation entropy takes {', '.join(known)}, "
                f"not {', '.join(extra)}."
            )
        force = cls(**{name: getattr(step, name) for name in known})
        return None if force.weight == 0 else force

    def __call__(self, x: Tensor, edge_index: Adjacency) -> Tensor:
        """Return the term."""
        at = x.detach() if self.detach else x
        return self.weight * entropy_gradient(
            at, edge_index, self.temperature, variant=self.variant, normalize=self.normalize
        )


def solvers() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return ``odeint`` and ``odeint_adjoint`` of torchdiffeq."""
    with extra("diffusion"):
        # Imported here because it takes half a second, most of it for SciPy.
        from torchdiffeq import odeint, odeint_adjoint  # type: ignore[import-untyped] # no types
    return odeint, odeint_adjoint


class ODEBlock(MessagePassingLayer):
    r"""The solution of a differential equation one unit of time later.

    .. math::
        \mathbf{X}(t) \mapsto \mathbf{X}(t + 1), \qquad
        \dot{\mathbf{X}} = f(\mathbf{X}) + \lambda \nabla S(\mathbf{X})

    A model of depth *L* applies the block *L* times, so a probe sees the state after every unit of
    time. ``torch.compile(fullgraph=True)`` works with ``"euler"`` only.

    Args:
        method: ``"euler"``, ``"midpoint"`` or ``"rk4"`` with a fixed step size; ``"dopri5"``,
            ``"dopri8"``, ``"bosh3"`` or ``"adaptive_heun"`` with adaptive step sizes.
        steps: Number of steps of a fixed-step method.
        rtol: Relative tolerance of an adaptive method.
        atol: Absolute tolerance of an adaptive method.
        adjoint: Backpropagate by solving the adjoint equation, from the stored state at the end of
            each block, instead of storing every evaluation of the vector field.
        force: The entropy term, or ``None``.

    Example:
        >>> import torch
        >>> class Decay(VectorField):
        ...     def forward(self, x, edge_index):
        ...         return -x
        >>> no_edges = torch.empty(2, 0, dtype=torch.long)
        >>> ODEBlock("euler", steps=2)(torch.ones(1, 1), no_edges, Decay())
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
                f"method must be one of {', '.join(FIXED_STEP)} (fixed step) or "
                f"{', '.join(ADAPTIVE)} (adaptive step), but is {method!r}."
            )
        check_count("steps", steps)
        self.method, self.steps, self.rtol, self.atol = method, steps, rtol, atol
        self.adjoint, self.force = adjoint, force

    def forward(
        self, x: Tensor, edge_index: Adjacency, field: VectorField, *frozen: Tensor
    ) -> Tensor:
        """Solve the equation for one unit of time."""

        def slope(x: Tensor, *frozen: Tensor) -> Tensor:
            dx: Tensor = field(x, edge_index, *frozen)
            return dx if self.force is None else dx + self.force(x, edge_index)

        # torchdiffeq writes into tensors, which neither torch.compile nor torch.func.vmap allows.
        if self.method == "euler" and (torch.compiler.is_compiling() or transformed()):
            for _ in range(self.steps):
                x = x + slope(x, *frozen) / self.steps
            return x
        odeint, odeint_adjoint = solvers()

        # Time 1 is made a grid point: rounding could add a step to a grid that is made from a step
        # size, and adaptive methods would step past the end and interpolate.
        time = torch.tensor([0.0, 1.0], dtype=x.dtype, device=x.device)
        fixed = self.method in FIXED_STEP
        options = {"grid_constructor": self._grid} if fixed else {"step_t": time}
        solver = {"method": self.method, "options": options, "rtol": self.rtol, "atol": self.atol}
        if not self.adjoint:
            return odeint(lambda _, x: slope(x, *frozen), x, time, **solver)[-1]

        # The frozen tensors are part of the state, with derivative 0. Their gradient is then taken
        # once, and the parameters of the field do not get it a second time.
        def slope_of_all(_: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return slope(*state), *map(torch.zeros_like, state[1:])

        parameters = tuple(field.parameters())
        start = (x, *frozen)
        return odeint_adjoint(slope_of_all, start, time, adjoint_params=parameters, **solver)[0][-1]

    def _grid(self, _: Any, x: Tensor, time: Tensor) -> Tensor:
        start, end = float(time[0]), float(time[-1])
        return torch.linspace(start, end, self.steps + 1, dtype=time.dtype, device=time.device)

    def extra_repr(self) -> str:
        """Return the solver, and the entropy term if there is one."""
        names = ["steps"] if self.method in FIXED_STEP else ["rtol", "atol"]
        names += [name for name in ("adjoint", "force") if getattr(self, name)]
        return ", ".join([repr(self.method), *(f"{name}={getattr(self, name)}" for name in names)])
