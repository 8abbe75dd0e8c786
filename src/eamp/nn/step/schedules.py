"""Schedules of the weight λ, over depth and over the state of the embedding."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from eamp.nn.step.layer_state import LayerState, Position, entropy_level, gain_threshold, push
from eamp.nn.step.metric import Energy, propagation_threshold
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
RANGE = 1e9  # ratios of energies are clamped to this, so that logarithms and roots stay finite


@dataclass(frozen=True)
class Ramp(Schedule):
    r"""λ that goes from ``start`` at the first entropy-aware layer to ``end`` at the last.

    :func:`eamp.wrap` and the models of :mod:`eamp.nn` number their layers. Number those of your own
    model with :func:`eamp.nn.number_layers`. A layer that is applied several times has one number,
    unless each call passes another: ``conv(x, edge_index, position=Position(3, 64))``.

    Args:
        start: λ of the first layer, and of an only layer.
        end: λ of the last layer.
        curve: ``"linear"`` for even steps or ``"geometric"`` for even factors. The latter needs
            both ends above 0.

    Example:
        >>> import eamp
        >>> from torch_geometric.nn import GCN
        >>> ramp = Ramp(1.0, 4.0, "geometric")
        >>> model = eamp.wrap(GCN(16, 64, num_layers=3), weight=ramp)
        >>> [ramp.at(conv.position) for conv in model.convs]
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
            ends = f"{self.start} and {self.end}"
            raise ValueError(f"a geometric ramp needs start and end above 0, but they are {ends}.")

    def __call__(self, state: LayerState) -> float:
        """Return λ of the layer."""
        return self.at(state.position)

    def ahead(self, position: Position | None, width: int, energy: Energy) -> float:
        """Return λ, which never depends on the embedding."""
        return self.at(position)

    def at(self, position: Position | None) -> float:
        """Return λ at a position."""
        if position is None:
            raise ValueError(missing_number(self))
        way = (position.layer - 1) / max(position.layers - 1, 1)
        if self.curve == "geometric":
            return math.exp((1 - way) * math.log(self.start) + way * math.log(self.end))
        return (1 - way) * self.start + way * self.end


@dataclass(frozen=True)
class Feedback(Schedule):
    r"""λ that is high while a layer's energy or entropy lies below a target, and low above it.

    .. math::
        \lambda = \lambda_{low} + \frac{\lambda_{high} - \lambda_{low}}{1 + (m / m^*)^s}

    It is halfway at the target, smooth, bounded, and falls as :math:`m` grows.

    Args:
        lowest: :math:`\lambda_{low}`, a number or a schedule.
        highest: :math:`\lambda_{high}`, a number or a schedule.
        target: :math:`m^*`, a fraction of the temperature for the energy, and of the largest
            possible value for the entropy.
        sharpness: :math:`s \ge 1`.
        measure: :math:`m`, the mean ``"energy"`` or the ``"entropy"`` per node. The entropy is
            small far above the temperature, too.
        per: one λ per ``"graph"`` of a batch, or one per ``"node"``, which pushes collapsed nodes
            alone.
        detach: treat λ as a constant in the backward pass. ``False`` differentiates it in a learned
            temperature and, if :class:`eamp.EntropyAware` has ``detach=False``, in the features.

    Example:
        >>> import eamp
        >>> from torch_geometric.nn import GCNConv
        >>> eamp.EntropyAware(GCNConv(8, 8), weight=Feedback(0.0, 5.0))
        EntropyAware(
          weight=Feedback(lowest=0.0, highest=5.0, target=1.0, ...), temperature=1.0
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
        if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low > high:
            raise ValueError(f"lowest must not be above highest, but they are {low} and {high}.")

    def __call__(self, state: LayerState) -> Tensor:
        """Return λ for the present embedding."""
        energy, temperature = state.energy, state.temperature
        if self.detach:
            energy = energy.detach()
            temperature = temperature.detach() if isinstance(temperature, Tensor) else temperature
        by_energy = self.measure == "energy"
        level = energy / temperature if by_energy else entropy_level(state, energy, temperature)
        if self.per == "graph":
            level = state.graph.mean(level)
        # The sigmoid of a logarithm is the same function, without overflow.
        ratio = (level / self.target).clamp(1 / RANGE, RANGE)
        share = torch.sigmoid(-self.sharpness * ratio.log())
        low, high = evaluate(self.lowest, state), evaluate(self.highest, state)
        return low + (high - low) * share


@dataclass(frozen=True)
class Gain(Schedule):
    r"""λ in units of its threshold, :math:`\lambda = g\, \lambda^*`.

    So one gain means the same at any width and degree. :math:`\lambda^*`
    (:func:`eamp.nn.collapse_threshold`) is where the step just balances the contraction of a ReLU
    GCN layer near collapse. It is estimated once per graph and width.

    With ``energy="propagation"`` the threshold is :math:`\sqrt F / 2`, where the step undoes the
    propagation alone. With ``placement="input"``, far below the temperature and up to the weights,
    a layer of gain :math:`g` then computes :math:`((1 - g) \hat A + g I) \mathbf{X}`, a lazy walk.
    *L* of them smooth slow modes like :math:`(1 - g) L` bare ones. A negative gain descends.

    Args:
        of: :math:`g`, a number or a schedule, such as a ramp of gains.

    Example:
        >>> import eamp
        >>> from torch_geometric.nn import GCN
        >>> options = {"temperature": 1.0, "detach": False}
        >>> model = eamp.wrap(GCN(16, 64, num_layers=32), weight=Gain(1.3), **options)
        >>> ramp = {"schedule": "gain", "of": {"schedule": "ramp", "start": 1.0, "end": 1.5}}
        >>> model = eamp.wrap(GCN(16, 64, num_layers=32), weight=ramp, **options)
    """

    of: Weight

    def __post_init__(self) -> None:
        nest(self, "of")

    def ahead(self, position: Position | None, width: int, energy: Energy) -> float | None:
        """Return λ for ``energy="propagation"``, whose threshold depends on the width alone."""
        gain = ahead(self.of, position, width, energy)
        if gain is None or energy != "propagation":
            return None
        return gain * propagation_threshold(width)

    def __call__(self, state: LayerState) -> float | Tensor:
        """Return the gain times the threshold."""
        return evaluate(self.of, state) * gain_threshold(state)


@dataclass(frozen=True)
class Hops(Schedule):
    r"""λ with which all *L* entropy-aware layers together smooth about as much as ``of`` bare ones.

    That is the gain :math:`g = 1 - t / L` (see :class:`Gain`), and 0 in a network of fewer layers.
    So the number of layers no longer decides how far a node sees, and one setting serves at any
    depth: for ``energy="propagation"``, ``placement="input"``, weights that leave the embedding as
    it is, and energies far below the temperature, *L* layers tend to the heat kernel
    :math:`e^{-t (I - \hat A)}`. Layers know their number as for :class:`Ramp`.

    Args:
        of: :math:`t`, the number of bare layers, above 0.

    Example:
        >>> from eamp.nn import DeepGCN, EntropyStep
        >>> step = EntropyStep(Hops(6), 100.0, placement="input", energy="propagation")
        >>> plain = {"weights": "identity", "initial_residual": 0.0, "entropy": step}
        >>> model = DeepGCN(16, 64, 7, num_layers=64, **plain)
        >>> model = DeepGCN(16, 64, 7, num_layers=1000, **plain, shared=True, checkpoint=True)
    """

    of: float

    def __post_init__(self) -> None:
        check_number(self, "of", above=0)

    def __call__(self, state: LayerState) -> float | Tensor:
        """Return λ of the layer's gain."""
        return self.gain(state.position) * gain_threshold(state)

    def ahead(self, position: Position | None, width: int, energy: Energy) -> float | None:
        """Return λ of the layer's gain, if it does not depend on the embedding."""
        return Gain(self.gain(position)).ahead(position, width, energy)

    def gain(self, position: Position | None) -> float:
        """Return the gain at a position, a number: torch 2.8 cannot trace the making of a Gain."""
        if position is None:
            raise ValueError(missing_number(self))
        return max(0.0, 1 - self.of / position.layers)


