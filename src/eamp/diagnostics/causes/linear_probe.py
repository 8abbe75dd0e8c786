"""Linear probes: how much of the labels a linear classifier can read from an embedding.

A probe is ridge regression on one-hot labels, fitted in closed form and judged by stratified
cross-validation on the labelled nodes. It has no optimiser and draws no random numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from eamp.diagnostics.measures.embedding import Embedding
from eamp.ops.precision import accumulate_dtype

FOLDS = 5
# Strengths of the ridge, over the mean squared length of the centred rows.
STRENGTHS = (1e-2, 1e-1)
# Nodes and columns that are used at most, which bounds the cost on large graphs.
MOST_NODES, WIDEST = 500, 192
FEWEST_NODES = 10
SEED = 0  # of the random signs with which the columns of wider embeddings are added up


@dataclass(frozen=True)
class LabelledNodes:
    """The nodes on which probes are fitted and judged, with their classes.

    Node k of the list belongs to fold k mod ``FOLDS``.

    Attributes:
        nodes: their numbers, sorted by class.
        labels: their labels.
        classes: the same, numbered from 0 without gaps.
        num_nodes: the number of all nodes, labelled or not.
        num_classes: the number of classes, also of those without a node here.
    """

    nodes: Tensor
    labels: Tensor
    classes: Tensor
    num_nodes: int
    num_classes: int

    @classmethod
    def of(cls, labels: Tensor, mask: Tensor | None = None) -> LabelledNodes | None:
        """Return the nodes with a class of at least two, or ``None`` if these are too few.

        Args:
            labels: classes ``[n]``; negative ones are unknown.
            mask: the nodes to use, ``[n]``, such as ``data.train_mask``.
        """
        if labels.dim() != 1 or labels.is_floating_point() or labels.dtype == torch.bool:
            return None
        known = labels >= 0
        if mask is not None:
            known &= mask
        nodes = known.nonzero().squeeze(1)
        if nodes.numel() > MOST_NODES:
            step = torch.linspace(0, nodes.numel() - 1, MOST_NODES, dtype=torch.float64)
            nodes = nodes[step.round().long().to(nodes.device)]
        _, classes, sizes = labels[nodes].unique(return_inverse=True, return_counts=True)
        kept = sizes[classes] > 1  # a class of one node cannot be both fitted and judged
        nodes = nodes[kept]
        found, classes = labels[nodes].unique(return_inverse=True)
        if nodes.numel() < FEWEST_NODES or found.numel() < 2:
            return None
        # Sorted by class they are dealt out to the folds in turn, so that all have equal shares.
        order = classes.argsort(stable=True)
        nodes, classes = nodes[order], classes[order]
        return cls(nodes, labels[nodes], classes, labels.numel(), int(labels.max()) + 1)

    @property
    def chance(self) -> float:
        """The accuracy of always answering with the most frequent class."""
        return float(self.classes.bincount().max() / self.classes.numel())

    def accuracy(self, x: Tensor) -> float:
        """Return the cross-validated accuracy of the best ridge strength; NaN if not finite."""
        if x.size(0) != self.num_nodes:
            return math.nan
        return ridge_accuracy(x.detach()[self.nodes], self.classes)


def probe_accuracy(x: Tensor, labels: Tensor, mask: Tensor | None = None) -> float:
    r"""Return the cross-validated accuracy of a linear classifier on an embedding.

    The classifier is ridge regression on one-hot labels, with an intercept, fitted in closed form.
    Each fifth of the labelled nodes is classified by the fit to the others. Of two strengths of
    the ridge, the more accurate counts. The accuracy tells whether the classes can still be read
    from the embedding, whatever its scale; it cannot tell whether training finds the classifier,
    nor what a nonlinear one would read. Its standard error is :math:`\sqrt{p (1 - p) / n}`, about
    .04 with 140 nodes. Of more than 500 labelled nodes, 500 are used. The columns of an embedding
    wider than 192 are added up to 192 with random signs, which costs some accuracy: on Cora's 1433
    words .50 instead of .64, and .79 instead of .81 once they were propagated three times. The fits
    are made in float32, so that a node whose two best classes are equal to four digits may count
    either way. NaN with fewer than ten nodes, with one class only, and for non-finite values.

    Args:
        x: features, ``[n, F]``.
        labels: classes ``[n]``; nodes with negative ones are left out.
        mask: the nodes to use, such as ``data.train_mask``.

    Example:
        >>> x = torch.tensor([[-1.0], [1.0]]).repeat(10, 1)
        >>> probe_accuracy(x, torch.tensor([0, 1]).repeat(10))
        1.0
    """
    nodes = LabelledNodes.of(labels, mask)
    return math.nan if nodes is None else nodes.accuracy(x)


def ridge_accuracy(x: Tensor, classes: Tensor) -> float:
    """Return the accuracy over all folds, of the best strength of the ridge."""
    # Of an embedding with a large offset, the differences count. The digits that it has suffice.
    x = Embedding(x, dtype=accumulate_dtype(x)).scaled
    x = x - x.mean(0)
    largest = Embedding(x).largest
    if not math.isfinite(largest):
        return math.nan
    # Float32 does from here on: the ridge keeps the systems' condition below 1e6.
    # The last column is the intercept, which has no penalty.
    x = narrowed((x / largest if largest > 0 else x).float())
    scale = float(x.square().sum()) / len(x) or 1.0
    x = torch.nn.functional.pad(x, (0, 1), value=1.0)
    penalty = x.new_full(x.shape[1:], scale)
    penalty[-1] *= 1e-12
    inside, answers = by_fold(x), by_fold(one_hot(classes).to(x))
    # A fit to the other folds needs their sums: those of all folds without its own.
    sums = inside.mT @ torch.cat([inside, answers], 2)  # [folds, F, F + classes]
    sums = sums.sum(0) - sums
    gram, target = sums[:, :, : x.size(1)].contiguous(), sums[:, :, x.size(1) :]
    diagonal = gram.diagonal(dim1=1, dim2=2)
    without_ridge, right = diagonal.clone(), []
    for strength in STRENGTHS:  # one at a time, since together they do not fit into a cache
        torch.add(without_ridge, penalty, alpha=strength, out=diagonal)
        factor = torch.linalg.cholesky(gram)
        half = torch.linalg.solve_triangular(factor, target, upper=False)
        found = inside @ torch.linalg.solve_triangular(factor.mT, half, upper=True)
        right.append(answers.gather(2, found.argmax(2, keepdim=True)).sum())
    return float(torch.stack(right).max() / len(x))


def by_fold(rows: Tensor) -> Tensor:
    """Return rows ``[n, F]`` as ``[folds, n / folds, F]``, filled up with zeros."""
    filled = torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % FOLDS))
    return filled.view(-1, FOLDS, rows.size(1)).transpose(0, 1)


def narrowed(x: Tensor) -> Tensor:
    """Return ``x`` with at most :data:`WIDEST` columns, sums of its own with random signs.

    Every column goes into one sum, which keeps products of rows in expectation ("count sketch"). On
    words, probes read as much from it as from a projection onto as many random directions, which
    takes four times as long.
    """
    if x.size(1) <= WIDEST:
        return x
    generator = torch.Generator().manual_seed(SEED)
    place = torch.randint(WIDEST, (x.size(1),), generator=generator)
    sign = 2 * torch.randint(2, (x.size(1),), generator=generator) - 1
    return x.new_zeros(len(x), WIDEST).index_add_(1, place.to(x.device), x * sign.to(x))
