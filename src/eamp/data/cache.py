"""The cache: one pickle-free file per dataset, written in one piece and checked whenever it is read."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
import uuid
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eamp.data.digests import ARRAYS, DataWarning, RefusedError, digest_of
from eamp.data.planetoid import Canonical


class Cached(NamedTuple):
    """A dataset and the source it once came from."""

    arrays: Canonical
    source: str


def cache_folder() -> Path:
    """Where eamp keeps what it fetched: ``EAMP_CACHE``, else ``eamp`` in the platform's own cache folder.

    That is ``XDG_CACHE_HOME`` or ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS, ``%LOCALAPPDATA%`` on Windows.
    """
    if chosen := os.environ.get("EAMP_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "eamp"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "eamp"
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (
        xdg if xdg.is_absolute() else Path.home() / ".cache"
    ) / "eamp"  # the XDG rules say to ignore relative paths


def cache_path(name: str) -> Path:
    """The file that holds, or will hold, a dataset."""
    return cache_folder() / f"{name}.npz"


def read(name: str) -> Cached | None:
    """The cached dataset, or ``None`` where there is none yet.

    Raises:
        RefusedError: if the file is damaged, or holds other arrays than the dataset's.
    """
    path = cache_path(name)
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            arrays = Canonical(*(stored[field] for field in Canonical._fields))
            source = str(stored["source"])
    except FileNotFoundError:
        return None
    except Exception as error:  # a damaged zip or array header can raise nearly anything
        raise RefusedError(
            f"the cache file {path} is refused: it cannot be read ({error})."
        ) from error
    found = digest_of(arrays._asdict())
    if found != ARRAYS[name]:
        raise RefusedError(
            f"the cache file {path} is refused: the digest of its arrays is {found}, expected {ARRAYS[name]}."
        )
    return Cached(arrays, source)


def write(name: str, cached: Cached) -> None:
    """Keep a dataset. Readers see the old file or the new one, never a part; a folder that cannot be written is no error."""
    path = cache_path(name)
    part = path.with_name(
        f".{name}-{uuid.uuid4().hex}.part"
    )  # the same folder, so that the last step is one rename
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path.parent)
        try:
            with part.open("xb") as file:
                np.savez_compressed(
                    file,
                    allow_pickle=False,
                    source=np.array(cached.source),
                    **cached.arrays._asdict(),
                )
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        warnings.warn(
            f"{name} could not be kept in {path.parent} ({error}); it will be fetched again.",
            DataWarning,
            stacklevel=2,
        )


def sweep(folder: Path) -> None:
    """Remove parts that killed processes left behind; a part younger than a day may still be somebody's."""
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):  # another process may sweep too
            if part.stat().st_mtime < time.time() - 24 * 3600:
                part.unlink()
