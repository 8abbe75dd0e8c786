"""Raise the weight λ of entropy-aware layers whose energy falls, within the bounds of stability."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils.hooks import RemovableHandle

from eamp.diagnostics.watched_layers import adjacency_of_call
from eamp.graph import Graph, as_graph
from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.step.schedules import Gain
from eamp.nn.step.threshold import layer_threshold
from eamp.ops import neighbour_sums

FALLEN = 0.5  # λ rises when a layer's scale-free energy is below this share of its highest
RISE = 1.5  # the factor by which λ rises at one measurement
START = 0.1  # of the limit, for a layer whose λ is 0


class GainControl:
    r"""Raises λ of :class:`eamp.EntropyAware` layers, as long as the step stays stable.

    The step adds λ Σ_j (q_i + q_j)(x_i − x_j) to node i, where 0 ≤ |q_i| ≤ C_i. A product
    λ · max_i Σ_j a_ij (C_i + C_j) below 1 changes no difference by more than its own size in one
    layer; λ never rises above ``limit`` in this unit.

    Layers take part whose λ is a number or a :class:`eamp.nn.Gain` of a number, with
    ``energy="paper"``. A learned λ and other schedules are left alone.
    """

    def __init__(self, model: Module, limit: float) -> None:
        if not 0 < limit <= 1:
            raise ValueError(f"gain_limit must be above 0 and at most 1, but is {limit!r}.")
        named = model.named_modules()
        self.limit = limit
        self.layers = {name: m for name, m in named if takes_part(m)}
        self.units: dict[str, float] = {}
        self.highest: dict[str, float] = {}

    def hooks(self) -> Iterable[RemovableHandle]:
        """Add hooks that note the graph and width of every layer."""
        for name, layer in self.layers.items():
            note = partial(self._note, name)
            yield layer.register_forward_hook(note, with_kwargs=True)

    def _note(
        self, name: str, layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> None:
        if torch.compiler.is_compiling() or not isinstance(out, Tensor):  # one of several types
            return
        graph = as_graph(adjacency_of_call(layer, args, kwargs), out.size(0), symmetrize=True)
        unit = stiffness(graph) / math.sqrt(out.size(1))
        if isinstance(layer.weight, Gain):
            unit *= float(layer_threshold(out.size(1), graph, symmetrize=True).max())
        self.units[name] = unit

    def act(self, energies: Mapping[str, float]) -> dict[str, float]:
        """Raise λ, or the gain, where the energy of a layer has fallen; return those that rose."""
        raised = {}
        for name, layer in self.layers.items():
            energy = energies.get(name, math.nan)
            if not math.isfinite(energy) or self.units.get(name, 0.0) == 0:
                continue
            self.highest[name] = max(energy, self.highest.get(name, 0.0))
            highest = self.limit / self.units[name]
            before = number_of(layer)
            after = min(RISE * before if before > 0 else START * highest, highest)
            if energy < FALLEN * self.highest[name] and after > before >= 0:
                set_number(layer, after)
                raised[name] = after
        return raised

    def share(self) -> None:
        """Give every process λ, or the gain, of process 0; all of them have to call this."""
        if not torch.distributed.is_initialized():
            return
        shared = [{name: number_of(layer) for name, layer in self.layers.items()}]
        torch.distributed.broadcast_object_list(shared, src=0)
        for name, number in shared[0].items():
            if number != number_of(self.layers[name]):
                set_number(self.layers[name], number)


def takes_part(module: Module) -> bool:
    """Return whether λ of a module may be changed."""
    if not isinstance(module, EntropyAware) or module.step.energy != "paper":
        return False
    weight = module.weight.of if isinstance(module.weight, Gain) else module.weight
    return isinstance(weight, int | float)


def number_of(layer: Module) -> float:
    """Return λ or the gain of a layer."""
    weight: Any = layer.weight
    number: Any = weight.of if isinstance(weight, Gain) else weight
    return float(number)


def set_number(layer: EntropyAware, number: float) -> None:
    """Set λ or the gain of a layer."""
    weight = Gain(number) if isinstance(layer.weight, Gain) else number
    layer.weight, layer.step = weight, replace(layer.step, weight=weight)


def stiffness(graph: Graph) -> float:
    """Return max_i Σ_j a_ij (c_i + c_j), where c_i = 1/sqrt(k_i), for a width of 1."""

    def compute() -> float:
        ones, c = torch.ones_like(graph.degree), graph.rsqrt_degree
        sums = neighbour_sums(ones, c.unsqueeze(1), ones, graph).squeeze(1)
        return float(graph.largest(graph.degree * c + sums))

    return graph.remember(stiffness, compute)
