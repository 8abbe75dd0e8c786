"""The end of a worker whose parent has ended.

This module imports only the standard library, so that a worker can call it first of all: the
imports of torch and Optuna take seconds.
"""

import ctypes
import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def end_with_parent(parent: int) -> None:
    """End this process when the process ``parent``, which started it, has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    if sys.platform == "linux":  # at once, by the kernel
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)

    def watch() -> None:  # on other systems
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
