"""Checks of the data that training is given, so that mistakes are told before the first epoch."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from eamp.training.metrics import METRICS
from eamp.training.protocols import check_range

MASKS = ("train_mask", "val_mask", "test_mask")


def check_data(data: Data) -> None:
    """Raise a ValueError unless ``data`` has all that training needs, in the right shape."""
    if not isinstance(data, Data):
        raise ValueError(
            f"data must be a torch_geometric.data.Data, but is {type(data).__name__}; of a dataset "
            "of PyG pass its first graph, dataset[0]."
        )
    needed = ("x", "edge_index", "y", *MASKS)
    if missing := [name for name in needed if not isinstance(data.get(name), Tensor)]:
        advice = (
            " torch_geometric.transforms.RandomNodeSplit()(data) draws them."
            if set(missing) <= set(MASKS)
            else ""
        )
        raise ValueError(
            f"data has no {', '.join(missing)}; training needs {', '.join(needed)}.{advice}"
        )
    nodes = data.num_nodes
    if data.y.shape != (nodes,) or data.y.is_floating_point():
        raise ValueError(
            f"y must hold one whole number per node, shape [{nodes}], but has shape "
            f"{list(data.y.shape)} and type {data.y.dtype}."
        )
    for name in MASKS:
        mask = data[name]
        if mask.dtype != torch.bool or mask.shape != (nodes,):
            several = mask.dim() == 2 and mask.shape[0] == nodes
            advice = f" Choose one of its splits: data.{name}[:, 0]." if several else ""
            raise ValueError(
                f"{name} must hold true or false per node, shape [{nodes}], but has shape "
                f"{list(mask.shape)} and type {mask.dtype}.{advice}"
            )
        if name != "test_mask" and not mask.any():
            raise ValueError(f"{name} has no node; training and selection need at least one each.")
        if bool((data.y[mask] < 0).any()):
            raise ValueError(
                f"{name} holds nodes without a label (y below 0); remove them: "
                f"data.{name} &= data.y >= 0."
            )


def check_metric(name: str, data: Data) -> None:
    """Raise a ValueError if a metric of :data:`~.metrics.METRICS` is not defined on ``data``."""
    if not METRICS[name].two_classes:
        return
    if (classes := int(data.y.max()) + 1) != 2:
        others = [other for other, metric in METRICS.items() if not metric.two_classes]
        raise ValueError(
            f"the metric {name} is for two classes, but y holds {classes}; use metric "
            f"{' or '.join(others)}."
        )
    for mask in ("val_mask", "test_mask"):
        found = data.y[data[mask]].unique()
        if found.numel() == 1:  # a test_mask without nodes is allowed
            raise ValueError(
                f"the metric {name} compares nodes of two classes, but all nodes of {mask} are of "
                f"class {int(found)}; choose a split with both in every mask."
            )


def check_run(seed: Any, checkpoint: Any, checkpoint_every: Any, on_epoch: Any) -> None:
    """Raise an error for arguments of :func:`eamp.training.train` of the wrong type or size."""
    check_range("seed", seed, int, -(2**63), 2**64 - 1)  # those that torch takes
    check_range("checkpoint_every", checkpoint_every, int, 1)
    if checkpoint is not None and not isinstance(checkpoint, str | Path):
        raise TypeError(f"checkpoint must be the path of a file, but is {checkpoint!r}.")
    if on_epoch is not None and not callable(on_epoch):
        raise TypeError(f"on_epoch must be a function, but is {on_epoch!r}.")


def first_output(call: Callable[[], Tensor], data: Data, metric: str) -> Tensor:
    """Call the model, and raise an error that says so if its sizes do not fit the data."""
    try:
        logits = call()
    except RuntimeError as error:
        if "shapes cannot be multiplied" not in str(error):
            raise
        raise ValueError(
            f"the model does not take the {data.num_features} features of the nodes ({error}); "
            f"make it with in_channels={data.num_features}."
        ) from error
    if (largest := int(data.y.max())) >= logits.size(-1):
        raise ValueError(
            f"the model has {logits.size(-1)} outputs, but y holds class {largest}; make it with "
            f"out_channels={largest + 1}."
        )
    if METRICS[metric].two_classes and logits.size(-1) != 2:
        raise ValueError(
            f"the metric {metric} is for two classes, but the model has {logits.size(-1)} outputs; "
            "make it with out_channels=2."
        )
    return logits
