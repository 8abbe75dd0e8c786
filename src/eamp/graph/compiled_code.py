"""Where Numba keeps compiled code between processes."""

from typing import Any

from numba import njit


def can_be_kept(function: Any) -> bool:
    """Return whether Numba finds a folder for the compiled code of a function.

    It tries ``NUMBA_CACHE_DIR``, the folder of the source file and the user's cache folder. If it
    may write to none of them, every process has to compile anew, which beats not running at all.

    Example:
        >>> can_be_kept(can_be_kept)
        True
    """
    try:
        njit(cache=True)(function)  # looks for a folder; nothing is compiled before a call
    except RuntimeError:
        return False
    return True


KEPT = can_be_kept(can_be_kept)
"""Whether this process can keep compiled code, for Numba's option ``cache``."""
