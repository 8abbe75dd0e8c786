"""What to try against each finding, with the numbers of the model at hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch.nn import Module

from eamp.diagnostics.rendering import short
from eamp.diagnostics.verdict import Finding
from eamp.nn.entropy_aware import EntropyAware

if TYPE_CHECKING:
    import pandas as pd

# Gain of the entropy step above which the explicit step itself may blow high frequencies up during training.
STABLE_GAIN = 1.0
# How far above the threshold to start: at it the step only just makes up for what the layer takes away.
MARGIN = 1.5
# Energies that stay within this factor of T over the last quarter of the layers are held there by the entropy step; on a grid
# with λ = 10 they settle at 3.3 T.
HELD = 10.0

REMEDIES: dict[str, tuple[str, ...]] = {
    "smoothing": (
        "Let the first embedding through to every layer: an initial residual (torch_geometric.nn.GCN2Conv), or x + conv(x).",
        "Fewer layers, if the task allows: on a homophilic graph two to four are often best.",
    ),
    "shrinking": (
        "Initialise for ReLU (torch.nn.init.kaiming_normal_, or orthogonal weights with gain sqrt(2)) instead of Glorot, which loses half "
        "of the squared norm in every ReLU layer.",
        "Restore the scale between layers, with a norm (torch.nn.RMSNorm, torch_geometric.nn.PairNorm) or with x + conv(x).",
    ),
    "rank loss": (
        "Keep directions: orthogonal initialisation, x + conv(x), or identity mapping (torch_geometric.nn.GCN2Conv). The entropy step does "
        "not aim at rank: it keeps neighbours apart along whatever direction is left.",
        "Look for a bottleneck: a narrow layer, saturated attention, or one weight matrix shared by all layers.",
    ),
    "exploding": (
        "Lower the learning rate, clip gradients (torch.nn.utils.clip_grad_norm_), or add a norm between layers.",
        "Sums over neighbours grow with the degree: use mean or symmetric normalisation instead of aggr='add'.",
    ),
    "dead units": (
        "Use an activation that lets something through below zero (LeakyReLU, ELU, GELU).",
        "Look at the biases: large negative ones silence their units for good. A lower learning rate keeps ReLUs from dying in training.",
    ),
}


def advise(
    found: Sequence[Finding], table: pd.DataFrame, model: Module, mean_degree: float
) -> tuple[str, ...]:
    """Sentences to act on, the most important first."""
    advice: list[str] = []
    smoothing = any(finding.kind == "smoothing" for finding in found)
    for finding in found:
        if finding.kind == "smoothing" or (
            finding.kind == "shrinking" and not smoothing and entropy_layers(model)
        ):
            advice += entropy_advice(finding, table, model, mean_degree)
        if finding.kind == "shrinking" and not smoothing:
            advice.append(
                "This is not oversmoothing, and fewer layers are not the only cure: nodes differ as before, relative to their size."
            )
        if finding.kind == "exploding":
            advice += calming_advice(table, model, mean_degree)
        advice += REMEDIES[finding.kind]
    return tuple(advice)


def entropy_advice(
    finding: Finding, table: pd.DataFrame, model: Module, mean_degree: float
) -> list[str]:
    """Which λ and T would hold the energy, from how fast it falls."""
    layers = entropy_layers(model)
    fixed = [float(layer.weight) for layer in layers if not callable(layer.weight)]
    weight = min(fixed, default=0.0)  # of a schedule only what it leads to is known
    needed = needed_weight(finding, table, weight, mean_degree)
    if math.isnan(needed):
        alike = "Nodes are alike from the first layer on: look at the input features, and at whether they were normalised away."
        return [alike] if finding.layer == 1 else []
    energy, width = table["energy"].iloc[0], table["width"].iloc[finding.layer - 1]
    deep = table["energy"].iloc[-max(len(table) // 4, 2) :]
    for layer in layers:
        target = layer.step.temperature
        if not isinstance(target, str) and deep.between(target / HELD, target * HELD).all():
            return [
                f"The entropy step holds the energy at its T = {short(target)}: raise T, say to the first layer's {energy:.2g}."
            ]
    start = MARGIN * needed
    bare = "eamp.unwrap(model)" if layers else "model"
    gain = step_gain(start, mean_degree, width)
    return [
        f"eamp.wrap({bare}, weight={start:.2g}, temperature={energy:.2g}, detach=False): λ has to be above {needed:.2g}, where its gain "
        f"2λ·sqrt(k/F) makes up for what every layer takes off the differences (mean degree k = {mean_degree:.2g}, width F = {width:.0f}); "
        "T is the first layer's mean energy."
        + (f" Your λ = {short(weight)} is too small." if fixed else "")
        + (
            " The gain is then above 1: watch for NaN in training, and lower λ or T if they come."
            if gain > STABLE_GAIN
            else ""
        )
    ]


def needed_weight(
    finding: Finding, table: pd.DataFrame, weight: float, mean_degree: float
) -> float:
    """The λ that would hold differences up, from how fast they fall between the first layer and the finding under the present one.

    A layer that takes differences to c times what they were, and a step with gain g = 2λ·sqrt(k/F), make (1 + g)·c together, and
    have to make 1. NaN where the energy does not fall, or has no layer to fall over.
    """
    first, there = table.iloc[0], table.iloc[finding.layer - 1]
    if finding.layer == 1 or mean_degree == 0 or not 0 < there["energy"] < first["energy"]:
        return math.nan
    together = (there["energy"] / first["energy"]) ** (0.5 / (finding.layer - 1))
    contraction = together / (1 + step_gain(weight, mean_degree, there["width"]))
    return float((1 / contraction - 1) / step_gain(1.0, mean_degree, there["width"]))


def step_gain(weight: float, mean_degree: float, width: float) -> float:
    """2λ·sqrt(k/F): by how much the entropy step stretches the differences of an embedding that has nearly collapsed."""
    return 2 * weight * math.sqrt(mean_degree / width)


def calming_advice(table: pd.DataFrame, model: Module, mean_degree: float) -> list[str]:
    """Whether the entropy step itself may be what explodes."""
    weights = (float(layer.weight) for layer in entropy_layers(model) if not callable(layer.weight))
    gain = max(
        (step_gain(weight, mean_degree, table["width"].min()) for weight in weights), default=0.0
    )
    if gain <= STABLE_GAIN:
        return []
    return [
        f"The entropy step has a gain 2λ·sqrt(k/F) of {short(gain)}, above 1, and may be what explodes: lower λ, or fix T."
    ]


def entropy_layers(model: Module) -> list[EntropyAware]:
    """Every layer that takes the entropy step."""
    return [module for module in model.modules() if isinstance(module, EntropyAware)]
