"""The weight λ of the entropy step: a number, a schedule or a function, checked and evaluated."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeAlias

from torch import Tensor
from torch.nn import Module

from eamp.nn.step.layer_state import LayerState, Position
from eamp.nn.step.metric import Energy


class Schedule(ABC):
    """λ as a function of a layer's state.

    A schedule is frozen and has no state of its own, so it is the same in training and evaluation.
    """

    @abstractmethod
    def __call__(self, state: LayerState) -> float | Tensor:
        """Return λ, a number or one per node ``[n]``."""

    def ahead(self, position: Position | None, width: int, energy: Energy) -> float | None:
        """Return λ if it does not depend on the embedding, else ``None``."""
        return None


Weight: TypeAlias = float | Schedule | Callable[[Tensor, float | Tensor], float | Tensor]
"""A number, a schedule, or a function of the energies ``[n]`` and the temperature."""

SCHEDULES: dict[str, type[Schedule]] = {}
"""Schedules by the name that plain data gives them; :mod:`eamp.nn.step.schedules` adds its own."""


def as_weight(given: Weight | Mapping[str, Any]) -> Weight:
    """Return a checked weight; a mapping ``{"schedule": name, **arguments}`` becomes a schedule.

    Example:
        >>> as_weight({"schedule": "cap", "of": {"schedule": "gain", "of": 1.3}, "fraction": 2})
        Cap(of=Gain(of=1.3), fraction=2, reach='temperature', per='node')
    """
    if isinstance(given, Mapping):
        arguments = dict(given)
        name = arguments.pop("schedule", None)
        if not isinstance(name, str) or name not in SCHEDULES:
            raise ValueError(
                f"a schedule of the weight is {{'schedule': one of {', '.join(SCHEDULES)}, ...}}, "
                f"but is {dict(given)!r}."
            )
        return from_data(name, arguments)
    if callable(given):
        return given
    if isinstance(given, Tensor):
        raise ValueError(
            "weight must be a number, which a saved model and .to() carry along, but is a tensor: "
            "pass float(weight), with learn_weight=True if it shall be learned."
        )
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise ValueError(
            f"weight must be a number, a schedule ({', '.join(SCHEDULES)}) or a function, but is "
            f"{given!r}."
        )
    if not math.isfinite(given):
        raise ValueError(f"weight must be finite, but is {given}.")
    return given


def from_data(name: str, arguments: dict[str, Any]) -> Schedule:
    """Return the schedule of a name with checked arguments."""
    kind: Any = SCHEDULES[name]  # all of them are dataclasses
    known = {field.name: field.default is MISSING for field in fields(kind)}
    if unknown := [key for key in arguments if key not in known]:
        raise ValueError(
            f"the schedule {name!r} takes {', '.join(known)}, not {', '.join(unknown)}."
        )
    if missing := [key for key, needed in known.items() if needed and key not in arguments]:
        raise ValueError(
            f"the schedule {name!r} needs {', '.join(missing)} beside "
            f"{', '.join(arguments) or 'nothing'}."
        )
    schedule: Schedule = kind(**arguments)
    return schedule


def nest(schedule: Schedule, *names: str) -> None:
    """Turn arguments of a schedule that are plain data into schedules."""
    for name in names:
        inner = as_weight(getattr(schedule, name))
        if isinstance(inner, Module):
            raise ValueError(
                f"{type(schedule).__name__}'s {name} must be a number, a schedule or a function "
                f"without parameters, but is a {type(inner).__name__}: only a module that is "
                "itself the weight can be trained."
            )
        object.__setattr__(schedule, name, inner)


def evaluate(weight: Weight, state: LayerState) -> float | Tensor:
    """Return λ in a layer, a number or one per node."""
    if isinstance(weight, Schedule):
        return weight(state)
    if callable(weight):
        return weight(state.energy, state.temperature)
    return weight


def ahead(weight: Weight, position: Position | None, width: int, energy: Energy) -> float | None:
    """Return λ in a layer if it does not depend on the embedding, else ``None``."""
    if isinstance(weight, Schedule):
        return weight.ahead(position, width, energy)
    return None if callable(weight) else float(weight)


def missing_number(schedule: Schedule) -> str:
    """Return the error text for a layer without a number."""
    return (
        f"{schedule!r} needs the number of its layer, and the layer has none: eamp.wrap and the "
        "models of eamp.nn number their layers; call eamp.nn.number_layers(model) for your own."
    )


def check_number(
    schedule: Schedule, name: str, above: float = -math.inf, least: float = -math.inf
) -> None:
    """Raise an error unless an argument is a finite number above, or at least, a bound."""
    value = getattr(schedule, name)
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or value <= above
        or value < least
    ):
        wanted = f" >= {least:g}" if least > above else f" > {above:g}" if above > -math.inf else ""
        raise ValueError(
            f"{type(schedule).__name__}'s {name} must be a finite number{wanted}, but is {value!r}."
        )


def check_choice(schedule: Schedule, name: str, choices: tuple[str, ...]) -> None:
    """Raise an error unless an argument is one of ``choices``."""
    if getattr(schedule, name) not in choices:
        raise ValueError(
            f"{type(schedule).__name__}'s {name} must be one of {', '.join(choices)}, but is "
            f"{getattr(schedule, name)!r}."
        )