@dataclass(frozen=True)
class Cap(Schedule):
    r"""λ, limited so that the step moves no node further than a bound.

    The step moves node :math:`i` by :math:`\lambda \sum_j w_{ij} (x_i - x_j)` with
    :math:`w_{ij} = a_{ij}(q_i + q_j)`. With
    :math:`b_i = k_i |q_i| + \sum_j a_{ij} |q_j| \ge \sum_j |w_{ij}|` that is no further than
    :math:`\lambda b_i` times the distance to its farthest neighbour, which without edge weights is
    at most :math:`\sqrt{2 E_i / C_i}`.

    .. math::
        \texttt{"neighbours"}: \quad \lambda_i \le f / b_i \qquad\qquad
        \texttt{"temperature"}: \quad \lambda_i \le f / b_i \cdot \sqrt{T / E_i}

    - ``"neighbours"`` is the stability bound of the explicit step: a node moves by at most
      :math:`f` times the distance to its farthest neighbour. With :math:`f \le 1`, neighbours that
      attract it keep it in their convex hull. Neighbours repel each other only if one of them has
      :math:`E < T`, so no step adds more than :math:`f \sqrt{2T}\,(k_{max} F)^{1/4}` to
      :math:`\max_i \lVert x_i \rVert` (without ``normalize``). But the bound also forbids what
      holds an energy up: near collapse on a :math:`k`-regular bipartite graph it leaves a gain of
      at most :math:`2f\frac{k-1}{k+3}`, .86 at degree 4 and :math:`f = 1`.
    - ``"temperature"`` leaves the step free near collapse: a node moves by at most
      :math:`f \sqrt{2T}\,(k_i F)^{1/4}`, which is :math:`f` times the distance at which a single
      neighbour makes :math:`E_i = T`. That holds for every :math:`f`.

    Args:
        of: λ, a number or a schedule.
        fraction: :math:`f > 0`.
        reach: the distance that ``fraction`` refers to, ``"temperature"`` or ``"neighbours"``.
        per: limit every ``"node"`` on its own, or all of a ``"graph"`` by its tightest node, which
            keeps the direction of the gradient.

    Example:
        >>> import torch, eamp
        >>> from torch_geometric.nn import GCNConv
        >>> layer = eamp.EntropyAware(GCNConv(8, 8), Cap(Gain(1e6), 0.5), temperature=1.0)
        >>> out = layer(torch.randn(3, 8), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> bool(out.isfinite().all())
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
        """Return λ / max(1, |λ| b / f), which divides by nothing small."""
        rate = push(state)
        if self.reach == "temperature":
            rate = rate * (state.energy / state.temperature).clamp(min=1 / RANGE).sqrt()
        if self.per == "graph":
            rate = state.graph.for_nodes(state.graph.largest_by_graph(rate))
        weight = torch.as_tensor(evaluate(self.of, state), dtype=rate.dtype, device=rate.device)
        return weight / (weight.abs() * rate / self.fraction).clamp(min=1)


SCHEDULES.update({"ramp": Ramp, "feedback": Feedback, "gain": Gain, "hops": Hops, "cap": Cap})
