"""Advice for every kind of finding, with numbers for the model at hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from torch.nn import Module
from torch_geometric.nn import GCNConv as PyGGCNConv

from eamp.diagnostics.rendering import format_number
from eamp.diagnostics.verdict import Finding
from eamp.nn.conv.gcn_conv import GCNConv
from eamp.nn.entropy_aware import EntropyAware

if TYPE_CHECKING:
    import pandas as pd

# A rule of thumb: with a larger increase the entropy step more than doubles small differences in
# every layer, and being explicit it can amplify high frequencies without bound during training.
STABLE_INCREASE = 1.0
# The weight to start with, over the smallest one that makes up for what a layer takes away. A test
# follows the advice on a GCN of 64 layers and finds it healthy.
MARGIN = 1.5
# The entropy step holds the energy if it stays within this factor of T over the last quarter of
# the layers; on a grid with λ = 10 it settles at 3.3 T.
HELD = 10.0

# More layers than this are deep, and then another network helps more than repairs of this one.
SHALLOW = 4


class Advice(str):
    """Words of advice that propose a model which :mod:`eamp.report.cures` can build.

    Attributes:
        options: those of the :func:`eamp.wrap` that the words propose, if they do.
        model: the name in :data:`eamp.nn.MODELS` of the network that they propose, if they do.
    """

    options: Mapping[str, Any] | None
    model: str | None

    def __new__(
        cls, words: str, options: Mapping[str, Any] | None = None, model: str | None = None
    ) -> Self:
        """Return the words, with what they propose as data."""
        advice = super().__new__(cls, words)
        advice.options, advice.model = options, model
        return advice


INITIAL_RESIDUAL = Advice(
    "Take a network with an initial residual, which adds the first embedding to every layer: "
    'eamp.nn.MODELS["entropic-deep-gcn"], or layers of torch_geometric.nn.GCN2Conv.',
    model="entropic-deep-gcn",
)
FEWER_LAYERS = (
    "Use fewer layers if the task allows it: on a homophilic graph two to four are often best."
)
RESIDUAL = (
    "Add residual connections, x + conv(x), or a norm between layers (torch_geometric.nn.PairNorm)."
)
MIRRORED_WEIGHTS = (
    "Begin this stack of graph convolutions with mirrored weights, eamp.nn.mirror_weights(layers), "
    "and train it at a learning rate of 1e-3 or less."
)
RELU_WEIGHTS = (
    "Initialise for ReLU (torch.nn.init.kaiming_normal_, or orthogonal weights with gain sqrt(2)) "
    "instead of Glorot, which loses half of the squared norm in every ReLU layer."
)

# In the order of the accuracies that they reach in docs/results/evidence; a test compares the two.
REMEDIES: dict[str, tuple[str, ...]] = {
    "smoothing": (INITIAL_RESIDUAL, FEWER_LAYERS),
    "shrinking": (MIRRORED_WEIGHTS, RESIDUAL, RELU_WEIGHTS),
    "rank loss": (
        MIRRORED_WEIGHTS,
        RESIDUAL,
        "Look for a bottleneck: a narrow layer, saturated attention, or one weight matrix shared "
        "by all layers. The entropy step does not raise the rank: it pushes neighbours apart along "
        "the directions that are left.",
    ),
    "exploding": (
        "Lower the learning rate, clip gradients (torch.nn.utils.clip_grad_norm_), or add a norm "
        "between layers.",
        "Sums over neighbours grow with the degree: use mean or symmetric normalisation instead "
        "of aggr='add'.",
    ),
    "dead units": (
        "Use an activation with a slope below zero (LeakyReLU, ELU, GELU).",
        "Check the biases: large negative ones switch their units off for good. A lower learning "
        "rate keeps ReLUs from dying in training.",
    ),
    "offset": (
        "Start with biases of zero (torch.nn.init.zeros_), or scale the input features up: they "
        "are small beside the biases.",
    ),
    "vanishing gradient": (
        RESIDUAL,
        "Use an activation that does not saturate, and check the scale of weights before sigmoids, "
        "tanh and softmax.",
    ),
    "exploding gradient": (
        "Clip gradients (torch.nn.utils.clip_grad_norm_), lower the learning rate, or start with "
        "smaller weights.",
        RESIDUAL,
    ),
    "low accuracy": (
        "Compare with plain propagation and one linear layer, torch_geometric.nn.SGConv, which "
        "reads more than this model does.",
        "Lower the learning rate, raise dropout and weight decay, and stop early by validation.",
    ),
}


def advise(
    found: Sequence[Finding],
    table: pd.DataFrame,
    model: Module,
    mean_degree: float,
    trained: bool = False,
) -> tuple[str, ...]:
    """Return advice for all findings, the most important first.

    In a ``trained`` model harmless findings need none. An untrained one may fail to learn although
    labels can be read from it.
    """
    advice: list[str] = []
    found = [finding for finding in found if not (trained and finding.harmless)]
    layers = [module for module in model.modules() if isinstance(module, EntropyAware)]
    highest = max(fixed_weights(layers), default=0.0)
    increase = step_increase(highest, mean_degree, table["width"].min())
    smoothing = any(finding.kind == "smoothing" for finding in found)
    another = [INITIAL_RESIDUAL, FEWER_LAYERS] if found and len(table) > SHALLOW else []
    last: list[str] = []
    for finding in found:
        shrinking_alone = finding.kind == "shrinking" and not smoothing
        step: list[str] = []
        if finding.kind == "smoothing" or (shrinking_alone and layers):
            step = entropy_advice(finding, table, layers, mean_degree)
        faulty = bool(layers) or finding.layer == 1  # the model's own step, or its input
        if faulty:
            advice += step
        else:
            last += step
        if finding.kind == "exploding" and increase > STABLE_INCREASE:
            advice.append(
                "The entropy step multiplies small differences by 1 + 2λ·sqrt(k/F) = "
                f"{format_number(1 + increase)} and can explode, because that is more than 2: "
                "lower λ, or keep T fixed."
            )
        if another and not layers:
            advice, another = [*advice, *another], []
        if shrinking_alone:
            advice.append(
                "This is not oversmoothing, and fewer layers are not the only cure: relative to "
                "their size nodes differ as before."
            )
        advice += REMEDIES[finding.kind]
    if not any(isinstance(module, GCNConv | PyGGCNConv) for module in model.modules()):
        advice = [each for each in advice if each != MIRRORED_WEIGHTS]
    return tuple(dict.fromkeys([*advice, *last]))  # without repetitions


def entropy_advice(
    finding: Finding, table: pd.DataFrame, layers: Sequence[EntropyAware], mean_degree: float
) -> list[str]:
    """Return the λ and T that would hold the energy, from how fast it falls."""
    fixed = fixed_weights(layers)
    weight = min(fixed, default=0.0)
    needed = needed_weight(finding, table, weight, mean_degree)
    if math.isnan(needed):
        alike = "Nodes are alike from the first layer on: check the input features and their scale."
        return [alike] if finding.layer == 1 else []
    energy, width = table["energy"].iloc[0], table["width"].iloc[finding.layer - 1]
    deep = table["energy"].iloc[-max(len(table) // 4, 2) :]
    for layer in layers:
        target = layer.step.temperature
        if not isinstance(target, str) and deep.between(target / HELD, target * HELD).all():
            return [
                f"The entropy step holds the energy at its T = {format_number(target)}: raise T, "
                f"for example to the first layer's energy, {energy:.2g}."
            ]
    start = MARGIN * needed
    bare = "eamp.unwrap(model)" if layers else "model"
    options = {"weight": rounded(start), "temperature": rounded(energy), "detach": False}
    words = (
        f"eamp.wrap({bare}, {arguments(options)}): λ must be above {needed:.2g}, where the entropy "
        "step, which multiplies small differences by 1 + 2λ·sqrt(k/F), makes up for those that "
        f"every layer takes away (mean degree k = {mean_degree:.2g}, width F = {width:.0f}); T is "
        "the first layer's mean energy. The step keeps neighbours apart, which by itself does not "
        "make a deep plain network accurate."
    )
    if fixed:
        words += f" Your λ = {format_number(weight)} is too small."
    if step_increase(start, mean_degree, width) > STABLE_INCREASE:
        words += " It more than doubles small differences: if training gives NaN, lower λ or T."
    return [Advice(words, options=options)]


def rounded(number: float) -> float:
    """Return a number with the two digits that advice has."""
    return float(f"{number:.2g}")


def arguments(options: Mapping[str, Any]) -> str:
    """Return options as the arguments of a call, numbers with two digits.

    Example:
        >>> arguments({"weight": 3.1, "temperature": 0.037, "detach": False})
        'weight=3.1, temperature=0.037, detach=False'
    """
    texts = {k: v if isinstance(v, bool) else f"{v:.2g}" for k, v in options.items()}
    return ", ".join(f"{name}={text}" for name, text in texts.items())


def needed_weight(
    finding: Finding, table: pd.DataFrame, weight: float, mean_degree: float
) -> float:
    """Return the λ that would keep differences, from how fast they fall under the present λ.

    A layer multiplies differences by c, and a step by 1 + 2λ·sqrt(k/F). Their product must be 1. It
    is measured between the first layer and the finding. NaN if the energy does not fall, or if
    there is no layer in between.
    """
    first, there = table.iloc[0], table.iloc[finding.layer - 1]
    if finding.layer == 1 or mean_degree == 0 or not 0 < there["energy"] < first["energy"]:
        return math.nan
    product = (there["energy"] / first["energy"]) ** (0.5 / (finding.layer - 1))
    contraction = product / (1 + step_increase(weight, mean_degree, there["width"]))
    return float((1 / contraction - 1) / step_increase(1.0, mean_degree, there["width"]))


def step_increase(weight: float, mean_degree: float, width: float) -> float:
    """Return 2λ·sqrt(k/F): near collapse the entropy step multiplies differences by 1 plus this."""
    return 2 * weight * math.sqrt(mean_degree / width)


def fixed_weights(layers: Sequence[EntropyAware]) -> list[float]:
    """Return the weights λ that are numbers; a schedule has no single weight."""
    return [float(layer.weight) for layer in layers if not callable(layer.weight)]
