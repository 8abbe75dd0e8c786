"""``GraphSet``: a dataset of many graphs, one label or target per graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from eamp.data.cache import Arrays
from eamp.data.splits import Array


class GraphSet(Sequence[Data]):
    """Graphs as PyG ``Data`` objects in memory, with the origin of the dataset.

    It is a sequence, so PyG's ``DataLoader`` takes it as it is. Slices, lists and tensors of
    indices, and boolean masks select a smaller set.

    Attributes:
        name: the name for :func:`eamp.data.load`.
        source: where the graphs came from.
        digest: SHA-256 of all graphs of the dataset.
        num_classes: number of classes; 1 where the target is a number.

    Example:
        >>> import eamp
        >>> graphs = eamp.data.load("wiener:graphs=20")
        >>> len(graphs), graphs.num_features, len(graphs[:5])
        (20, 4, 5)
    """

    def __init__(
        self, graphs: Sequence[Data], name: str, source: str, digest: str, num_classes: int
    ) -> None:
        self.graphs = list(graphs)
        self.name, self.source, self.digest = name, source, digest
        self.num_classes = num_classes

    @property
    def num_features(self) -> int:
        """Number of features of a node."""
        return self.graphs[0].num_features if self.graphs else 0

    @property
    def y(self) -> Tensor:
        """Labels or targets of all graphs, ``[len(self)]``."""
        return torch.cat([graph.y for graph in self.graphs]) if self.graphs else torch.empty(0)

    def __len__(self) -> int:
        return len(self.graphs)

    @overload
    def __getitem__(self, index: int) -> Data: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | Tensor | Array) -> "GraphSet": ...
    def __getitem__(self, index: int | slice | Sequence[int] | Tensor | Array) -> "Data | GraphSet":
        """Return a graph, or the set of some graphs."""
        if isinstance(index, int | np.integer) or (isinstance(index, Tensor) and index.dim() == 0):
            return self.graphs[int(index)]
        every = np.arange(len(self))
        if not isinstance(index, slice):
            index = np.asarray(index) if len(index) else every[:0]
        graphs = [self.graphs[i] for i in every[index]]
        return GraphSet(graphs, self.name, self.source, self.digest, self.num_classes)

    def __repr__(self) -> str:
        return (
            f"GraphSet({self.name!r}, {len(self)} graphs, num_features={self.num_features}, "
            f"num_classes={self.num_classes})"
        )


@dataclass(frozen=True)
class SetSummary:
    """The size and origin of a dataset of many graphs.

    Attributes:
        edges: number of undirected edges of all graphs.
        class_counts: number of graphs of each class; empty where the target is a number.
        path: the cache file; ``None`` if the dataset has none.
    """

    name: str
    source: str
    graphs: int
    nodes: int
    edges: int
    features: int
    classes: int
    class_counts: tuple[int, ...]
    digest: str
    path: Path | None

    def __str__(self) -> str:
        classes = f"{self.classes} classes" if self.class_counts else "a number as target"
        lines = [
            f"{self.name} (from: {self.source})",
            f"  {self.graphs} graphs with {self.nodes} nodes and {self.edges} undirected edges in "
            f"total, {self.features} features, {classes}",
            f"  digest: {self.digest}",
        ]
        if self.class_counts:
            lines.insert(2, f"  graphs per class: {' / '.join(map(str, self.class_counts))}")
        return "\n".join(lines + ([f"  cached in: {self.path}"] if self.path else []))


def summarize_set(graphs: GraphSet, path: Path | None) -> SetSummary:
    """Return the summary of a dataset of many graphs."""
    nodes = sum(graph.num_nodes or 0 for graph in graphs)
    edges = sum(graph.num_edges for graph in graphs) // 2
    counts = () if graphs.y.is_floating_point() else tuple(torch.bincount(graphs.y).tolist())
    sizes = (len(graphs), nodes, edges, graphs.num_features, graphs.num_classes)
    return SetSummary(graphs.name, graphs.source, *sizes, counts, graphs.digest, path)


def split_arrays(arrays: Arrays) -> list[Data]:
    """Return the graphs of joint arrays.

    Args:
        arrays: ``edge_index`` ``[2, m]`` and ``graph`` ``[n]``, both sorted; ``kind`` ``[n]``, the
            kind of every node, from which features are made as one column per kind; and ``y``, one
            value per graph.
    """
    kind, graph, y = (torch.from_numpy(arrays[name]) for name in ("kind", "graph", "y"))
    edge_index = torch.from_numpy(arrays["edge_index"]).long()
    x = torch.nn.functional.one_hot(kind.long()).float()
    sizes = graph.long().bincount(minlength=y.numel())
    first = sizes.cumsum(0) - sizes
    of_edge = graph.long()[edge_index[0]]
    entries = of_edge.bincount(minlength=y.numel()).tolist()
    parts = (edge_index - first[of_edge]).split(entries, dim=1)
    return [
        Data(x=rows.clone(), edge_index=edges.clone(), y=y[i : i + 1].clone())
        for i, (rows, edges) in enumerate(zip(x.split(sizes.tolist()), parts, strict=True))
    ]
