"""What there is, fetching it, and checking what was kept: the rows behind ``eamp data list``, ``get`` and ``check``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch_geometric.data import Data

from eamp.data import cache
from eamp.data.digests import ARRAYS, RefusedError
from eamp.data.loading import load
from eamp.data.planetoid import SIZES
from eamp.data.splits import MASKS
from eamp.graph import Graph, GraphError


@dataclass(frozen=True)
class Entry:
    """One line of the list of datasets.

    Attributes:
        name: what to pass to :func:`load`.
        about: what it is.
        cached: whether it is in the cache already; ``None`` where there is nothing to fetch.
    """

    name: str
    about: str
    cached: bool | None = None

    def __str__(self) -> str:
        state = {True: "cached", False: "not fetched", None: ""}[self.cached]
        return f"{self.name:<24} {state:<12} {self.about}"


@dataclass(frozen=True)
class Summary:
    """What a loaded graph is.

    Attributes:
        edges: undirected edges, self-loops and duplicates left out.
        class_counts: nodes per class.
        path: the cache file, for datasets that have one.
    """

    name: str
    source: str
    nodes: int
    edges: int
    features: int
    classes: int
    train: int
    val: int
    test: int
    split: str
    class_counts: tuple[int, ...]
    digest: str
    path: Path | None

    def __str__(self) -> str:
        lines = [
            f"{self.name} (from: {self.source})",
            f"  {self.nodes} nodes, {self.edges} undirected edges, {self.features} features, {self.classes} classes",
            f"  train / val / test: {self.train} / {self.val} / {self.test} ({self.split})",
            f"  nodes per class: {' / '.join(map(str, self.class_counts))}",
            f"  digest: {self.digest}",
        ]
        return "\n".join(lines + ([f"  kept in: {self.path}"] if self.path else []))


@dataclass(frozen=True)
class CheckResult:
    """Whether a dataset is what it should be.

    Attributes:
        state: ``intact``, ``absent`` (nothing cached yet) or ``damaged``; for generated graphs and your own, ``valid``, or
            ``refused``: a directed graph, say.
        detail: the digest that was found, or what is wrong.
    """

    name: str
    state: str
    detail: str

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; an absent cache is not wrong, only empty."""
        return self.state not in ("damaged", "refused")

    def __str__(self) -> str:
        return f"{self.name:<24} {self.state:<12} {self.detail}"


def available() -> list[Entry]:
    """Everything :func:`load` knows by name.

    Example:
        >>> [entry.name for entry in available()]
        ['cora', 'citeseer', 'pubmed', 'grid:<rows>x<columns>', 'csbm', '<path>.npz', 'pyg:<Dataset>[/<name>]']
    """
    planetoid = [
        Entry(
            name,
            f"{s.nodes} nodes, {s.edges} edges, {s.features} features, {s.classes} classes",
            cache.cache_path(name).is_file(),
        )
        for name, s in SIZES.items()
    ]
    return [
        *planetoid,
        Entry("grid:<rows>x<columns>", "four-neighbour grid with random features in [0, 1)"),
        Entry(
            "csbm",
            "contextual stochastic block model, made on the spot; options as in csbm:nodes=500,homophily=0.3",
        ),
        Entry("<path>.npz", "your own graph: edge_index, x, y, and masks if you have them"),
        Entry(
            "pyg:<Dataset>[/<name>]",
            "a single-graph dataset of torch_geometric, as in pyg:WebKB/Cornell",
        ),
    ]


def get(
    name: str | os.PathLike[str],
    *,
    folder: str | os.PathLike[str] | None = None,
    refresh: bool = False,
) -> Summary:
    """Fetch a dataset into the cache, and say what it is.

    Example:
        >>> get("grid:10x10").edges
        180
    """
    return summarize(load(name, folder=folder, refresh=refresh))


def summarize(data: Data) -> Summary:
    """The facts of a graph that :func:`load` returned."""
    row, col = data.edge_index
    pairs = torch.unique(
        torch.stack([torch.minimum(row, col), torch.maximum(row, col)])[:, row != col], dim=1
    )
    train, val, test = (int(data[mask].sum()) for mask in MASKS)
    return Summary(
        name=data.name,
        source=data.source,
        nodes=data.num_nodes,
        edges=pairs.size(1),
        features=data.num_features,
        classes=data.num_classes,
        train=train,
        val=val,
        test=test,
        split=data.split,
        class_counts=tuple(torch.bincount(data.y[data.y >= 0]).tolist()),
        digest=data.digest,
        path=cache.cache_path(data.name) if data.name in ARRAYS else None,
    )


def check(name: str | os.PathLike[str]) -> CheckResult:
    """Check what is cached against the digest it must have; for other names, whether the graph can be loaded and has an energy.

    Nothing is fetched, and a damaged file is only reported: the next :func:`load` replaces it.

    Example:
        >>> print(check("grid:10x10").state)
        valid
    """
    text = os.fspath(name)
    if text.lower() not in SIZES:
        loaded = load(name)
        try:
            Graph(loaded)
        except GraphError as error:  # layers without the entropy step would take it
            return CheckResult(text, "refused", str(error))
        return CheckResult(text, "valid", loaded.digest)
    try:
        cached = cache.read(text.lower())
    except RefusedError as error:
        return CheckResult(text.lower(), "damaged", str(error))
    if cached is None:
        return CheckResult(text.lower(), "absent", f"nothing at {cache.cache_path(text.lower())}")
    return CheckResult(text.lower(), "intact", f"{ARRAYS[text.lower()]} (from: {cached.source})")
