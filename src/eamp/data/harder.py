"""Other versions of any dataset, by a prefix of its name, as in ``missing_features:cora``.

The changes are made after the split. What they draw depends on the kind of change, on the split and
on the seed, and is the same on every platform.
"""

import math
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch_geometric.data import Data

from eamp.data.errors import DataError
from eamp.data.splits import MASKS, Array, nodes_by_class, set_masks
from eamp.data.synthetic import check_size

Prefixes: TypeAlias = list[tuple[str, str | None]]  # names and the texts of their values
Values: TypeAlias = dict[str, float]  # of every prefix of a name; 0 for those without a value


def redraw_split(data: Data, _: float, rng: np.random.Generator) -> None:
    """Draw other nodes for training, as many of every class, for validation and for the test."""
    y, (train, val, test) = data.y.numpy(), (data[mask].numpy() for mask in MASKS)
    wanted, order = (
        np.bincount(y[train], minlength=y.max() + 1),
        rng.permutation(np.flatnonzero(y >= 0)),
    )
    drawn = np.concatenate([nodes[: wanted[y[nodes[0]]]] for nodes in nodes_by_class(y, order)])
    rest = order[~np.isin(order, drawn)]
    set_masks(data, (drawn, rest[: val.sum()], rest[val.sum() :][: test.sum()]))


def few_labels(data: Data, number: float, rng: np.random.Generator) -> None:
    """Keep only so many training nodes of every class; validation and test nodes stay."""
    order = rng.permutation(np.flatnonzero(data.train_mask.numpy()))
    y = data.y.numpy()
    by_class = nodes_by_class(y, order)
    if (fewest := np.bincount(y[order], minlength=y.max() + 1).min()) < number:
        raise DataError(
            f"labels_per_class={number:g} needs that many training nodes of every class, but one "
            f"class has only {fewest}. Ask for at most {fewest}, or pass another split=."
        )
    kept = np.concatenate([nodes[: int(number)] for nodes in by_class])
    data.train_mask = torch.zeros_like(data.train_mask)
    data.train_mask[torch.from_numpy(kept)] = True


def corrupt_features(data: Data, share: float, rng: np.random.Generator) -> None:
    """Exchange the features of a share of all nodes: each of them gets those of another."""
    number = round(share * data.num_nodes)
    if number == 1:
        raise DataError(
            f"corrupted_features={share:g} is one of {data.num_nodes} nodes, which has no other to "
            "exchange its features with. Ask for a larger share."
        )
    order = rng.permutation(data.num_nodes)[:number]
    givers = np.roll(order, 1)  # one cycle through all of them, so that no node keeps its own
    x = data.x.clone()
    x[torch.from_numpy(order)] = data.x[torch.from_numpy(givers)]
    data.x = x


def remove_features(data: Data, _: float, rng: np.random.Generator) -> None:
    """Set the features of all nodes but the training nodes to 0.

    It is the task SSNC-MV of `"PairNorm: Tackling Oversmoothing in GNNs"
    <https://arxiv.org/abs/1909.12223>`_ (Zhao & Akoglu, 2020), with all vectors missing.
    """
    data.x = data.x.masked_fill(~data.train_mask.unsqueeze(1), 0)


def add_edges(data: Data, share: float, rng: np.random.Generator) -> None:
    """Add random edges, a share of the number of undirected edges; each is a new pair of nodes."""
    row, col = data.edge_index.numpy()
    low, high = (each[row != col] for each in (np.minimum(row, col), np.maximum(row, col)))
    # The pairs low < high are numbered 0, 1, …: (0, 1), (0, 2), (1, 2), (0, 3), …
    first = np.arange(data.num_nodes, dtype=np.int64)
    first = first * (first - 1) // 2  # the number of the pair (0, high)
    taken = np.unique(first[high] + low)
    number, free = round(share * len(taken)), math.comb(data.num_nodes, 2) - len(taken)
    if number > free:
        raise DataError(
            f"extra_edges={share:g} asks for {number:.6g} more edges, but only {free} pairs of "
            "nodes have none. Ask for a smaller share."
        )
    check_size("extra_edges", number, 2)
    pairs = free_numbers(taken, rng.choice(free, number, replace=False))
    high = np.searchsorted(first, pairs, side="right") - 1
    added = torch.from_numpy(np.stack([pairs - first[high], high]))
    data.edge_index = torch.cat([data.edge_index, added, added.flip(0)], dim=1)
    if "edge_weight" in data and number:
        weights = data.edge_weight.mean().expand(2 * number)
        data.edge_weight = torch.cat([data.edge_weight, weights])


