"""Timing several contenders in one run, so that a noisy machine slows them all alike."""

from __future__ import annotations

import ctypes
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h


@dataclass(frozen=True)
class Timing:
    """Seconds per call of one contender, and its ratio to the yardstick, each the median over the rounds."""

    name: str
    seconds: float
    ratio: float


def interleaved(contenders: dict[str, Callable[[], object]], yardstick: str, rounds: int = 15, round_seconds: float = 0.05) -> list[Timing]:
    """Time ``contenders`` in turns, round after round, and compare each with ``yardstick`` within its own round."""
    repeats = {}
    for name, call in contenders.items():
        call()  # compiles and warms up
        call()
        repeats[name] = max(1, int(round_seconds / max(seconds_per_call(call, 1), 1e-6)))
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            seconds[name].append(seconds_per_call(call, repeats[name]))
    return [
        Timing(
            name, statistics.median(seconds[name]), statistics.median(s / y for s, y in zip(seconds[name], seconds[yardstick], strict=True))
        )
        for name in contenders
    ]


def seconds_per_call(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def keep_freed_memory() -> bool:
    """Stop glibc from handing every large block back to the system as it is freed; whether that was possible.

    Otherwise each new tensor of some megabytes is faulted in page by page, or not, as chance will have it: the same operator then
    takes once 0.2 and once 1.6 ms. It would drown what is to be compared.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(M_MMAP_THRESHOLD, 2**30) and libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1))


def machine() -> dict[str, str | int]:
    """What a reader must know of the machine to make sense of a figure."""
    import numba
    import torch_geometric

    return {
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numba": numba.__version__,
    }


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    except OSError:
        return platform.processor()
