"""Run a compiled task on the threads of torch.

A task is a C function of one pointer, to a block of 64-bit integers whose first is a ticket. It
draws tickets until they run out, each worth one part of the work. So it is right with any number
of threads calling it, and a thread that is held up takes fewer parts.

On Linux torch's CPU operators run on an OpenMP pool. A second pool beside it, such as Numba's own,
would compete for the same cores, keep a thread count of its own, and end the process when used
after a fork. So tasks are handed to the OpenMP runtime that torch is linked with. If that has no
such entry, Python threads call the task. With one thread, or in a forked process, the caller does
all of the work.
"""

import ctypes
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

Task = Callable[[ctypes.c_void_p], None]
TaskType = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run(task: Any, block: Any) -> None:
    """Let as many threads as torch has call ``task`` on ``block``, and wait for them.

    Args:
        task: a Numba cfunc.
        block: a NumPy array.
    """
    threads = torch.get_num_threads()
    address = ctypes.c_void_p(block.ctypes.data)
    if threads == 1 or _forked:
        task.ctypes(address)
    elif (openmp := _openmp()) is not None:
        openmp(task.ctypes, address, threads, 0)
    else:
        wait([_python_threads(threads).submit(task.ctypes, address) for _ in range(threads)])


@functools.cache
def _openmp() -> Any:
    """Return ``GOMP_parallel`` of torch's OpenMP runtime; GNU's and LLVM's have it on Linux."""
    library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    try:
        entry = ctypes.CDLL(
            str(library)
        ).GOMP_parallel  # looked up in the library and what it depends on
    except (OSError, AttributeError):
        return None
    entry.argtypes = [TaskType, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    entry.restype = None
    return entry


@functools.cache
def _python_threads(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="eamp")


@intrinsic
def draw_ticket(typing_context, block):
    """Add one to the integer ``block`` points to, atomically, and return what it was."""

    def generate(context, builder, signature, arguments):
        pointer = builder.bitcast(arguments[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", pointer, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(types.voidptr), generate


@intrinsic
def pointer(typing_context, address):
    """Return an integer address as a pointer."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate
