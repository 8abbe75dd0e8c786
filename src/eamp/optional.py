"""Packages that only a part of eamp needs, and the line that installs them.

They belong to the extras of ``pyproject.toml``. All rooms import them inside :func:`extra`.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class MissingPackageError(ModuleNotFoundError):
    """A package of an extra is not installed."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import packages of an extra in a block that says what to install if one is missing.

    Args:
        name: the extra, as in ``pip install "eamp[name]"``.

    Raises:
        MissingPackageError: if a package is missing.

    Example:
        >>> with extra("report"):
        ...     import no_such_package
        Traceback (most recent call last):
        eamp.optional.MissingPackageError: this needs the package no_such_package, which is not
        installed. Install it with: pip install "eamp[report]"
    """
    try:
        yield
    except MissingPackageError:  # of another extra, inside a module that the block imports
        raise
    except ModuleNotFoundError as error:
        package = (error.name or str(error)).split(".")[0]
        raise MissingPackageError(
            f"this needs the package {package}, which is not installed. "
            f'Install it with: pip install "eamp[{name}]"',
            name=error.name,
        ) from None
