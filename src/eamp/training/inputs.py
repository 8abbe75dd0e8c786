"""Checks of the data that training is given, so that mistakes are told before the first epoch."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from eamp.data.splits import MASKS
from eamp.training.metrics import METRICS
from eamp.training.ranges import check_range
from eamp.training.targets import Target


def check_data(data: Data) -> None:
    """Raise a ValueError unless one graph has all that training on its nodes needs."""
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
    if data.y.dim() not in (1, 2) or data.y.size(0) != nodes or 0 in data.y.shape:
        raise ValueError(
            f"y must hold one label per node, shape [{nodes}], or several, shape [{nodes}, "
            f"targets], but has shape {list(data.y.shape)} and type {data.y.dtype}."
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


def check_masked_labels(data: Data, target: Target) -> None:
    """Raise a ValueError if a masked node has no class, or no masked node has a label."""
    if target.kind == "classes":
        for name in MASKS:
            if bool((data.y[data[name]] < 0).any()):
                raise ValueError(
                    f"{name} holds nodes without a label (y below 0); remove them: "
                    f"data.{name} &= data.y >= 0."
                )
    parts = {name: target.column(data.y)[data[name]] for name in MASKS}
    check_labels(parts, target, "nodes", "choose a split with both in every mask")


def check_labels(parts: Mapping[str, Tensor], target: Target, rows: str, advice: str) -> None:
    """Raise a ValueError if a part has no known label, or the metric is not defined on it.

    Args:
        parts: the labels of training, validation and test rows, in this order, by the part's name.
        target: what is predicted.
        rows: what the rows are, in words.
        advice: how to get other parts.
    """
    name, metric = target.metric, METRICS[target.metric]
    for part, y in list(parts.items())[:2]:
        if bool(y.isnan().all()):  # also if there are none
            raise ValueError(
                f"{part} has no known label; training and selection need at least one each."
            )
    for part, y in parts.items():
        if bool(y.isinf().any()):
            raise ValueError(
                f"y of {part} is infinite {int(y.isinf().sum())} times; mark missing numbers as "
                "such: y[y.isinf()] = float('nan')."
            )
    if target.kind != "classes":
        if target.kind == "labels" and not any(
            column[~column.isnan()].unique().numel() == 2 for column in list(parts.values())[1].T
        ):
            raise ValueError(
                f"the metric {name} compares {rows} of two classes, but the {rows} of "
                f"{list(parts)[1]} have one for every target; {advice}."
            )
        return
    if not metric.two_classes:
        return
    if target.outputs != 2:
        others = [
            other for other, one in METRICS.items() if not one.two_classes and not one.regression
        ]
        raise ValueError(
            f"the metric {name} is for two classes, but y holds {target.outputs}; use metric "
            f"{' or '.join(others)}."
        )
    for part, y in list(parts.items())[1:]:
        found = y.unique()
        if found.numel() == 1:  # no test rows are allowed
            raise ValueError(
                f"the metric {name} compares {rows} of two classes, but all {rows} of {part} are "
                f"of class {int(found)}; {advice}."
            )


def check_run(seed: Any, checkpoint: Any, checkpoint_every: Any, on_epoch: Any) -> None:
    """Raise an error for arguments of :func:`eamp.training.train` of the wrong type or size."""
    check_range("seed", seed, int, -(2**63), 2**64 - 1)  # those that torch takes
    check_range("checkpoint_every", checkpoint_every, int, 1)
    if checkpoint is not None and not isinstance(checkpoint, str | Path):
        raise TypeError(f"checkpoint must be the path of a file, but is {checkpoint!r}.")
    if on_epoch is not None and not callable(on_epoch):
        raise TypeError(f"on_epoch must be a function, but is {on_epoch!r}.")


def first_output(call: Callable[[], Tensor], features: int) -> Tensor:
    """Call the model, and raise an error that says so if it takes other features."""
    try:
        return call()
    except RuntimeError as error:
        if "shapes cannot be multiplied" not in str(error):
            raise
        raise ValueError(
            f"the model does not take the {features} features of the nodes ({error}); make it "
            f"with in_channels={features}."
        ) from error
