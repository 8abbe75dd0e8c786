"""Compile a task when it is first needed, and say that this takes a while."""

import sys
from typing import Any

from numba import cfunc
from numba.core import event

from eamp.graph.compiled_code import KEPT


class Notice(event.Listener):  # type: ignore[misc]  # numba comes without types
    """Writes a line to stderr when Numba first compiles something in this process."""

    def __init__(self) -> None:
        self.written = False

    def on_start(self, _: Any) -> None:
        """Write the line, unless it has been written."""
        if not self.written:
            self.written = True
            often = "once" if KEPT else "in every process, since there is no folder to keep them in"
            sys.stderr.write(f"eamp: compiling kernels for this machine, {often} (a few seconds)\n")

    def on_end(self, _: Any) -> None:
        """Do nothing."""


NOTICE = Notice()


def compiled(function: Any, **options: Any) -> Any:
    """Return a task as a C function of one pointer.

    It is compiled, or loaded from the disk if this was done before on this machine.
    """
    with event.install_listener("numba:run_pass", NOTICE):
        return cfunc("void(voidptr)", **options)(function)
