"""Training, validation and test nodes: the masks a graph comes with, or masks drawn from a seed."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, combinations
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from eamp.data.errors import DataError

MASKS = ("train_mask", "val_mask", "test_mask")
Array: TypeAlias = npt.NDArray[Any]


def check_parts(split: object, parts: tuple[object, ...], kind: type) -> None:
    """Raise an error unless all parts of a split are numbers of this kind."""
    if not all(isinstance(part, kind) and not isinstance(part, bool) for part in parts):
        expected = "three whole numbers" if kind is Integral else "three numbers"
        raise DataError(f"{type(split).__name__} needs {expected}; got {parts}.")


@dataclass(frozen=True)
class PerClass:
    """Planetoid's split: ``train`` nodes of every class, then ``val`` and ``test`` of the rest."""

    train: int = 20
    val: int = 500
    test: int = 1000

    def __post_init__(self) -> None:
        check_parts(self, (self.train, self.val, self.test), Integral)

    def draw(self, y: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return the node ids of the three parts, all with a label (``y >= 0``)."""
        order = rng.permutation(np.flatnonzero(y >= 0))
        train = np.concatenate([nodes[: self.train] for nodes in nodes_by_class(y, order)])
        rest = order[~np.isin(order, train)]
        if min(self.train, self.val, self.test) < 1 or len(rest) < self.val + self.test:
            raise DataError(
                f"{self} does not fit {len(order)} labelled nodes: {len(train)} train, "
                f"{len(rest)} are left for {self.val} + {self.test}. Use smaller positive numbers "
                "('planetoid:20/100/100') or fractions ('random:0.6/0.2/0.2')."
            )
        return train, rest[: self.val], rest[self.val : self.val + self.test]

    def __str__(self) -> str:
        return f"planetoid:{self.train}/{self.val}/{self.test}"


@dataclass(frozen=True)
class Fractions:
    """A split with the same fractions of every class and at least one training node of each."""

    train: float = 0.6
    val: float = 0.2
    test: float = 0.2

    def __post_init__(self) -> None:
        check_parts(self, (self.train, self.val, self.test), Real)

    def draw(self, y: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return the node ids of the three parts, all with a label (``y >= 0``)."""
        sums = list(accumulate((self.train, self.val, self.test)))
        # The sum of fractions can exceed 1 by a rounding error, hence the tolerance of 1e-9.
        if not (min(self.train, self.val, self.test) > 0 and sums[-1] <= 1 + 1e-9):
            raise DataError(
                f"{self} is not a split: each fraction must be above 0 and they must add up to 1 "
                "at most, as in 'random:0.6/0.2/0.2'."
            )
        order = rng.permutation(np.flatnonzero(y >= 0))
        parts = []
        for members in nodes_by_class(y, order):
            ends = accumulate((round(s * len(members)) for s in sums), max, initial=1)
            parts.append(np.split(members, list(ends)[1:])[:3])
        train, val, test = map(np.concatenate, zip(*parts, strict=True))
        return train, val, test

    def __str__(self) -> str:
        return f"random:{self.train:g}/{self.val:g}/{self.test:g}"


def nodes_by_class(y: Array, nodes: Array) -> list[Array]:
    """Return the ``nodes`` of every class that they have, each in the order of ``nodes``."""
    by_class = nodes[np.argsort(y[nodes], kind="stable")]
    return np.split(by_class, np.flatnonzero(np.diff(y[by_class])) + 1)


Split: TypeAlias = "int | str | PerClass | Fractions | None"


def parse_split(text: str) -> PerClass | Fractions:
    """Parse ``planetoid``, ``planetoid:20/500/1000``, ``random`` or ``random:0.6/0.2/0.2``."""
    kind, _, numbers = text.partition(":")
    values = numbers.split("/") if numbers else []
    with suppress(ValueError):
        if kind == "planetoid" and len(values) in (0, 3):
            return PerClass(*map(int, values))
        if kind == "random" and len(values) in (0, 3):
            return Fractions(*map(float, values))
    raise DataError(
        f"unknown split {text!r}. Expected 'public' (the graph's own masks), a number (which of "
        "its own masks), 'planetoid:20/500/1000' (train per class, val, test) or "
        "'random:0.6/0.2/0.2' (fractions)."
    )


def check_split(split: object, seed: object) -> None:
    """Raise an error for a split or seed of the wrong type."""
    whole = isinstance(split, Integral) and not isinstance(split, bool)
    if not (split is None or whole or isinstance(split, str | PerClass | Fractions)):
        raise DataError(
            "split must be 'public', a whole number, or text like 'planetoid:20/500/1000'; "
            f"got {split!r}."
        )
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise DataError(f"seed must be a whole number from 0; got {seed!r}.")


def apply_split(data: Data, split: Split, seed: int) -> None:
    """Set one-dimensional, checked masks, and their description ``split``; see :func:`load`.

    The graph has labels, and all three masks (``[n]``, or ``[n, k]`` for k splits) or none.
    """
    check_split(split, seed)
    has_masks = all(mask in data for mask in MASKS)
    if isinstance(split, str) and split != "public":
        split = int(split) if split.isdecimal() and len(split) < 10 else parse_split(split)
    if split is None and not has_masks:
        split = Fractions()
    if isinstance(split, PerClass | Fractions):
        set_masks(data, split.draw(data.y.numpy(), np.random.default_rng(seed)))
        data.split, data.num_splits = f"{split}, seed {seed}", 1
    elif has_masks:
        number = int(split) if isinstance(split, Integral) else 0
        data.num_splits = 1 if data.train_mask.dim() == 1 else data.train_mask.size(1)
        for name in MASKS:
            data[name] = select_mask(name, data[name], number)
        data.split = f"public, number {number}" if number else "public"
    else:
        raise DataError(
            f"split {split!r} asks for the graph's own masks, but it has none. "
            "Pass split='planetoid' or 'random' to draw some."
        )
    check_masks(data)


def set_masks(data: Data, parts: Iterable[Array]) -> None:
    """Set the three masks from the node ids of the three parts."""
    for name, ids in zip(MASKS, parts, strict=True):
        data[name] = torch.zeros(data.num_nodes, dtype=torch.bool)
        data[name][torch.from_numpy(ids)] = True


def select_mask(name: str, mask: Tensor, number: int) -> Tensor:
    """Return mask ``number`` out of ``[n]`` or ``[n, splits]``."""
    masks = mask.unsqueeze(1) if mask.dim() == 1 else mask
    if not 0 <= number < masks.size(1):
        raise DataError(
            f"there is no split {number}: {name} holds {masks.size(1)}. "
            f"Pass a number from 0 to {masks.size(1) - 1}."
        )
    return masks[:, number].contiguous()


def check_masks(data: Data) -> None:
    """Raise an error for empty or overlapping masks, and for masked nodes without a label."""
    for name in MASKS:
        if not bool(data[name].any()):
            raise DataError(f"{name} ({data.split}) is empty: it has no node. Pass another split=.")
        unlabelled = (data[name] & (data.y < 0)).nonzero()
        if len(unlabelled):
            raise DataError(
                f"{name} ({data.split}) has {len(unlabelled)} nodes with no label (y = -1), the "
                f"first is {int(unlabelled[0])}. Take them out of the mask."
            )
    for first, second in combinations(MASKS, 2):
        shared = (data[first] & data[second]).nonzero()
        if len(shared):
            raise DataError(
                f"{first} and {second} share {len(shared)} nodes, the first is {int(shared[0])}. "
                "Make the masks disjoint, or pass another split=."
            )
