"""``load``: a graph by name, as a PyG ``Data`` with masks and origin, or many graphs."""

import inspect
import os
from collections.abc import Callable
from typing import Any, Literal, overload

from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import coalesce, to_undirected

from eamp.data import typed_graphs
from eamp.data.arrays import GraphArrays
from eamp.data.cache import Arrays, StrPath, read_or_fetch
from eamp.data.digests import ARRAY_DIGESTS, digest_of, graph_digest
from eamp.data.distant import chains, distance
from eamp.data.errors import DataError
from eamp.data.graph_sets import GraphSet
from eamp.data.harder import CHANGES, UNDIRECTED, make_harder, split_name, values_of
from eamp.data.molecule_like import wiener
from eamp.data.molecules import MOLECULES, load_molecules
from eamp.data.npz_graphs import from_npz
from eamp.data.pyg_datasets import from_pyg
from eamp.data.sources import SIZES, fetch
from eamp.data.splits import Split, apply_split, check_split
from eamp.data.synthetic import csbm, grid
from eamp.data.tu_datasets import GRAPHS, load_tu
from eamp.spelling import did_you_mean

GENERATORS: dict[str, Callable[..., Any]] = {
    "grid": grid,
    "csbm": csbm,
    "chains": chains,
    "distance": distance,
    "wiener": wiener,
}
EXAMPLES = {
    "grid": "grid:10x10,seed=1",
    "csbm": "csbm:nodes=500,homophily=0.3",
    "chains": "chains:length=10,classes=3",
    "distance": "distance:shape=grid,sources=2",
    "wiener": "wiener:graphs=500,nodes=30",
}
SETS = (*GRAPHS, *MOLECULES, "wiener")  # datasets of many graphs


# mypy is told about names that are literal; another name is that of one graph, as most are.
@overload
def load(
    name: Literal["mutag", "proteins", "enzymes", "nci1", "solubility", "wiener"],
    *,
    folder: StrPath | None = None,
    refresh: bool = False,
) -> GraphSet: ...
@overload
def load(
    name: Literal["imdb", "lastfm"],
    *,
    folder: StrPath | None = None,
    split: Split = None,
    seed: int = 0,
    refresh: bool = False,
) -> HeteroData: ...
@overload
def load(
    name: StrPath = "csbm",
    *,
    folder: StrPath | None = None,
    split: Split = None,
    seed: int = 0,
    symmetrize: bool = False,
    refresh: bool = False,
) -> Data: ...
def load(
    name: StrPath = "csbm",
    *,
    folder: StrPath | None = None,
    split: Split = None,
    seed: int = 0,
    symmetrize: bool = False,
    refresh: bool = False,
) -> Data | HeteroData | GraphSet:
    """Load a graph, or a dataset of many graphs, by name.

    Args:
        name: ``cora``, ``citeseer``, ``pubmed``, ``minesweeper``, ``chameleon-filtered`` or
            ``actor``; ``imdb`` or ``lastfm``, typed graphs, which are returned as a ``HeteroData``;
            ``grid:10x10``, ``csbm:nodes=500,homophily=0.3``, ``chains`` or ``distance`` (with the
            options of :func:`grid`, :func:`csbm`, :func:`chains` and :func:`distance`); the path of
            an ``.npz`` file of your own; or ``pyg:<Dataset>[/<name>]``. ``mutag``, ``proteins``,
            ``enzymes``, ``nci1``, ``solubility`` and ``wiener:graphs=500`` (see :func:`wiener`) are
            datasets of many graphs, which take neither a split nor prefixes. Prefixes before
            any of them change it: ``undirected:`` means ``symmetrize=True``, and
            ``missing_features:``, ``corrupted_features=0.3:``, ``extra_edges=0.5:`` and
            ``labels_per_class=5:`` make it harder, after the split.
        folder: a folder with the files of a named dataset, tried before GitHub and the package
            index. By default those in the environment variable ``EAMP_DATA``, which names one
            folder or several, separated as in ``PATH``.
        split: the training, validation and test nodes. ``"public"`` or a number: the graph's own
            masks. ``"planetoid:20/500/1000"``: that many training nodes per class, validation and
            test nodes. ``"random:0.6/0.2/0.2"``: fractions. By default the graph's own masks if
            it has any, and else ``"random"``.
        seed: seed of a drawn split and of what the prefixes draw. The seed of a generated graph is
            part of its name, as in ``grid:10x10,seed=1``.
        symmetrize: whether to add the missing directions of a directed graph.
        refresh: whether to fetch the dataset again even if it is cached.

    Returns:
        A ``Data`` with ``x``, ``edge_index``, ``y``, ``train_mask``, ``val_mask`` and
        ``test_mask``, and with ``name``, ``source``, ``digest`` (of the graph as it came, or of the
        harder version), ``split`` and ``num_classes``; or a :class:`GraphSet` of many graphs.

    Raises:
        DataError: if the dataset cannot be fetched or is not a usable graph, for example because
            a feature is NaN or infinite.

    Example:
        >>> data = load("grid:3x4")
        >>> data.num_nodes, data.source, data.split
        (12, 'generated', 'random:0.6/0.2/0.2, seed 0')
        >>> load("labels_per_class=2:csbm").train_mask.sum()
        tensor(10)
    """
    full_name = checked_name(name)
    for option, value in (("symmetrize", symmetrize), ("refresh", refresh)):
        if not isinstance(value, bool):
            raise DataError(f"{option} must be True or False; got {value!r}.")
    if not isinstance(folder, str | os.PathLike | None):
        raise DataError(f"folder must be a path; got {folder!r}.")
    check_split(split, seed)
    prefixes, text = split_name(full_name)
    values = values_of(prefixes)
    if text.lower() in typed_graphs.SIZES:
        if values:
            raise DataError(
                f"{text} is a typed graph, which prefixes do not change; load {text.lower()!r}."
            )
        return typed_graphs.load_typed(text.lower(), folder, split, seed, refresh)
    kind, _, options = text.partition(":")
    if kind.lower() in SETS:
        if prefixes or split is not None or symmetrize:
            raise DataError(
                f"{text} is a dataset of many graphs, which takes no split, no symmetrize and no "
                f"prefixes; write load({text!r}) and split its graphs."
            )
        return load_set(text, kind.lower(), options, folder, refresh)
    if text.lower() in SIZES:
        full_name, text = full_name.removesuffix(text) + text.lower(), text.lower()
        arrays, source = read_or_fetch(text, refresh, lambda: fetch_arrays(text, folder))
        data, digest = GraphArrays(**arrays).to_data(), ARRAY_DIGESTS[text]
    else:
        if kind.lower() in GENERATORS:
            data, source = generate(kind.lower(), options), "generated"
        elif kind == "pyg":
            data, source = from_pyg(options, refresh), "torch_geometric"
        elif text.endswith(".npz") or os.path.isfile(os.path.expanduser(text)):
            data, source = from_npz(text), "file"
        else:
            raise DataError(unknown(text))
        keys = [key for key in ("edge_index", "x", "y", "edge_weight") if key in data]
        digest = digest_of({key: data[key].numpy() for key in keys})
    if symmetrize or UNDIRECTED in values:
        make_undirected(data)
    apply_split(data, split, seed)
    if make_harder(data, values, seed):
        digest = graph_digest(data)
    data.name, data.source, data.digest = full_name, source, digest
    data.num_classes = int(data.y.max()) + 1
    return data


