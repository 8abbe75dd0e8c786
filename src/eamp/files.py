"""Files that are written in one piece: a reader, or a machine after a power cut, never sees half.

All rooms write their results with :func:`write_atomically`. :data:`WAYS_OUT` says what to do about
an error of the operating system.
"""

import errno
import glob
import json
import math
import os
import re
import tempfile
import uuid
from pathlib import Path
from typing import Any

IN_THE_WAY = "a file is in the way of the folder; choose another path"
FORBIDDEN = "make it writable, or choose a folder in which you may write"
# What to do about an error, by its number.
WAYS_OUT = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: IN_THE_WAY,
    errno.EEXIST: IN_THE_WAY,
    errno.EISDIR: "give the path of a file, not of a folder",
    errno.EACCES: FORBIDDEN,
    errno.EPERM: FORBIDDEN,
    errno.EROFS: FORBIDDEN,
    errno.ENOSPC: "free some space on the disk",
    errno.EDQUOT: "free some space in your quota",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the limit of open files",
    errno.ENOMEM: "free some memory, or use fewer --workers",
}
MISTAKES = (errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR)  # of a user, in a path


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that it is whole at every moment: the old content, or all of the new.

    The content goes to a temporary file in the same folder and to the disk before it takes the
    file's name. Missing folders are made. Text is encoded as UTF-8, with its line ends unchanged.

    Raises:
        OSError: if the file cannot be written; the old file stays as it is.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> write_atomically(f"{folder}/out/cells.csv", "depth,accuracy")
        >>> Path(folder, "out", "cells.csv").read_text()
        'depth,accuracy'
    """
    path = Path(path)  # a link of this name is replaced, not the file that it leads to
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Write a folder to the disk, so that a rename in it survives a power cut."""
    if os.name == "nt":  # Windows cannot open folders, and writes renames itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def to_json(content: Any) -> str:
    """Return content as JSON; numbers that are not finite become null, since JSON has no NaN.

    Example:
        >>> to_json({"loss": [0.5, float("nan"), float("inf")]})
        '{"loss": [0.5, null, null]}'
    """
    return json.dumps(with_nulls(content), allow_nan=False)


def with_nulls(content: Any) -> Any:
    """Return mappings and sequences with ``None`` in the place of numbers that are not finite."""
    if isinstance(content, dict):
        return {name: with_nulls(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [with_nulls(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def file_name(text: str) -> str:
    """Return a text as the name of a file, with underscores for all but letters, digits, . and -.

    Example:
        >>> file_name("quick look"), file_name("../λ = 3")
        ('quick_look', 'λ_3')
    """
    return re.sub(r"[^\w.-]+", "_", text).strip("._")[:100] or "unnamed"


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files of processes that were killed while they wrote ``path``."""
    path = Path(path)
    for temporary in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        temporary.unlink(missing_ok=True)


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Raise an OSError that says why, unless a file can be written to the folder; it is made."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(
            f"nothing can be written to {folder}: {error.strerror or error}. Choose another "
            "folder, or mend this one."
        ) from error
