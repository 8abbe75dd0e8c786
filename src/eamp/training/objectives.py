"""Training objectives beside the plain cross-entropy: consistency between passes, pseudo-labels."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from eamp.graph import Graph
from eamp.nn.checks import check_count, check_share
from eamp.ops import row_dropout
from eamp.training.ranges import check_range


@dataclass(frozen=True)
class Consistency:
    r"""Consistency regularisation, for any model.

    From `"Graph Random Neural Networks for Semi-Supervised Learning on Graphs"
    <https://arxiv.org/abs/2005.11079>`_ (Feng et al., 2020). A training step makes *S* passes, each
    without the features of other nodes. With :math:`p_i^{(s)}` the probabilities of the classes of
    node *i* in pass *s*, :math:`\bar p_i` their mean and *n* nodes, the loss is

    .. math::
        \frac{1}{S} \sum_{s} \Big( \mathrm{CE}^{(s)} + \frac{\lambda}{n} \sum_{i : \max \bar p_i
            \ge \tau} \| p_i^{(s)} - \mathrm{sharpen}(\bar p_i) \|^2 \Big), \qquad
        \mathrm{sharpen}(p)_c = \frac{p_c^{1 / T}}{\sum_b p_b^{1 / T}}

    with the cross-entropy CE over the training nodes, as the protocol says. The sharpened mean is a
    target without a derivative. Dropout and other noise of the model add to the differences between
    the passes.

    With few labels and a large weight, targets that are still wrong can confirm themselves in the
    first epochs, and a run ends far below one without consistency. With a ``warmup`` of some
    hundred epochs that did not happen on any split that we tried: in epoch *e*, counted from 0, the
    weight is :math:`\lambda \min(1, e / \mathrm{warmup})`, as in `"GRAND+: Scalable Graph Random
    Neural Networks" <https://arxiv.org/abs/2203.06389>`_ (Feng et al., 2022).

    BibTeX keys for ``eamp cite``: ``feng2020graph`` and, for ``warmup``, ``feng2022grand``.

    Attributes:
        passes: *S*.
        weight: :math:`\lambda`.
        temperature: *T*; 1 leaves the mean as it is, and a small one picks the likeliest class.
        drop_rows: Probability of setting the features of a node to 0; those of others are divided
            by one minus it.
        confidence: :math:`\tau`. Nodes whose mean is less certain do not count in the second term.
        warmup: Number of epochs over which the weight grows from 0 to :math:`\lambda`.

    Example:
        >>> from eamp.training import PROTOCOLS
        >>> protocol = PROTOCOLS["standard"].with_changes(consistency={"passes": 2, "weight": 0.7})
        >>> protocol.consistency
        Consistency(passes=2, weight=0.7, temperature=0.5, drop_rows=0.5, confidence=0.0, warmup=0)
    """

    passes: int = 4
    weight: float = 1.0
    temperature: float = 0.5
    drop_rows: float = 0.5
    confidence: float = 0.0
    warmup: int = 0

    def __post_init__(self) -> None:
        check_count("passes of consistency", self.passes)
        check_count("warmup of consistency", self.warmup, lowest=0)
        for name in ("drop_rows", "confidence"):
            check_share(f"{name} of consistency", getattr(self, name))
        check_range("weight of consistency", self.weight, float, 0)
        check_range("temperature of consistency", self.temperature, float, 0)
        if self.temperature == 0 or self.drop_rows == 1:
            raise ValueError(
                "consistency needs a temperature above 0 and drop_rows below 1, but has temperature"
                f"={self.temperature} and drop_rows={self.drop_rows}."
            )

    def weight_at(self, epoch: int) -> float:
        """Return the weight in an epoch, counted from 0."""
        return grown(self.weight, self.warmup, epoch)


@dataclass(frozen=True)
class PseudoLabels:
    r"""The network's own confident predictions as labels of nodes without a label.

    From "Pseudo-Label: The Simple and Efficient Semi-Supervised Learning Method for Deep Neural
    Networks" (Lee, 2013). With :math:`p_i` the probabilities of the classes of node *i* in a
    training pass and *n* nodes, the loss of a pass grows by

    .. math::
        \frac{\lambda}{n} \sum_{i \text{ not in training}, \max p_i \ge \tau}
            - \ln \max_c p_{i c}

    No label of a validation or test node is read; their features are, as in every training on a
    whole graph. BibTeX key for ``eamp cite``: ``lee2013pseudo``.

    Attributes:
        weight: :math:`\lambda`.
        confidence: :math:`\tau`. Nodes whose prediction is less certain do not count.
        warmup: Number of epochs over which the weight grows from 0 to :math:`\lambda`. Predictions
            of the first epochs are still wrong, and confirm themselves.

    Example:
        >>> from eamp.training import PROTOCOLS
        >>> PROTOCOLS["standard"].with_changes(pseudo_labels={"weight": 0.5}).pseudo_labels
        PseudoLabels(weight=0.5, confidence=0.9, warmup=100)
    """

    weight: float = 1.0
    confidence: float = 0.9
    warmup: int = 100

    def __post_init__(self) -> None:
        check_range("weight of pseudo_labels", self.weight, float, 0)
        check_share("confidence of pseudo_labels", self.confidence)
        check_count("warmup of pseudo_labels", self.warmup, lowest=0)


Options = TypeVar("Options", Consistency, PseudoLabels)


def options_of(kind: type[Options], setting: str, given: Any) -> Options:
    """Return the options of a mapping, as recipes and the command line give them."""
    if isinstance(given, kind):
        return given
    defaults = {field.name: field.default for field in fields(kind)}
    if not isinstance(given, Mapping):
        example = json.dumps(dict(list(defaults.items())[:2]))
        raise ValueError(f"{setting} must be a mapping, as in {example}, but is {given!r}.")
    if unknown := sorted(str(name) for name in given if name not in defaults):
        raise ValueError(f"{setting} has no {', '.join(unknown)}; it has {', '.join(defaults)}.")
    return kind(**given)


def grown(weight: float, warmup: int, epoch: int) -> float:
    """Return a weight that grows from 0 over the first epochs."""
    return weight * min(1.0, epoch / warmup) if warmup else weight


def pseudo_label_loss(
    options: PseudoLabels, logits: Tensor, labelled: Tensor, graph: Graph, epoch: int
) -> Tensor:
    """Return what pseudo-labels add to the loss of a pass; of a part of a graph, its share.

    Args:
        options: the options.
        logits: of the nodes of ``graph``, with their derivatives.
        labelled: a mask of the training nodes, which do not count.
        graph: the graph, or this process's part of it.
        epoch: the number of the epoch, counted from 0.
    """
    likeliest, label = logits.detach().softmax(1).max(1)
    counted = (likeliest >= options.confidence) & ~labelled
    total = cross_entropy(logits[counted], label[counted], reduction="sum")
    return grown(options.weight, options.warmup, epoch) * total / max(graph.total_nodes, 1)


def consistency_loss(
    consistency: Consistency,
    run: Callable[[Tensor], Tensor],
    x: Tensor,
    graph: Graph,
    supervised: Callable[[Tensor], Tensor],
    epoch: int,
) -> Tensor:
    """Return the loss of several passes; of a part of a graph, its share of the loss.

    Args:
        consistency: the options.
        run: returns the logits for features.
        x: features of the graph's nodes, dense or sparse CSR.
        graph: the graph, whose row numbers decide which rows are dropped: the same in the whole
            graph and in its parts.
        supervised: returns the cross-entropy of logits, and is called after every pass.
        epoch: the number of the epoch, counted from 0.
    """
    losses, passes = [], []
    for _ in range(consistency.passes):
        logits = run(row_dropout(x, consistency.drop_rows, rows=graph.rows))
        losses.append(supervised(logits))
        passes.append(logits.softmax(dim=1))
    p = torch.stack(passes)
    mean = p.detach().mean(0)
    target = (mean.log() / consistency.temperature).softmax(dim=1)  # sharpen(mean)
    counted = mean.amax(1) >= consistency.confidence
    distances = (p - target).square().sum(2) * counted
    spread = distances.sum() / (consistency.passes * max(graph.total_nodes, 1))
    return torch.stack(losses).mean() + consistency.weight_at(epoch) * spread