def load_set(text: str, kind: str, options: str, folder: StrPath | None, refresh: bool) -> GraphSet:
    """Return a dataset of many graphs, fetched or generated."""
    if text.lower() in GRAPHS:
        return load_tu(text.lower(), folder, refresh)
    if text.lower() in MOLECULES:
        return load_molecules(text.lower(), folder, refresh)
    if kind not in GENERATORS:
        raise DataError(f"{kind} takes no options, but {options!r} was given; write {kind}.")
    graphs: GraphSet = generate(kind, options)
    graphs.name = text
    return graphs


def checked_name(name: object) -> str:
    """Return the name of a graph as text, and raise an error if it is neither text nor a path."""
    text = os.fspath(name) if isinstance(name, str | os.PathLike) else name
    if not isinstance(text, str):
        hint = " It is a graph already: use it as it is." if isinstance(name, Data) else ""
        raise DataError(
            "a graph is loaded by its name, such as 'cora', or by the path of an .npz file; "
            f"got {type(name).__name__}.{hint}"
        )
    return text


def unknown(name: str) -> str:
    """Return the words of an error about a name, with the known ones."""
    datasets = [*SIZES, *GRAPHS, *MOLECULES, *typed_graphs.SIZES, *GENERATORS]
    prefixes = [UNDIRECTED, *CHANGES]
    examples = [f"{UNDIRECTED}:", *(change.example for change in CHANGES.values())]
    first = name.lower().partition(":")[0].partition("=")[0]
    guess = did_you_mean(name, datasets) or did_you_mean(first, prefixes)
    return (
        f"there is no dataset {name!r}.{guess} Known: {', '.join(datasets)}, the path of an .npz "
        "file, or pyg:<Dataset>[/<name>] for a dataset of torch_geometric; and any of them after "
        f"the prefixes {', '.join(examples)}"
    )


def fetch_arrays(name: str, folder: StrPath | None) -> tuple[Arrays, str]:
    """Return the arrays of a named dataset by field name, and their source."""
    arrays, source = fetch(name, folder)
    return arrays._asdict(), source


def generate(kind: str, options: str) -> Any:
    """Generate a graph from the options in its name, as in ``csbm:nodes=500,seed=3``."""
    make = GENERATORS[kind]
    defaults = {p.name: p.default for p in inspect.signature(make).parameters.values()}
    given: dict[str, Any] = {}
    for option in filter(None, (part.strip() for part in options.split(","))):
        key, _, value = option.partition("=")
        sides = option.split("x")
        if key in given:
            raise DataError(f"{kind} has the option {key} twice in {options!r}; keep one.")
        try:
            if kind == "grid" and len(sides) == 2 and all(side.isdecimal() for side in sides):
                given["rows"], given["columns"] = map(int, sides)
            else:
                given[key] = type(defaults[key])(value)
        except (KeyError, ValueError):
            known = ", ".join(f"{name}={default}" for name, default in defaults.items())
            raise DataError(
                f"{kind} does not understand {option!r}. Its options and defaults: {known}; "
                f"as in {EXAMPLES[kind]}.{did_you_mean(key, defaults)}"
            ) from None
    return make(**given)


def make_undirected(data: Data) -> None:
    """Add the missing directions; an edge gets the mean weight of its two directions."""
    if "edge_weight" not in data:
        data.edge_index = to_undirected(data.edge_index, num_nodes=data.num_nodes)
        return
    # Repeated edges are summed first, as in Graph.
    merged = coalesce(data.edge_index, data.edge_weight, data.num_nodes, reduce="sum")
    data.edge_index, data.edge_weight = to_undirected(*merged, data.num_nodes, reduce="mean")
