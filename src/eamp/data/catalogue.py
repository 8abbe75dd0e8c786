"""The functions behind ``eamp data list``, ``eamp data get`` and ``eamp data check``."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch_geometric.data import Data, HeteroData

from eamp.data import cache, typed_graphs
from eamp.data.cache import StrPath, cache_path
from eamp.data.digests import ARRAY_DIGESTS, digest_of
from eamp.data.errors import DataError, RefusedError
from eamp.data.graph_sets import GraphSet, SetSummary, summarize_set
from eamp.data.harder import CHANGES, UNDIRECTED
from eamp.data.loading import checked_name, load
from eamp.data.molecules import MOLECULES
from eamp.data.sources import SIZES
from eamp.data.splits import MASKS
from eamp.data.tu_datasets import GRAPHS, MEMBERS
from eamp.graph import Graph, GraphError, TypedGraph

# Names of datasets that are downloaded and cached.
FETCHED = {*SIZES, *GRAPHS, *MOLECULES, *typed_graphs.SIZES}


@dataclass(frozen=True)
class Entry:
    """One line of the list of datasets.

    Attributes:
        name: the name for :func:`load`.
        about: a description.
        cached: whether the dataset is cached; ``None`` if it is never fetched.
    """

    name: str
    about: str
    cached: bool | None = None

    def __str__(self) -> str:
        state = {True: "cached", False: "not fetched", None: ""}[self.cached]
        return f"{self.name:<30} {state:<12} {self.about}"


@dataclass(frozen=True)
class Summary:
    """The size, origin and split of a loaded graph.

    Attributes:
        edges: number of undirected edges, without self-loops and duplicates.
        class_counts: number of nodes of each class; empty without labels.
        path: the cache file; ``None`` if the graph has none.
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
            f"  {self.nodes} nodes, {self.edges} undirected edges, {self.features} features, "
            f"{self.classes} classes",
            f"  train / val / test: {self.train} / {self.val} / {self.test} ({self.split})",
            *(
                [f"  nodes per class: {' / '.join(map(str, self.class_counts))}"]
                if self.classes
                else []
            ),
            f"  digest: {self.digest}",
        ]
        return "\n".join(lines + ([f"  cached in: {self.path}"] if self.path else []))


