"""Faults of the environment, which another attempt may not meet, and what to do about them."""

import errno

import torch

from eamp.optional import extra

with extra("experiments"):
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import DBAPIError

ADVICE = {
    errno.ENOSPC: "free some space on the disk",
    errno.EDQUOT: "free some space in your quota",
    errno.EROFS: "make the disk writable",
    errno.EACCES: "make the files writable",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the limit of open files",
    errno.ENOMEM: "free some memory, or use fewer --workers",
}


class EnvironmentFault(RuntimeError):  # noqa: N818  # the fault of a machine, told as such
    """A job ended through no fault of its own: a full disk, too little memory, a lost file."""


def is_of_environment(error: BaseException) -> bool:
    """Return whether an error is a fault of the machine rather than of the job."""
    if isinstance(error, RuntimeError) and "can't allocate memory" in str(error):  # as torch says
        return True
    kinds = (OSError, MemoryError, torch.OutOfMemoryError, StorageInternalError, DBAPIError)
    return isinstance(error, kinds)


def advice(error: BaseException) -> str:
    """Return what to do about a fault of the environment."""
    if isinstance(error, OSError):
        return ADVICE.get(error.errno or 0, "mend this")
    if isinstance(error, StorageInternalError | DBAPIError):
        return "bring the database back"
    return ADVICE[errno.ENOMEM]
