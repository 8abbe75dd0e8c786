"""``EntropyStep``: all options of the entropy step, in one frozen dataclass."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from torch import Tensor

from eamp.functional import check_temperature, check_variant
from eamp.graph.relations import Relations, check_relations
from eamp.nn.step.metric import Energy
from eamp.nn.step.schedules import Gain
from eamp.nn.step.weight import Weight, as_weight
from eamp.ops import Variant
from eamp.spelling import did_you_mean

Temperature: TypeAlias = float | Literal["auto"]
Placement: TypeAlias = Literal["output", "input"]
Preset: TypeAlias = Literal["paper"]

# The defaults: a step that wins over the contraction of a layer, on any graph and at any width, and
# that training sees (docs/results/evidence).
WEIGHT, TEMPERATURE, DETACH = Gain(2.0), 1.0, False
# The constants of the paper. Recipes and the command line fill in what an `entropy` leaves out with
# these, so that stored results keep their meaning (`eamp.experiments.cell`).
PAPER: dict[str, Any] = {"weight": 1.0, "temperature": 10.0, "detach": True}
PRESETS: dict[Preset, dict[str, Any]] = {"paper": {**PAPER, "variant": "paper"}}


@dataclass(frozen=True)
class EntropyStep:
    r"""The options of the step :math:`\mathbf{X}' = \phi(\mathbf{X}) + \lambda \, T \nabla S`.

    :class:`eamp.EntropyAware` and :func:`eamp.wrap` take them as keyword arguments. The models of
    :mod:`eamp.nn`, recipes and the command line take them as ``entropy``, a mapping or an object of
    this class.

    Args:
        weight: :math:`\lambda`. The default, ``Gain(2.0)``, is twice the threshold of the
            graph. Zero gives the bare layer, bit for bit. It may also be another schedule of
            :mod:`eamp.nn.step.schedules`, as an object or as plain data,
            ``{"schedule": "gain", "of": 1.3}``; or a function that is called with the energies
            ``[n]`` and the temperature in every forward pass and returns :math:`\lambda`, one
            number or one per node ``[n]``.
        temperature: :math:`T > 0`, the energy per node that the step aims at. ``"auto"`` takes the
            mean energy over all nodes of the first training batch and keeps it: a temperature that
            followed the energy at every step would have no fixed point. In evaluation mode before
            that, every graph of a batch has its own mean.
        learn_weight: make :math:`\lambda` a parameter that starts at ``weight``.
        learn_temperature: make :math:`\ln T` a parameter that starts at ``temperature``.
        detach: treat the step as a constant in the backward pass, as the paper says. ``False``,
            the default, differentiates through it exactly, at the cost of two more passes over the
            edges, each over twice the features.
        placement: take the gradient at the layer's ``"output"``, as the authors' code does, or at
            its ``"input"``, as the paper's equation says. The latter needs as many input as output
            channels.
        residual: add the layer's input, the paper's :math:`\mathbf{X} + \phi(\mathbf{X})`. It needs
            as many input as output channels.
        variant: ``"exact"``, ``"paper"`` for the published gradient, or ``"permuted"``, a control
            for experiments; see :func:`eamp.entropy_gradient`.
        normalize: take the entropy of the normalised distribution, of every graph of a batch by
            itself.
        symmetrize: let the step see a directed graph as undirected. The layer itself still gets it
            as it is.
        energy: ``"paper"`` compares neighbours as they are. ``"propagation"`` compares
            :math:`x_i/\sqrt{k_i + 1}`, the energy that graph convolutions lower, in which hubs
            count no more than other nodes; see :func:`eamp.nn.step.metric.metric_of`.
        scale_free: measure energies in units of the embedding's mean square. Then :math:`T` means
            the same for features of any size and number, and a shrinking embedding does not pass
            for a smooth one.
        relations: the relations of a typed graph that the step sees, as edge types
            ``("author", "writes", "paper")``; a mapping gives their weights :math:`w_r`. By
            default all of them, with weight 1. See :class:`eamp.TypedGraph`.

    Example:
        >>> EntropyStep(), EntropyStep(weight=3.0, temperature=10.0, detach=True)
        (EntropyStep(weight=Gain(of=2.0), temperature=1.0),
         EntropyStep(weight=3.0, temperature=10.0, detach=True))
    """

    weight: Weight = WEIGHT
    temperature: Temperature = TEMPERATURE
    learn_weight: bool = False
    learn_temperature: bool = False
    detach: bool = DETACH
    placement: Placement = "output"
    residual: bool = False
    variant: Variant = "exact"
    normalize: bool = False
    symmetrize: bool = False
    energy: Energy = "paper"
    scale_free: bool = False
    relations: Relations = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_weight(self.weight))
        object.__setattr__(self, "relations", check_relations(self.relations))
        check_variant(self.variant)
        for name, choices in (("placement", Placement), ("energy", Energy)):
            if getattr(self, name) not in get_args(choices):
                expected = " or ".join(map(repr, get_args(choices)))
                raise ValueError(f"{name} must be {expected}, but is {getattr(self, name)!r}.")
        for each in fields(self):
            if isinstance(each.default, bool) and not isinstance(getattr(self, each.name), bool):
                value = getattr(self, each.name)
                raise ValueError(f"{each.name} must be True or False, but is {value!r}.")
        if callable(self.weight) and self.learn_weight:
            raise ValueError(
                "learn_weight=True needs a number to start from, as in weight=1.0; a schedule that "
                "learns holds its own parameters."
            )
        if isinstance(self.temperature, Tensor):
            raise ValueError(
                "temperature must be a number, which a saved model and .to() carry along, but is a "
                "tensor: pass float(temperature), and learn_temperature=True to learn it."
            )
        if self.temperature != "auto":
            if isinstance(self.temperature, str):
                raise ValueError(
                    f"temperature must be a number > 0 or 'auto', but is {self.temperature!r}."
                )
            check_temperature(self.temperature)
        elif self.learn_temperature:
            raise ValueError(
                "temperature='auto' is measured, learn_temperature=True is learned: choose one."
            )

    @classmethod
    def of(cls, given: "EntropyStep | Mapping[str, Any]", **defaults: Any) -> "EntropyStep":
        """Return the options of a mapping; ``defaults`` are for those that the mapping leaves out.

        An :class:`EntropyStep` is returned as it is.
        """
        if isinstance(given, EntropyStep):
            return given
        if not isinstance(given, Mapping):
            raise ValueError(
                "the entropy step is described by a mapping, as in {'weight': 1.0, "
                f"'temperature': 10.0}}, or by an eamp.nn.EntropyStep, but is {given!r}."
            )
        options = {**defaults, **with_current_names(given)}
        known = [each.name for each in fields(cls)]
        if unknown := [name for name in options if name not in known]:
            raise ValueError(
                f"the entropy step has no option {', '.join(map(str, unknown))}; it has "
                f"{', '.join(known)}.{did_you_mean(unknown[0], known)}"
            )
        return cls(**options)

    def as_dict(self) -> dict[str, Any]:
        """Return the options by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def changed(self) -> dict[str, Any]:
        """Return weight and temperature, and the options that are not the default."""
        default = {each.name: each.default for each in fields(self)}
        shown = ("weight", "temperature")
        return {
            name: value
            for name, value in self.as_dict().items()
            if name in shown or value != default[name]
        }

    def __repr__(self) -> str:
        return f"EntropyStep({', '.join(f'{k}={v!r}' for k, v in self.changed().items())})"

    def fixed_temperature(self) -> float:
        """Return T, where it is a number."""
        return math.nan if self.temperature == "auto" else float(self.temperature)


class StepOptions(TypedDict, total=False):
    """The options of :class:`EntropyStep` beside weight and temperature, as keyword arguments."""

    learn_weight: bool
    learn_temperature: bool
    detach: bool
    placement: Placement
    residual: bool
    variant: Variant
    normalize: bool
    symmetrize: bool
    energy: Energy
    scale_free: bool
    relations: Relations


def with_current_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """Translate the old option ``normalization`` of the entropy step, with a warning.

    ``normalization="sym"`` is now ``energy="propagation"``, and ``None`` is ``energy="paper"``.
    """
    options = dict(options)
    if "normalization" in options:
        old = options.pop("normalization")
        if old not in (None, "sym"):
            raise ValueError(f"normalization must be 'sym' or None, but is {old!r}.")
        new = "paper" if old is None else "propagation"
        warnings.warn(
            f"normalization={old!r} of the entropy step is now called energy={new!r}.",
            DeprecationWarning,
            stacklevel=3,
        )
        options.setdefault("energy", new)
    return options
