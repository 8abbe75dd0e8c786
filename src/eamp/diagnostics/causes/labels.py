"""The labels of a graph, and the nodes whose labels a diagnosis may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from eamp.diagnostics.causes.linear_probe import LabelledNodes
from eamp.diagnostics.measures.named_measures import as_labels


@dataclass(frozen=True)
class Labels:
    """Labels, the nodes on which accuracies are taken, and those that a model is trained on."""

    labels: Tensor | None
    judged_on: LabelledNodes | None
    trained_on: LabelledNodes | None


def labels_of(data: Any, labels: Tensor | None, mask: Tensor | None) -> Labels:
    """Return the labels that were passed, or those of ``data``, with the nodes to use.

    Labels of other kinds than one class per node, such as targets of a regression or of whole
    graphs, are ignored, unless they were passed.

    Raises:
        TypeError: if ``labels`` or ``mask`` were passed and are no tensors.
        ValueError: if ``labels`` were passed and are not one integer per node, or if ``mask`` does
            not have one truth value per label.
    """
    if mask is not None and not isinstance(mask, Tensor):
        raise TypeError(
            f"mask must be a tensor [num_nodes], but is a {type(mask).__name__}; pass "
            "torch.as_tensor(mask)."
        )
    if labels is not None:
        labels = as_labels(labels)  # the probe compares their number with the layers' nodes
    else:
        labels = of_data(data, "y")
        num_nodes = getattr(data, "num_nodes", None)
        if labels is not None and labels.dim() == 2 and labels.size(1) == 1:
            labels = labels.squeeze(1)
        if labels is None or labels.dim() != 1 or labels.numel() != num_nodes:
            return Labels(None, None, None)
        if labels.is_floating_point() or labels.dtype == torch.bool:
            return Labels(None, None, None)
    if mask is not None and (mask.shape != labels.shape or mask.dtype != torch.bool):
        raise ValueError(
            f"mask must hold one truth value per label, of shape {tuple(labels.shape)}, but is "
            f"{mask.dtype} of shape {tuple(mask.shape)}."
        )
    training = mask_of(data, "train_mask", labels)
    if mask is None:
        mask = mask_of(data, "val_mask", labels)
    judged_on = LabelledNodes.of(labels, training if mask is None else mask)
    trained_on = LabelledNodes.of(labels, training) or judged_on
    return Labels(labels, judged_on, trained_on)


def mask_of(data: Any, name: str, labels: Tensor) -> Tensor | None:
    """Return a mask of ``data``, the first of several splits, if it fits the labels."""
    mask = of_data(data, name)
    if mask is not None and mask.dim() == 2:
        mask = mask[:, 0]
    fits = mask is not None and mask.shape == labels.shape and mask.dtype == torch.bool
    return mask if fits else None


def of_data(data: Any, name: str) -> Tensor | None:
    """Return a tensor of a PyG ``Data``, or ``None``; a tuple of arguments has no names."""
    value = None if isinstance(data, tuple | list) else getattr(data, name, None)
    return value if isinstance(value, Tensor) else None