@dataclass(frozen=True)
class CheckResult:
    """The result of checking one dataset.

    Attributes:
        state: for cached datasets ``intact``, ``absent`` (not cached yet) or ``damaged``; for
            other graphs ``valid``, or ``refused`` if :class:`eamp.Graph` refuses it, for example
            because it is directed.
        detail: the digest, or what is wrong and what to do.
    """

    name: str
    state: str
    detail: str

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; a dataset that is not cached yet is not wrong."""
        return self.state not in ("damaged", "refused")

    def __str__(self) -> str:
        return f"{self.name:<24} {self.state:<12} {self.detail}"


def available() -> list[Entry]:
    """List the names that :func:`load` knows, and the prefixes that change a dataset.

    Example:
        >>> [entry.name for entry in available()][:6]
        ['cora', 'citeseer', 'pubmed', 'minesweeper', 'chameleon-filtered', 'actor']
        >>> [entry.name for entry in available()][6:10]
        ['grid:<rows>x<columns>', 'csbm', 'chains', 'distance']
        >>> [entry.name for entry in available()][10:14]
        ['<path>.npz', 'pyg:<Dataset>[/<name>]', 'undirected:<name>', 'redrawn_split:<name>']
    """
    about = "{} nodes, {} edges, {} features, {} classes".format
    return [
        *(Entry(name, about(*size), cache_path(name).is_file()) for name, size in SIZES.items()),
        Entry("grid:<rows>x<columns>", "four-neighbour grid with random features in [0, 1)"),
        Entry("csbm", "contextual stochastic block model, as in csbm:nodes=500,homophily=0.3"),
        Entry("chains", "paths with their class at one end, as in chains:length=10,classes=3"),
        Entry("distance", "hops to the nearest source, as in distance:shape=grid,sources=2"),
        Entry("<path>.npz", "your own graph: edge_index, x, y and, if you have them, masks"),
        Entry("pyg:<Dataset>[/<name>]", "a single-graph dataset of PyG, as in pyg:WebKB/Cornell"),
        Entry(f"{UNDIRECTED}:<name>", "any of these with the missing directions of its edges"),
        *(Entry(f"{change.example}<name>", change.about) for change in CHANGES.values()),
        *(Entry(name, f"{count} graphs", cached_set(name)) for name, count in GRAPHS.items()),
        *(
            Entry(name, f"{count} molecules with a measured number", cache_path(name).is_file())
            for name, count in MOLECULES.items()
        ),
        Entry("wiener", "generated graphs like molecules with a target, wiener:graphs=500"),
        *(
            Entry(
                name,
                f"typed graph: {', '.join(f'{n} {k}s' for k, n in sizes.items())}",
                cache_path(name).is_file(),
            )
            for name, sizes in typed_graphs.SIZES.items()
        ),
    ]


def cached_set(name: str) -> bool | None:
    """Return whether a set of graphs is cached; ``None`` if it is not and cannot be fetched."""
    return cache_path(name).is_file() or (False if name in MEMBERS else None)


def get(
    name: StrPath, *, folder: StrPath | None = None, refresh: bool = False
) -> Summary | SetSummary:
    """Fetch a dataset into the cache and return its summary; for the arguments see :func:`load`.

    Example:
        >>> get("grid:10x10").edges
        180
    """
    return summarize(load(name, folder=folder, refresh=refresh))


def summarize(data: Data | HeteroData | GraphSet) -> Summary | SetSummary:
    """Return the summary of a graph, or of many, that :func:`load` returned."""
    if isinstance(data, GraphSet):
        return summarize_set(data, cache_path(data.name) if data.name in FETCHED else None)
    typed = isinstance(data, HeteroData)
    if not (typed or isinstance(data, Data)) or "digest" not in data:
        raise DataError(
            f"summarize needs a graph that eamp.data.load returned; got {type(data).__name__}."
        )
    if typed:
        labelled, edges = data[data.target], TypedGraph(data).graph.num_edges
    else:
        row, col = data.edge_index
        pairs = torch.stack([torch.minimum(row, col), torch.maximum(row, col)])[:, row != col]
        labelled, edges = data, torch.unique(pairs, dim=1).size(1)
    sizes = (data.num_nodes, edges, labelled.num_features, data.num_classes)
    train, val, test = (int(labelled[mask].sum()) if mask in labelled else 0 for mask in MASKS)
    y = labelled.y if "y" in labelled else torch.empty(0, dtype=torch.int64)  # without labels
    counts = tuple(torch.bincount(y[y >= 0]).tolist())
    path = cache_path(data.name) if data.name in FETCHED else None
    split = (train, val, test, data.split)
    return Summary(data.name, data.source, *sizes, *split, counts, data.digest, path)


def check(name: StrPath) -> CheckResult:
    """Check a cached dataset against its digest, or whether any other graph is usable.

    Nothing is fetched for the named datasets, such as ``cora``, and no file is changed.

    Example:
        >>> check("grid:10x10").state
        'valid'
    """
    text = checked_name(name)
    if text.lower() not in FETCHED:
        data: Data | HeteroData | GraphSet = load(name)
        try:
            for graph in data if isinstance(data, GraphSet) else [data]:
                Graph(graph)
        except GraphError as error:  # layers without the entropy step would accept it
            return CheckResult(text, "refused", str(error))
        return CheckResult(text, "valid", data.digest)
    text = text.lower()
    try:
        cached = cache.read(text)
    except RefusedError as error:
        return CheckResult(text, "damaged", f"{error} The next load fetches it again.")
    if cached is None:
        return CheckResult(text, "absent", f"not cached; `eamp data get {text}` fetches it")
    digest = ARRAY_DIGESTS.get(text) or f"{digest_of(cached[0])}, not known beforehand"
    return CheckResult(text, "intact", f"{digest} (from: {cached[1]})")
