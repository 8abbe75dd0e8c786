"""Single-graph datasets of torch_geometric by name: ``pyg:KarateClub``, ``pyg:WebKB/Cornell``.

PyG keeps its files as pickles, and opening a pickle can run any program. So PyG downloads and
processes a dataset in a new, private folder that is deleted afterwards, and eamp caches the arrays
as an ``.npz`` file without pickles. No file that somebody else put into the cache is unpickled.
PyG parses its downloads itself: their bytes are not verified, but the resulting graph is checked
like a graph of your own.
"""

import contextlib
import inspect
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch_geometric.datasets as pyg
from torch import Tensor
from torch_geometric.data import Data

from eamp.data.cache import Arrays, cache_folder, read_or_fetch, remove_stale_files
from eamp.data.errors import DataError
from eamp.data.npz_graphs import data_from_arrays
from eamp.data.splits import MASKS

# The classes that can hold one graph with dense features and one label per node. The others would
# be downloaded and then refused, and some run code from their downloads, so they are not tried.
CLASSES = (
    *("Actor", "Airports", "Amazon", "AttributedGraphDataset", "BAShapes", "CitationFull"),
    *("CityNetwork", "Coauthor", "CoraFull", "DeezerEurope", "EllipticBitcoinDataset"),
    *("FacebookPagePage", "FakeDataset", "Flickr", "GitHub", "HeterophilousGraphDataset"),
    *("KarateClub", "LINKXDataset", "LastFMAsia", "Planetoid", "Reddit", "Reddit2", "Twitch"),
    *("WebKB", "WikiCS", "WikipediaNetwork"),
)
FORCE_WEIGHTS_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"  # an environment variable of torch.load
ENVIRONMENT = threading.Lock()  # threads would restore each other's value


def from_pyg(dataset: str, refresh: bool = False) -> Data:
    """Return the graph of ``<Dataset>[/<name>]``, a PyG class and its argument ``name``."""
    class_name, slash, name = dataset.partition("/")
    if class_name not in CLASSES or not hasattr(pyg, class_name):
        raise DataError(
            f"pyg:<Dataset>[/<name>] has no {class_name!r}. Known: {', '.join(CLASSES)}. Make "
            "another dataset yourself and save its arrays as an .npz file."
        )
    if slash and not re.fullmatch("[A-Za-z0-9_-]+", name):
        raise DataError(
            f"{name!r} is not the name of a dataset: a name has only letters, digits, '-' and '_'. "
            f"Write pyg:{class_name}/<name>, as in pyg:WebKB/Cornell."
        )
    make = getattr(pyg, class_name)
    arguments = constructor_arguments(make, class_name, name)
    if "root" not in inspect.signature(make).parameters:  # a small graph that PyG itself holds
        return data_from_arrays(made(make, arguments, dataset))

    def fetch() -> tuple[Arrays, str]:
        with private_folder(class_name) as folder:
            arrays = made(make, arguments | {"root": str(folder / class_name)}, dataset)
        data_from_arrays(arrays)  # raises an error, before the arrays are cached
        return arrays, "torch_geometric"

    cache_name = f"pyg/{class_name}-{name}" if name else f"pyg/{class_name}"
    return data_from_arrays(dict(read_or_fetch(cache_name, refresh, fetch)[0]))


@contextlib.contextmanager
def private_folder(class_name: str) -> Iterator[Path]:
    """Make an empty folder in the cache that only this user can open, and delete it afterwards."""
    parent = cache_folder() / "pyg"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        remove_stale_files(parent)
        made = tempfile.TemporaryDirectory(".part", f".{class_name}-", parent)
    except OSError:  # a cache that is not writable: the graph is not cached, but loaded
        made = tempfile.TemporaryDirectory(prefix="eamp-")
    with made as folder:
        yield Path(folder)


def made(make: Any, arguments: dict[str, str], dataset: str) -> dict[str, Any]:
    """Let PyG make a dataset, and return the arrays of its graph."""
    try:
        with weights_only():
            found = make(**arguments)
            graph = found[0]
    except Exception as error:  # whatever PyG's own download or parser raises
        raise DataError(
            f"torch_geometric could not make pyg:{dataset}: {type(error).__name__}: {error}"
        ) from error
    if len(found) != 1 or not isinstance(graph, Data):
        raise DataError(
            f"pyg:{dataset} has {len(found)} graphs of type {type(graph).__name__}; "
            "expected one Data with node labels. Choose a dataset for node classification."
        )
    return arrays_of(graph, dataset)


@contextlib.contextmanager
def weights_only() -> Iterator[None]:
    """Make every ``torch.load`` refuse pickled code; PyG's loader would accept it on a retry."""
    with ENVIRONMENT:
        before = os.environ.get(FORCE_WEIGHTS_ONLY)
        os.environ[FORCE_WEIGHTS_ONLY] = "1"
        try:
            yield
        finally:
            del os.environ[FORCE_WEIGHTS_ONLY]
            if before is not None:
                os.environ[FORCE_WEIGHTS_ONLY] = before


def constructor_arguments(make: Any, class_name: str, name: str) -> dict[str, str]:
    """Return ``name`` if the dataset's class takes it; it may take a ``root`` as well."""
    parameters = inspect.signature(make).parameters
    given = {}
    if name:
        if "name" not in parameters:
            raise DataError(
                f"pyg:{class_name} takes no name, but /{name} was given. Write pyg:{class_name}."
            )
        given["name"] = name
    missing = [
        p.name
        for p in parameters.values()
        if p.default is p.empty
        and p.kind is p.POSITIONAL_OR_KEYWORD
        and p.name not in (*given, "root")
    ]
    if missing:
        hint = "Make the dataset yourself and save its arrays as an .npz file."
        if missing == ["name"]:
            hint = f"Write pyg:{class_name}/<name>."
        raise DataError(f"pyg:{class_name} needs {', '.join(missing)}. {hint}")
    return given


def arrays_of(graph: Data, dataset: str) -> dict[str, Any]:
    """Return the arrays that eamp uses, with masks only if all three are there."""
    names = ["edge_index", "x", "y", "edge_weight"]
    names += MASKS if all(graph.get(mask) is not None for mask in MASKS) else ()
    arrays = {name: graph[name] for name in names if graph.get(name) is not None}
    for name, value in arrays.items():
        kind = value.layout if isinstance(value, Tensor) else type(value).__name__
        if kind != torch.strided:
            raise DataError(
                f"{name} of pyg:{dataset} is {kind}, expected a dense tensor. "
                "Convert it and save the graph as an .npz file."
            )
    return {name: value.numpy() for name, value in arrays.items()}
