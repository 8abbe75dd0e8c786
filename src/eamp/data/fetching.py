"""The folders that may hold the files of named datasets, and the order of their sources."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from eamp.data.cache import StrPath
from eamp.data.digests import verify_file
from eamp.data.errors import DataError, DataWarning, RefusedError

Found = TypeVar("Found")


def given_folders(folder: StrPath | None) -> list[Path]:
    """Return ``folder``, or else the folders that the environment variable ``EAMP_DATA`` names."""
    chosen = [folder] if folder else os.environ.get("EAMP_DATA", "").split(os.pathsep)
    folders = [Path(path).expanduser() for path in chosen if path]
    if not folders:
        raise DataError("no folder= was given and EAMP_DATA is not set.")
    return folders


def read_folder(names: Sequence[str], folder: StrPath | None) -> dict[str, bytes]:
    """Return verified files of ``folder``, or of the first folder of ``EAMP_DATA`` with such files.

    Raises:
        DataError: if no folder is named, or a file cannot be read or has the wrong digest.
    """
    folders, contents = given_folders(folder), {}
    place = next((each for each in folders if (each / names[0]).is_file()), folders[0])
    for name in names:
        try:
            contents[name] = verify_file(name, (place / name).read_bytes())
        except OSError as error:
            raise DataError(f"{place / name}: {error.strerror}.") from error
    return contents


def first_source(
    name: str,
    sources: Mapping[str, Callable[[], Found]],
    folder: StrPath | None,
    what_to_do: str,
) -> tuple[Found, str]:
    """Return a dataset from the first source that has it, and the name of that source.

    Args:
        name: the name of the dataset.
        sources: functions that return the verified dataset, or raise a :class:`DataError` whose one
            line says why they cannot. The source ``"folder"`` reads ``folder``.
        folder: the folder that the user asked for, if any. A warning says why it is not used.
        what_to_do: the end of the error if every source fails.
    """
    failures = []
    for source, get in sources.items():
        try:
            return get(), source
        except DataError as error:
            failures.append(f"  {source}: {' '.join(str(error).split())}")
            if isinstance(error, RefusedError) or (source == "folder" and folder is not None):
                warnings.warn(
                    f"{name}: {source}: {error} Trying the next source.", DataWarning, stacklevel=3
                )
    raise DataError(
        f"cannot get {name!r}; every source failed:\n" + "\n".join(failures) + "\n"
        f"What to do: {what_to_do}"
    )
