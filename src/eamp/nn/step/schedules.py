"""The entropy step's weight λ as a function of depth and of the embedding's state: a ramp, a feedback, a unit, a budget, a cap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from eamp.nn.step.layer_state import (
    LayerState,
    Position,
    entropy_level,
    push,
)
from eamp.nn.step.metric import Energy, propagation_threshold
from eamp.nn.step.threshold import layer_threshold
from eamp.nn.step.weight import (
    SCHEDULES,
    Schedule,
    Weight,
    ahead,
    check_choice,
    check_number,
    evaluate,
    missing_number,
    nest,
)

Per: TypeAlias = Literal["graph", "node"]
RANGE = 1e9  # ratios of energies are told apart up to this


@dataclass(frozen=True)
class Ramp(Schedule):
    r"""λ from ``start`` at the first entropy-aware layer to ``end`` at the last, in even steps or by even factors.

    :func:`eamp.wrap` and the models of :mod:`eamp.nn` number their layers; :func:`eamp.nn.number_layers` does for your own. A layer that is
    applied several times has one number, unless each call says otherwise: ``conv(x, edge_index, position=Position(3, 64))``.

    Args:
        start: λ of the first layer, and of an only one.
        end: λ of the last.
        curve: ``"linear"`` or ``"geometric"``; the latter needs both ends above 0.

    Example:
        >>> import eamp
        >>> from torch_geometric.nn import GCN
        >>> model = eamp.wrap(GCN(16, 64, num_layers=3), weight=Ramp(1.0, 4.0, "geometric"))
        >>> [Ramp(1.0, 4.0, "geometric").at(conv.position) for conv in model.convs]
        [1.0, 2.0, 4.0]
    """

    start: float
    end: float
    curve: Literal["linear", "geometric"] = "linear"

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            check_number(self, name)
        check_choice(self, "curve", ("linear", "geometric"))
        if self.curve == "geometric" and min(self.start, self.end) <= 0:
            raise ValueError(
                f"a geometric ramp needs start and end above 0, but they are {self.start} and {self.end}."
            )

    def __call__(self, state: LayerState) -> float:
        """λ of the layer."""
        return self.at(state.position)

    def ahead(self, position: Position | None, width: int, energy: Energy) -> float:
        """The same: the embedding does not matter."""
        return self.at(position)

    def at(self, position: Position | None) -> float:
        """λ at a position."""
        if position is None:
            raise ValueError(missing_number(self))
        way = (position.layer - 1) / max(position.layers - 1, 1)
        if self.curve == "geometric":
            return math.exp((1 - way) * math.log(self.start) + way * math.log(self.end))
        return (1 - way) * self.start + way * self.end


@dataclass(frozen=True)
class Feedback(Schedule):
    r"""λ that rises towards ``highest`` while a layer's energy or entropy lies below its target, and falls towards ``lowest`` above it.

    .. math::
        \lambda = \lambda_{low} + \frac{\lambda_{high} - \lambda_{low}}{1 + (m / m^*)^s}

    It is halfway at the target, smooth, bounded, and falls as :math:`m` grows.

    Args:
        lowest: :math:`\lambda_{low}`; a number or a schedule.
        highest: :math:`\lambda_{high}`; a number or a schedule.
        target: :math:`m^*`. For the energy a fraction of the temperature, for the entropy one of the largest value that it can have.
        sharpness: :math:`s \ge 1`.
        measure: :math:`m`, the mean ``"energy"``, or the ``"entropy"`` per node. The latter is small far above the temperature, too.
        per: one λ per ``"graph"`` of a batch, or one per ``"node"``, which pushes collapsed nodes alone.
        detach: treat λ as a constant in the backward pass. ``False`` differentiates it in a learned temperature and, where
            :class:`eamp.EntropyAware` has ``detach=False``, in the features.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GCNConv
        >>> eamp.EntropyAware(GCNConv(8, 8), weight=Feedback(0.0, 5.0))
        EntropyAware(
          weight=Feedback(lowest=0.0, highest=5.0, target=1.0, ...), temperature=10.0
          (conv): GCNConv(8, 8)
        )
    """

    lowest: Weight
    highest: Weight
    target: float = 1.0
    sharpness: float = 2.0
    measure: Literal["energy", "entropy"] = "energy"
    per: Per = "graph"
    detach: bool = True

    def __post_init__(self) -> None:
        nest(self, "lowest", "highest")
        check_number(self, "target", above=0)
        check_number(self, "sharpness", above=0, least=1)
        check_choice(self, "measure", ("energy", "entropy"))
        check_choice(self, "per", get_args(Per))
        low, high = self.lowest, self.highest
        if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
            raise ValueError(f"lowest must not be above highest, but they are {low} and {high}.")

    def __call__(self, state: LayerState) -> Tensor:
        """λ from the present embedding."""
        seen = state
        if self.detach:
            temperature = (
                state.temperature.detach()
                if isinstance(state.temperature, Tensor)
                else state.temperature
            )
            seen = state._replace(energy=state.energy.detach(), temperature=temperature)
        level = seen.energy / seen.temperature if self.measure == "energy" else entropy_level(seen)
        if self.per == "graph":
            level = state.graph.mean(level)
        # The sigmoid of a logarithm is the same function, without overflow.
        share = torch.sigmoid(-self.sharpness * (level / self.target).clamp(1 / RANGE, RANGE).log())
        low, high = evaluate(self.lowest, state), evaluate(self.highest, state)
        return low + (high - low) * share


@dataclass(frozen=True)
class Gain(Schedule):
    r"""λ in units of its threshold, :math:`\lambda = g\, \lambda^*`: the same gain means the same at any width and degree.

    :math:`\lambda^*` (:func:`eamp.nn.collapse_threshold`) is where the step just balances the contraction of a ReLU GCN layer near
    collapse. It belongs to the graph and the width, is estimated once, and is one per graph of a batch. For a layer with
    ``energy="propagation"`` it is :math:`\sqrt F / 2`, where the step undoes the propagation alone: with ``placement="input"``, far below
    the temperature and up to the weights, a layer of gain :math:`g` computes :math:`((1 - g) \hat A + g I) \mathbf{X}`, and *L* of them
    smooth as much as :math:`(1 - g) L` bare ones.

    Args:
        of: :math:`g`; a number or a schedule, such as a ramp of gains.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GCN
        >>> model = eamp.wrap(GCN(16, 64, num_layers=32), weight=Gain(1.3), temperature=1.0, detach=False)
        >>> model = eamp.wrap(GCN(16, 64, num_layers=32), weight={"schedule": "gain", "of": {"schedule": "ramp", "start": 1.0, "end": 1.5}})
    """

    of: Weight

    def __post_init__(self) -> None:
        nest(self, "of")

    def ahead(self, position: Position | None, width: int, energy: Energy) -> float | None:
        """For ``energy="propagation"`` the threshold is a function of the width."""
        gain = ahead(self.of, position, width, energy)
        return (
            gain * propagation_threshold(width)
            if energy == "propagation" and gain is not None
            else None
        )

    def __call__(self, state: LayerState) -> float | Tensor:
        """Gain times threshold."""
        if state.energy_kind == "propagation":
            return evaluate(self.of, state) * propagation_threshold(state.x.size(1))
        unit = layer_threshold(state.x.size(1), state.graph, state.symmetrize)
        unit = unit.to(state.energy.dtype)
        return evaluate(self.of, state) * state.graph.for_nodes(unit)


@dataclass(frozen=True)
class Hops(Schedule):
    r"""λ with which all *L* entropy-aware layers together smooth as much as ``of`` bare ones do: the gain
    :math:`g = 1 - \texttt{of} / L` (see :class:`Gain`), and 0 in a network of fewer layers.

    So the number of layers no longer says how far a node sees, and the same setting serves at any depth. That is exact for
    ``energy="propagation"``, ``placement="input"``, weights that leave the embedding as it is, and energies far below the temperature.
    Layers know their number as for :class:`Ramp`.

    Args:
        of: number of bare layers, above 0.

    Example:
        >>> import torch, eamp
        >>> from eamp.nn import DeepGCN
        >>> entropy = {"weight": {"schedule": "hops", "of": 6}, "temperature": 100.0, "energy": "propagation", "scale_free": True}
        >>> plain = {"weights": "identity", "initial_residual": 0.0, "entropy": entropy}
        >>> model = DeepGCN(16, 64, 7, num_layers=64, **plain)
        >>> model = DeepGCN(16, 64, 7, num_layers=1000, **plain, shared=True, checkpoint=True)
    """

    of: float

    def __post_init__(self) -> None:
        check_number(self, "of", above=0)

    def __call__(self, state: LayerState) -> float | Tensor:
        """The gain of the layer, in units of the threshold."""
        return self.gain(state.position)(state)

    def ahead(self, position: Position | None, width: int, energy: Energy) -> float | None:
        """As for the gain."""
        return self.gain(position).ahead(position, width, energy)

    def gain(self, position: Position | None) -> Gain:
        """The gain at a position."""
        if position is None:
            raise ValueError(missing_number(self))
        return Gain(max(0.0, 1 - self.of / position.layers))


@dataclass(frozen=True)
class Cap(Schedule):
    r"""λ, but no more than a bounded move of every node allows.

    The step moves node :math:`i` by :math:`\lambda \sum_j w_{ij} (x_i - x_j)` with :math:`w_{ij} = a_{ij}(q_i + q_j)`. With
    :math:`b_i = k_i |q_i| + \sum_j a_{ij} |q_j| \ge \sum_j |w_{ij}|` that is no further than :math:`\lambda b_i` times the distance to its
    farthest neighbour, which without edge weights is at most :math:`\sqrt{2 E_i / C_i}`.

    .. math::
        \texttt{"neighbours"}: \quad \lambda_i \le f / b_i \qquad\qquad
        \texttt{"temperature"}: \quad \lambda_i \le f / b_i \cdot \sqrt{T / E_i}

    - ``"neighbours"`` is the stability bound of the explicit step: a node moves by at most :math:`f` times the distance to its farthest
      neighbour. With :math:`f \le 1`, neighbours that attract it (:math:`w_{ij} < 0`) keep it in their convex hull, and as neighbours
      repel each other only if one of them has :math:`E < T`, no step adds more than :math:`f \sqrt{2T}\,(k_{max} F)^{1/4}` to
      :math:`\max_i \lVert x_i \rVert` (without ``normalize``). But it also forbids what holds an energy up: near collapse on a
      :math:`k`-regular bipartite graph it leaves a gain of :math:`2f\frac{k-1}{k+3}` at most, .86 at degree 4 and :math:`f = 1`.
    - ``"temperature"`` leaves the step free near collapse: a node moves by at most :math:`f \sqrt{2T}\,(k_i F)^{1/4}`, :math:`f` times
      the distance at which a single neighbour makes :math:`E_i = T`. That holds for every :math:`f`.

    Args:
        of: λ; a number or a schedule.
        fraction: :math:`f > 0`.
        reach: ``"temperature"`` or ``"neighbours"``, what the move is a fraction of.
        per: limit every ``"node"`` on its own, or all of a ``"graph"`` by its tightest node, which keeps the direction of the gradient.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GCNConv
        >>> layer = eamp.EntropyAware(GCNConv(8, 8), weight=Cap(Gain(1e6), fraction=0.5), temperature=1.0)
        >>> bool(layer(torch.randn(3, 8), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).isfinite().all())
        True
    """

    of: Weight
    fraction: float
    reach: Literal["temperature", "neighbours"] = "temperature"
    per: Per = "node"

    def __post_init__(self) -> None:
        nest(self, "of")
        check_number(self, "fraction", above=0)
        check_choice(self, "reach", ("temperature", "neighbours"))
        check_choice(self, "per", get_args(Per))

    def __call__(self, state: LayerState) -> Tensor:
        """λ / max(1, |λ| b / f): divided by nothing small, so that its derivative is finite."""
        rate = push(state)
        if self.reach == "temperature":
            rate = rate * (state.energy / state.temperature).clamp(min=1 / RANGE).sqrt()
        if self.per == "graph":
            rate = state.graph.for_nodes(state.graph.largest_by_graph(rate))
        weight = torch.as_tensor(evaluate(self.of, state), dtype=rate.dtype, device=rate.device)
        return weight / (weight.abs() * rate / self.fraction).clamp(min=1)


SCHEDULES.update({"ramp": Ramp, "feedback": Feedback, "gain": Gain, "hops": Hops, "cap": Cap})
