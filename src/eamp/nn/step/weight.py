"""The entropy step's weight λ in all its forms: a number, a schedule, a function; from plain data, checked, and evaluated in a layer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeAlias

from torch import Tensor
from torch.nn import Module

from eamp.nn.step.layer_state import LayerState, Position
from eamp.nn.step.metric import Normalization


class Schedule(ABC):
    """λ as a function of a layer's state. Frozen, without state of its own: the same in training and evaluation."""

    @abstractmethod
    def __call__(self, state: LayerState) -> float | Tensor:
        """λ: a number, or one per node ``[n]``."""

    def ahead(
        self, position: Position | None, width: int, normalization: Normalization
    ) -> float | None:
        """λ where no embedding has to be looked at for it, else ``None``."""
        return None


Weight: TypeAlias = float | Schedule | Callable[[Tensor, float | Tensor], float | Tensor]
"""A number, a schedule, or a function of the energies ``[n]`` and the temperature."""

SCHEDULES: dict[str, type[Schedule]] = {}
"""Schedules by the name that plain data calls them; :mod:`eamp.nn.step.schedules` enters its own."""


def as_weight(given: Weight | Mapping[str, Any]) -> Weight:
    """A number, schedule or function as it is; a schedule from ``{"schedule": name, **arguments}``.

    Example:
        >>> as_weight({"schedule": "cap", "of": {"schedule": "gain", "of": 1.3}, "fraction": 2})
        Cap(of=Gain(of=1.3), fraction=2, reach='temperature', per='node')
    """
    if isinstance(given, Mapping):
        name, arguments = (
            given.get("schedule"),
            {key: value for key, value in given.items() if key != "schedule"},
        )
        if name not in SCHEDULES:
            raise ValueError(
                f"a schedule of the weight is {{'schedule': one of {', '.join(SCHEDULES)}, ...}}, but is {dict(given)!r}."
            )
        return from_data(name, arguments)
    if callable(given):
        return given
    if isinstance(given, str) or not isinstance(given, int | float | Tensor):
        raise ValueError(
            f"weight must be a number, a schedule ({', '.join(SCHEDULES)}) or a function, but is {given!r}."
        )
    if not math.isfinite(given):
        raise ValueError(f"weight must be finite, but is {given}.")
    return given


def from_data(name: str, arguments: dict[str, Any]) -> Schedule:
    kind = SCHEDULES[name]
    known = {field.name: field.default is MISSING for field in fields(kind)}  # type: ignore[arg-type]  # all of them are dataclasses
    if unknown := [key for key in arguments if key not in known]:
        raise ValueError(
            f"the schedule {name!r} takes {', '.join(known)}, not {', '.join(unknown)}."
        )
    if missing := [key for key, needed in known.items() if needed and key not in arguments]:
        raise ValueError(
            f"the schedule {name!r} needs {', '.join(missing)} beside {', '.join(arguments) or 'nothing'}."
        )
    return kind(**arguments)


def nest(schedule: Schedule, *names: str) -> None:
    """Let a schedule's arguments be schedules, as plain data, too."""
    for name in names:
        inner = as_weight(getattr(schedule, name))
        if isinstance(inner, Module):
            raise ValueError(
                f"{type(schedule).__name__}'s {name} must be a number, a schedule or a function without parameters, but is a "
                f"{type(inner).__name__}: only a module that is itself the weight can be trained."
            )
        object.__setattr__(schedule, name, inner)


def evaluate(weight: Weight, state: LayerState) -> float | Tensor:
    """λ in a layer, a number or one per node."""
    if isinstance(weight, Schedule):
        return weight(state)
    if callable(weight):
        return weight(state.energy, state.temperature)
    return weight


def ahead(
    weight: Weight, position: Position | None, width: int, normalization: Normalization
) -> float | None:
    """λ in a layer whose embedding is not known yet, where it does not depend on that."""
    if isinstance(weight, Schedule):
        return weight.ahead(position, width, normalization)
    return None if callable(weight) else float(weight)


def missing_number(schedule: Schedule) -> str:
    return (
        f"{schedule!r} has to know the layer's number and has none: eamp.wrap and the models of eamp.nn number their layers, "
        "eamp.nn.number_layers(model) those of your own model."
    )


def check_number(
    schedule: Schedule, name: str, above: float = -math.inf, least: float = -math.inf
) -> None:
    value = getattr(schedule, name)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value <= above
        or value < least
    ):
        wanted = f" >= {least:g}" if least > above else f" > {above:g}" if above > -math.inf else ""
        raise ValueError(
            f"{type(schedule).__name__}'s {name} must be a finite number{wanted}, but is {value!r}."
        )


def check_choice(schedule: Schedule, name: str, choices: tuple[str, ...]) -> None:
    if getattr(schedule, name) not in choices:
        raise ValueError(
            f"{type(schedule).__name__}'s {name} must be one of {', '.join(choices)}, but is {getattr(schedule, name)!r}."
        )
