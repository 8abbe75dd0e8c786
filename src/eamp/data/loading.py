"""One door to every graph: a name becomes a ``Data`` with features, edges, labels, masks and where they came from."""

from __future__ import annotations

import difflib
import inspect
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch_geometric.data import Data
from torch_geometric.utils import coalesce, to_undirected

from eamp.data import cache
from eamp.data.digests import ARRAYS, DataError, DataWarning, RefusedError, digest_of
from eamp.data.npz_graphs import from_npz
from eamp.data.planetoid import SIZES
from eamp.data.pyg_datasets import from_pyg
from eamp.data.sources import fetch
from eamp.data.splits import Split, put_split
from eamp.data.synthetic import csbm, grid

SYNTHETIC: dict[str, Callable[..., Data]] = {"grid": grid, "csbm": csbm}


def load(
    name: str | os.PathLike[str] = "csbm",
    *,
    folder: str | os.PathLike[str] | None = None,
    split: Split = None,
    seed: int = 0,
    symmetrize: bool = False,
    refresh: bool = False,
) -> Data:
    """A graph by name.

    Args:
        name: ``cora``, ``citeseer`` or ``pubmed``; ``grid:10x10`` or ``csbm:nodes=500,homophily=0.3`` (the options are those of
            :func:`grid` and :func:`csbm`); the path of an ``.npz`` of your own; ``pyg:<Dataset>[/<name>]``. ``undirected:`` before any of
            them is ``symmetrize=True``.
        folder: for the first three, a folder with the Planetoid files, tried before GitHub and the package index.
            The environment variable ``EAMP_DATA`` names one for good.
        split: which nodes train, validate and test. Left out: the graph's own masks, else ``"random"``. A number: which of
            its own. ``"planetoid:20/500/1000"``: that many per class, then val, test. ``"random:0.6/0.2/0.2"``: fractions.
        seed: decides which nodes a drawn split takes. (The seed of a generated graph is part of its name: ``grid:10x10,seed=1``.)
        symmetrize: add the missing directions of a directed graph.
        refresh: fetch again, whatever the cache holds.

    Returns:
        ``Data`` with ``x``, ``edge_index``, ``y``, ``train_mask``, ``val_mask``, ``test_mask`` and, saying what it is,
        ``name``, ``source``, ``digest`` (of the graph as it came), ``split`` and ``num_classes``.

    Raises:
        DataError: if no source has it (each is named, with the reason), or it is not a usable graph.

    Example:
        >>> data = load("grid:3x4")
        >>> data.num_nodes, data.source, data.split
        (12, 'generated', 'random:0.6/0.2/0.2, seed 0')
    """
    text = os.fspath(name)
    kind, _, options = text.partition(":")
    if kind == "undirected":
        data = load(
            options, folder=folder, split=split, seed=seed, symmetrize=True, refresh=refresh
        )
        data.name = text
        return data
    if text.lower() in SIZES:
        cached = planetoid(text.lower(), folder, refresh)
        data, source, text = cached.arrays.to_data(), cached.source, text.lower()
        digest = ARRAYS[text]
    else:
        if kind.lower() in SYNTHETIC:
            data, source = generate(kind.lower(), options), "generated"
        elif kind == "pyg":
            data, source = from_pyg(options), "torch_geometric"
        elif text.endswith(".npz") or Path(text).expanduser().is_file():
            data, source = from_npz(text), "file"
        else:
            raise unknown_name(text)
        digest = digest_of(
            {
                key: data[key].numpy()
                for key in ("edge_index", "x", "y", "edge_weight")
                if key in data
            }
        )
    if symmetrize:
        make_undirected(data)
    put_split(data, split, seed)
    data.name, data.source, data.digest, data.num_classes = (
        text,
        source,
        digest,
        int(data.y.max()) + 1,
    )
    return data


def planetoid(
    name: str, folder: str | os.PathLike[str] | None = None, refresh: bool = False
) -> cache.Cached:
    """A Planetoid dataset from the cache, else from the first source that has it. A damaged cache is told and rebuilt."""
    if not refresh:
        try:
            if cached := cache.read(name):
                return cached
        except RefusedError as error:
            warnings.warn(f"{error} It is fetched again.", DataWarning, stacklevel=3)
    fetched = cache.Cached(*fetch(name, folder))
    cache.write(name, fetched)
    return fetched


def generate(kind: str, options: str) -> Data:
    """A generated graph from the options in its name, as in ``grid:10x10`` or ``csbm:nodes=500,seed=3``."""
    make = SYNTHETIC[kind]
    defaults = {
        name: parameter.default for name, parameter in inspect.signature(make).parameters.items()
    }
    given: dict[str, Any] = {}
    for option in filter(None, (part.strip() for part in options.split(","))):
        key, _, value = option.partition("=")
        sides = option.split("x")
        if kind == "grid" and len(sides) == 2 and all(side.isdecimal() for side in sides):
            given["rows"], given["columns"] = map(int, sides)
            continue
        try:
            given[key] = type(defaults[key])(value)
        except (KeyError, ValueError):
            known = ", ".join(f"{name}={default}" for name, default in defaults.items())
            example = "grid:10x10,seed=1" if kind == "grid" else "csbm:nodes=500,homophily=0.3"
            raise DataError(
                f"{kind} does not understand {option!r}. Its options and defaults: {known}; as in {example}."
            ) from None
    return make(**given)


def make_undirected(data: Data) -> None:
    if "edge_weight" in data:
        merged = coalesce(
            data.edge_index, data.edge_weight, data.num_nodes, reduce="sum"
        )  # as Graph does
        data.edge_index, data.edge_weight = to_undirected(*merged, data.num_nodes, reduce="mean")
        return
    data.edge_index = to_undirected(data.edge_index, num_nodes=data.num_nodes)


def unknown_name(text: str) -> DataError:
    known = [*SIZES, *SYNTHETIC]
    close = difflib.get_close_matches(text.lower(), known, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    return DataError(
        f"there is no dataset {text!r}.{guess} Known: {', '.join(known)}, the path of an .npz file, or "
        "pyg:<Dataset>[/<name>] for one of torch_geometric."
    )
