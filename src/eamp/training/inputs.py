"""Checks of the data that training is given, so that mistakes are told before the first epoch."""

import torch
from torch import Tensor
from torch_geometric.data import Data

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
