"""Faults of the environment, which another attempt may not meet, and what to do about them."""

import errno

import torch

from eamp.files import WAYS_OUT
from eamp.optional import extra

with extra("experiments"):
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import DBAPIError


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
        return WAYS_OUT.get(error.errno or 0, "mend this")
    if isinstance(error, StorageInternalError | DBAPIError):
        return "bring the database back"
    return WAYS_OUT[errno.ENOMEM]
