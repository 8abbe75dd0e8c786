"""The cache: one ``.npz`` file without pickles per dataset, verified at every reading."""

import contextlib
import io
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from eamp.data.digests import ARRAY_DIGESTS, verify_arrays
from eamp.data.errors import DataWarning, RefusedError
from eamp.data.splits import Array
from eamp.files import write_atomically

StrPath = str | os.PathLike[str]
Arrays: TypeAlias = Mapping[str, Array]
STALE_AFTER = 24 * 3600  # seconds; a younger temporary file may belong to a running process


def cache_folder() -> Path:
    """Return the folder in which eamp caches datasets.

    It is the environment variable ``EAMP_CACHE``, or else ``eamp`` in the platform's cache folder:
    ``XDG_CACHE_HOME`` or ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS and
    ``%LOCALAPPDATA%`` on Windows.
    """
    if chosen := os.environ.get("EAMP_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "eamp"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "eamp"
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says to ignore relative paths.
    return (xdg if xdg.is_absolute() else Path.home() / ".cache") / "eamp"


def cache_path(name: str) -> Path:
    """Return the path of a dataset's cache file, whether or not it exists."""
    return cache_folder() / f"{name}.npz"


def read_or_fetch(
    name: str, refresh: bool, fetch: Callable[[], tuple[Arrays, str]]
) -> tuple[Arrays, str]:
    """Return a dataset's arrays and source, from the cache if it is intact, and else fetched.

    Args:
        name: the name of the dataset, or ``pyg/`` and a name that :mod:`.pyg_datasets` checked.
        refresh: whether to fetch the dataset even if it is cached.
        fetch: a function that returns the arrays and their source.
    """
    if not refresh:
        try:
            if cached := read(name):
                return cached
        except RefusedError as error:
            warnings.warn(f"{error} It is fetched again.", DataWarning, stacklevel=3)
    arrays, source = fetch()
    write(name, arrays, source)
    return arrays, source


def read(name: str) -> tuple[Arrays, str] | None:
    """Return a dataset's cached arrays and their source, or ``None`` if it is not cached.

    Raises:
        RefusedError: if the file is damaged or its arrays have the wrong digest.
    """
    path = cache_path(name)
    origin = f"the cache file {path}"
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            arrays = {field: stored[field] for field in stored.files if field != "source"}
            source = str(stored["source"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Exception as error:  # a damaged zip or array header can raise nearly anything
        raise RefusedError(f"{origin} is refused: it cannot be read ({error}).") from error
    if name in ARRAY_DIGESTS:
        verify_arrays(name, arrays, origin)
    return arrays, source


def write(name: str, arrays: Arrays, source: str) -> None:
    """Write a dataset to the cache in one atomic step, or warn if the folder is not writable."""
    path, content = cache_path(name), io.BytesIO()
    # NumPy before 2.1 has no allow_pickle=False here, so arrays of objects are refused.
    if objects := [field for field in arrays if arrays[field].dtype.hasobject]:
        raise ValueError(f"{', '.join(objects)} would be pickled; pass numbers.")
    fields: dict[str, Any] = {**arrays, "source": np.array(source)}
    np.savez_compressed(content, **fields)
    try:
        remove_stale_files(path.parent)
        write_atomically(path, content.getvalue())
    except OSError as error:
        warnings.warn(
            f"{name} could not be cached in {path.parent} ({error}), so the next load fetches it "
            "again. Make the folder writable, or set EAMP_CACHE to one that is.",
            DataWarning,
            stacklevel=2,
        )


def remove_stale_files(folder: Path) -> None:
    """Remove the temporary files and folders that killed processes left in ``folder``."""
    for temporary in folder.glob(".*.part"):
        with contextlib.suppress(OSError):  # another process may have removed it first
            if temporary.stat().st_mtime < time.time() - STALE_AFTER:
                shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink()
