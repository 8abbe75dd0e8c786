"""Which nodes train, validate and test: the masks a graph brings, or ones drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from eamp.data.digests import DataError

MASKS = ("train_mask", "val_mask", "test_mask")
Labels: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class PerClass:
    """Planetoid's way: ``train`` nodes of every class, then ``val`` and ``test`` nodes of all that are left."""

    train: int = 20
    val: int = 500
    test: int = 1000

    def draw(self, y: Labels, rng: np.random.Generator) -> tuple[Labels, Labels, Labels]:
        """Node ids of the three parts, from the nodes with a label (``y >= 0``)."""
        order = rng.permutation(np.flatnonzero(y >= 0))
        train = np.concatenate([order[y[order] == c][: self.train] for c in np.unique(y[order])])
        rest = order[~np.isin(order, train)]
        if min(self.train, self.val, self.test) < 1 or len(rest) < self.val + self.test:
            raise DataError(
                f"{self} does not fit {len(order)} labelled nodes: {len(train)} train, {len(rest)} are left for "
                f"{self.val} + {self.test}. Ask for fewer ('planetoid:20/100/100'), or for fractions ('random:0.6/0.2/0.2')."
            )
        return train, rest[: self.val], rest[self.val : self.val + self.test]

    def __str__(self) -> str:
        return f"planetoid:{self.train}/{self.val}/{self.test}"


@dataclass(frozen=True)
class Fractions:
    """The same fractions of every class; at least one node of each trains."""

    train: float = 0.6
    val: float = 0.2
    test: float = 0.2

    def draw(self, y: Labels, rng: np.random.Generator) -> tuple[Labels, Labels, Labels]:
        """Node ids of the three parts, from the nodes with a label (``y >= 0``)."""
        if (
            min(self.train, self.val, self.test) <= 0
            or self.train + self.val + self.test > 1 + 1e-9
        ):
            raise DataError(f"{self} is no split: fractions are above 0 and add up to 1 at most.")
        order = rng.permutation(np.flatnonzero(y >= 0))
        parts: tuple[list[Labels], list[Labels], list[Labels]] = ([], [], [])
        for c in np.unique(y[order]):
            members = order[y[order] == c]
            first = max(1, round(self.train * len(members)))
            second = max(first, round((self.train + self.val) * len(members)))
            third = max(second, round((self.train + self.val + self.test) * len(members)))
            for part, (start, stop) in zip(
                parts, ((0, first), (first, second), (second, third)), strict=True
            ):
                part.append(members[start:stop])
        train, val, test = (np.concatenate(part) for part in parts)
        return train, val, test

    def __str__(self) -> str:
        return f"random:{self.train:g}/{self.val:g}/{self.test:g}"


Split: TypeAlias = "int | str | PerClass | Fractions | None"


def parse_split(text: str) -> PerClass | Fractions:
    """``planetoid``, ``planetoid:20/500/1000``, ``random`` or ``random:0.6/0.2/0.2``.

    Example:
        >>> parse_split("planetoid:5/10/10")
        PerClass(train=5, val=10, test=10)
    """
    kind, _, numbers = text.partition(":")
    values = numbers.split("/") if numbers else []
    try:
        if kind == "planetoid" and len(values) in (0, 3):
            return PerClass(*map(int, values))
        if kind == "random" and len(values) in (0, 3):
            return Fractions(*map(float, values))
    except ValueError:
        pass
    raise DataError(
        f"unknown split {text!r}. Expected 'public' (the graph's own masks), a number (which of several), "
        "'planetoid:20/500/1000' (train per class, val, test) or 'random:0.6/0.2/0.2' (fractions)."
    )


def put_split(data: Data, split: Split, seed: int) -> None:
    """Give ``data`` one-dimensional, checked masks, and the name of the split as ``data.split``.

    Args:
        data: a graph with labels, and with all three masks (``[n]``, or ``[n, k]`` for k splits) or none.
        split: ``None`` for the graph's own masks (the first, where there are several), and random fractions where it has
            none; ``"public"`` or a number for its own masks; a description or its text form to draw new ones.
        seed: decides which nodes are drawn.
    """
    own = all(mask in data for mask in MASKS)
    if isinstance(split, str) and split != "public":
        split = int(split) if split.isdecimal() else parse_split(split)
    if isinstance(split, PerClass | Fractions) or (split is None and not own):
        rule = Fractions() if split is None else split
        for name, ids in zip(
            MASKS, rule.draw(data.y.numpy(), np.random.default_rng(seed)), strict=True
        ):
            data[name] = torch.zeros(data.num_nodes, dtype=torch.bool)
            data[name][torch.from_numpy(ids)] = True
        data.split, data.num_splits = f"{rule}, seed {seed}", 1
    elif own:
        number = split if isinstance(split, int) else 0
        data.num_splits = 1 if data.train_mask.dim() == 1 else data.train_mask.size(1)
        for name in MASKS:
            data[name] = pick(name, data[name], number)
        data.split = "public" if not number else f"public, number {number}"
    else:
        raise DataError(
            f"split {split!r} asks for the graph's own masks, but it has none. Pass 'planetoid' or 'random' to draw some."
        )
    check_masks(data)


def pick(name: str, mask: Tensor, number: int) -> Tensor:
    """Mask number ``number``."""
    masks = mask.unsqueeze(1) if mask.dim() == 1 else mask
    if not 0 <= number < masks.size(1):
        raise DataError(
            f"there is no split {number}: {name} holds {masks.size(1)}, numbered from 0."
        )
    return masks[:, number].contiguous()


def check_masks(data: Data) -> None:
    train, val, test = (data[name] for name in MASKS)
    for name in MASKS:
        if not bool(data[name].any()):
            raise DataError(
                f"{name} ({data.split}) is empty: no node is left for it. Pass another split=."
            )
    for first, second, both in (
        (*MASKS[:2], train & val),
        (MASKS[0], MASKS[2], train & test),
        (*MASKS[1:], val & test),
    ):
        if bool(both.any()):
            raise DataError(
                f"{first} and {second} share {int(both.sum())} nodes, the first is {int(both.nonzero()[0])}."
            )
    unlabelled = (train | val | test) & (data.y < 0)
    if bool(unlabelled.any()):
        raise DataError(
            f"{int(unlabelled.sum())} nodes in the masks have no label (y = -1), the first is {int(unlabelled.nonzero()[0])}."
        )