def free_numbers(taken: Array, ranks: Array) -> Array:
    """Return the numbers 0, 1, … that are not ``taken`` (sorted), by their ranks among those."""
    return ranks + np.searchsorted(taken - np.arange(len(taken)), ranks, side="right")


class Change(NamedTuple):
    """A change of a dataset.

    Attributes:
        apply: a function that changes the data, from the value in the prefix.
        example: the prefix with a value.
        about: a description for the list of datasets.
        least: the smallest value; ``None`` if the prefix has no value.
        most: the largest value.
        whole: whether the value is a whole number.
    """

    apply: Callable[[Data, float, np.random.Generator], None]
    example: str
    about: str
    least: float | None = None
    most: float = math.inf
    whole: bool = False


# In the order in which they are made, whatever their order in the name.
CHANGES = {
    "redrawn_split": Change(
        redraw_split, "redrawn_split:", "another random split, of the same sizes"
    ),
    "labels_per_class": Change(
        few_labels,
        "labels_per_class=5:",
        "only so many training nodes of every class",
        1,
        whole=True,
    ),
    "corrupted_features": Change(
        corrupt_features,
        "corrupted_features=0.3:",
        "this share of all nodes exchange their features",
        0,
        1,
    ),
    "missing_features": Change(
        remove_features, "missing_features:", "only training nodes have features, others 0"
    ),
    "extra_edges": Change(
        add_edges, "extra_edges=0.5:", "random edges, this share of the number of edges", 0
    ),
}
UNDIRECTED = "undirected"
PREFIX = re.compile(rf"({'|'.join([UNDIRECTED, *CHANGES])})(?:=([^:]*))?:")


def split_name(name: str) -> tuple[Prefixes, str]:
    """Return the prefixes of a dataset's name, and the name without them.

    Example:
        >>> split_name("labels_per_class=5:undirected:csbm:nodes=500")
        ([('labels_per_class', '5'), ('undirected', None)], 'csbm:nodes=500')
    """
    prefixes = []
    while found := PREFIX.match(name):
        prefixes.append((found[1], found[2]))
        name = name[found.end() :]
    return prefixes, name


def values_of(prefixes: Prefixes) -> Values:
    """Return the value of every prefix, or raise an error that says what was expected."""
    names = [name for name, _ in prefixes]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"the name of the data has the prefix {name} twice; keep one.")
    return {name: value_of(name, text) for name, text in prefixes}


def value_of(name: str, text: str | None) -> float:
    """Return the value of a prefix as a number."""
    change = CHANGES.get(name)
    if change is None or change.least is None:
        if text is None:
            return 0
        raise DataError(f"the prefix {name} has no value; write {name}:<name of the data>.")
    try:
        value = int(text or "") if change.whole else float(text or "")
        if change.least <= value <= change.most and math.isfinite(value):
            return value
    except (ValueError, OverflowError):
        pass
    kind = "a whole number" if change.whole else "a number"
    upper = "" if math.isinf(change.most) else f" to {change.most:g}"
    raise DataError(
        f"the prefix {name} needs {kind} from {change.least:g}{upper}, as in "
        f"{change.example}cora; got {'none' if text is None else repr(text)}."
    )


def make_harder(data: Data, values: Values, seed: int) -> bool:
    """Make the changes that the prefixes ask for; return whether there were any."""
    wanted = [name for name in CHANGES if name in values]
    for name in wanted:
        # Every change has a stream of its own, so that none depends on the others' draws.
        rng = np.random.default_rng([seed, *f"{name} of {data.split}".encode()])
        CHANGES[name].apply(data, values[name], rng)
    return bool(wanted)
