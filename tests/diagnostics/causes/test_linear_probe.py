"""Linear probes beside the same regression, written out and refitted for every fold."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from eamp.diagnostics import probe_accuracy
from eamp.diagnostics.causes.linear_probe import FOLDS, MOST_NODES, STRENGTHS, WIDEST, LabelledNodes


def blobs(
    n: int = 90, width: int = 4, classes: int = 3, noise: float = 1.0
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % classes
    centres = torch.randn(classes, width, generator=generator)
    return centres[labels] + noise * torch.randn(n, width, generator=generator), labels


def literal(x: Tensor, labels: Tensor, fold: Tensor) -> float:
    """Least squares with a penalty, one fold and one strength after the other."""
    features, target = x.double().numpy(), np.eye(int(labels.max()) + 1)[labels.numpy()]
    features = features / np.abs(features).max()
    features = features - features.mean(0)
    features = features / np.abs(features).max()
    best = 0.0
    for strength in STRENGTHS:
        ridge = strength * np.square(features).sum() / len(features)
        right = 0
        for k in range(FOLDS):
            inside = (fold == k).numpy()
            a, b = features[~inside], target[~inside]
            offset, mean = a.mean(0), b.mean(0)  # an intercept without penalty
            centred = a - offset
            gram = centred.T @ centred + ridge * np.eye(a.shape[1])
            weights = np.linalg.solve(gram, centred.T @ (b - mean))
            answers = ((features[inside] - offset) @ weights + mean).argmax(1)
            right += int((answers == labels.numpy()[inside]).sum())
        best = max(best, right / len(features))
    return best


@pytest.mark.parametrize("noise", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("width", [2, 8, 120])
@pytest.mark.parametrize("n", [90, 92])  # folds of equal and of unequal sizes
def test_accuracy_is_that_of_a_regression_per_fold(noise: float, width: int, n: int) -> None:
    x, labels = blobs(n, noise=noise, width=width)
    nodes = LabelledNodes.of(labels)
    assert nodes is not None
    fold = torch.empty(n, dtype=torch.long)
    fold[nodes.nodes] = torch.arange(n) % FOLDS
    assert nodes.accuracy(x) == pytest.approx(literal(x, labels, fold))
    assert probe_accuracy(x, labels) == nodes.accuracy(x)


def test_folds_hold_the_same_share_of_every_class() -> None:
    nodes = LabelledNodes.of(torch.arange(100) % 4)
    assert nodes is not None
    counts = torch.zeros(FOLDS, 4).index_put_(
        (torch.arange(100) % FOLDS, nodes.classes), torch.ones(100), accumulate=True
    )
    assert (counts == 5).all()


def test_neither_scale_nor_offset_matters() -> None:
    x, labels = blobs()
    expected = probe_accuracy(x, labels)
    assert probe_accuracy(1e-30 * x.double(), labels) == expected
    assert probe_accuracy(x.double() + 1e4, labels) == expected


def test_noise_is_read_about_as_well_as_by_chance() -> None:
    x = torch.randn(400, 5, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(400) % 4
    assert abs(probe_accuracy(x, labels) - 0.25) < 0.1
    assert probe_accuracy(torch.ones(400, 5), labels) == pytest.approx(0.25)


def test_only_labelled_nodes_of_the_mask_count() -> None:
    x, labels = blobs(noise=0.1)
    wrong = labels.clone()
    wrong[60:] = (labels[60:] + 1) % 3
    mask = torch.arange(90) < 60
    assert probe_accuracy(x, wrong, mask) == 1
    assert probe_accuracy(x, torch.where(mask, labels, -1)) == 1
    assert probe_accuracy(x, wrong) < 0.9


def test_too_little_to_probe_is_nan() -> None:
    x = torch.randn(12, 2)
    assert math.isnan(probe_accuracy(x, torch.zeros(12, dtype=torch.long)))
    assert math.isnan(probe_accuracy(x, torch.arange(12)))  # every class has one node
    assert math.isnan(probe_accuracy(x, torch.arange(12) % 2, torch.arange(12) < 5))
    assert math.isnan(probe_accuracy(x * math.nan, torch.arange(12) % 2))
    assert math.isnan(probe_accuracy(x[:6], torch.arange(12) % 2))  # other nodes


def test_large_inputs_are_cut_down() -> None:
    labels = torch.arange(3 * MOST_NODES) % 3
    nodes = LabelledNodes.of(labels)
    assert nodes is not None
    assert nodes.nodes.numel() == MOST_NODES
    x = torch.nn.functional.one_hot(labels).float().repeat(1, WIDEST)
    assert nodes.accuracy(x) == 1
