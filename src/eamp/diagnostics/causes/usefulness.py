"""Does it hurt? The labels that one has say whether layers lose what the task needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eamp.diagnostics.causes.linear_probe import LabelledNodes, narrowed
from eamp.diagnostics.verdict import Finding
from eamp.graph import Graph
from eamp.nn.conv.gcn_conv import gcn_propagate

# A fall of accuracy that matters: this much, and this many standard errors.
MARGIN, ERRORS = 0.1, 2.0
# Findings that change what can be read from an embedding, and which may be harmless.
FORWARD = ("smoothing", "shrinking", "rank loss", "offset", "dead units")


@dataclass(frozen=True)
class Usefulness:
    """What linear probes read from features and layers, beside what the model itself reads.

    Attributes:
        nodes: the number of labelled nodes on which accuracies are taken.
        features: accuracy of a linear probe on the input features.
        propagation: accuracy of a linear probe on features that were propagated k times, by k, a
            power of two.
        layers: accuracy of a linear probe on the output of every layer.
        model: accuracy of the model's own answers; NaN if it does not return a value per class.
        learned: whether the model answers better than chance on the nodes it is trained on;
            ``None`` if it does not answer, or if nothing is known about them.
    """

    nodes: int
    features: float
    propagation: dict[int, float]
    layers: tuple[float, ...]
    model: float
    learned: bool | None

    @property
    def margin(self) -> float:
        """The difference of two accuracies that matters."""
        return max(MARGIN, ERRORS * math.sqrt(0.5 / self.nodes))

    @property
    def baseline(self) -> tuple[float, str]:
        """The best accuracy without a network, and what it is read from."""
        named = [(self.features, "the input features")]
        named += [(a, f"features propagated {k} times") for k, a in self.propagation.items()]
        return max((pair for pair in named if not math.isnan(pair[0])), default=(math.nan, ""))

    def judged(self, finding: Finding) -> Finding:
        """Return the finding with whether classes can be read behind it as well as before.

        An untrained model is not judged: what can be read from it need not be what it can learn.
        """
        before = [self.features, *self.layers[: finding.layer - 1]]
        then = self.layers[finding.last - 1]
        unknown = self.learned is False or math.isnan(then) or np.isnan(before).all()
        if unknown or finding.kind not in FORWARD:
            return finding
        best = float(np.nanmax(before))
        words = f"a linear probe reads classes with accuracy {best:.2f} before and {then:.2f} then"
        if MARGIN < best - then <= self.margin:  # a fall that so few nodes do not show
            end = f"Whether it hurts cannot be told from {self.nodes} labelled nodes"
            return replace(finding, words=f"{finding.words}. {end}: {words}")
        harmless = best - then <= MARGIN
        end = "This is harmless" if harmless else "This hurts"
        return replace(finding, harmless=harmless, words=f"{finding.words}. {end}: {words}")

    def low_accuracy(self) -> Finding | None:
        """Find that a model answers worse than a linear probe without a network."""
        own = self.layers[-1] if math.isnan(self.model) else self.model
        best, source = self.baseline
        if not self.learned or not own < best - self.margin:
            return None
        depth = len(self.layers)
        highest = np.fmax.accumulate(np.array([self.features, *self.layers]))[:-1]
        keeps = np.flatnonzero(~(np.array(self.layers) < highest - self.margin))
        layer = min(int(keeps[-1]) + 2 if keeps.size else 1, depth)
        words = (
            f"the model is right on {own:.2f} of {self.nodes} labelled nodes, where a linear probe "
            f"on {source} is right on {best:.2f}. The same probe reads {self.layers[0]:.2f} from "
            f"layer 1 and {self.layers[-1]:.2f} from layer {depth}"
        )
        return Finding("low accuracy", layer, depth, words)


def usefulness(
    nodes: LabelledNodes,
    trained_on: LabelledNodes | None,
    features: Tensor,
    graph: Graph,
    layers: tuple[float, ...],
    out: Any,
) -> Usefulness:
    """Probe the features and plain propagation, and read the model's own answers."""
    with torch.no_grad():
        x = narrowed(features)
        accuracy, propagated = nodes.accuracy(x), {}
        for k in range(1, len(layers) + 1):
            x = gcn_propagate(x, graph)
            if k & (k - 1) == 0:  # powers of two, to save time
                propagated[k] = nodes.accuracy(x)
    learned = None if trained_on is None else better_than_chance(out, trained_on)
    return Usefulness(
        nodes=nodes.nodes.numel(),
        features=accuracy,
        propagation=propagated,
        layers=layers,
        model=own_accuracy(out, nodes),
        learned=learned,
    )


def own_accuracy(out: Any, nodes: LabelledNodes) -> float:
    """Return the accuracy of the model's output; NaN if it has not one column per class."""
    if not isinstance(out, Tensor) or out.shape != (nodes.num_nodes, nodes.num_classes):
        return math.nan
    return float((out[nodes.nodes].argmax(1) == nodes.labels).double().mean())


def better_than_chance(out: Any, nodes: LabelledNodes) -> bool | None:
    """Return whether the model's accuracy is above that of the most frequent class."""
    accuracy, chance = own_accuracy(out, nodes), nodes.chance
    if math.isnan(accuracy):
        return None
    error = math.sqrt(chance * (1 - chance) / nodes.nodes.numel())
    return accuracy > chance + max(MARGIN, 4 * error)  # untrained networks prefer some classes
