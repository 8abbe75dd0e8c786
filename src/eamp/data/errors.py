"""Errors and the warning that the functions of :mod:`eamp.data` raise."""


class DataError(ValueError):
    """Raised when a dataset cannot be fetched or used; the message says what to do."""


class RefusedError(DataError):
    """Raised when data has the wrong digest, is damaged, or holds a forbidden pickle."""


class DataWarning(UserWarning):
    """Issued when data was refused or could not be cached, and loading went on without it."""
